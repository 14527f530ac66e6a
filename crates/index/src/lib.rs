//! The searchable copy of what is in all instances and members
