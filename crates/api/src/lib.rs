//! Types of the custom resources Atoll serves, and their definitions
