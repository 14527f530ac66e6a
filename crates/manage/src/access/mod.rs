//! Who may do what: accounts, workspaces, roles and grants, kept as objects in `root`.
//!
//! There is one evaluator, the roles of each instance: `grants` turns what is granted here into
//! roles and bindings there, so that gRPC, REST, kubectl, the proxy and the search all give the
//! same answer. `rights` asks it for the search.

pub mod accounts;
pub mod authority;
pub mod grants;
pub mod journal;
pub mod objects;
pub mod providers;
pub mod redirect;
pub mod rights;
pub mod roles;
pub mod sessions;
