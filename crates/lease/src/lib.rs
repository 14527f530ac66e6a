//! What a node may lend, to whom and when. Pure: time is passed in, nothing is read.
//!
//! ```text
//! binding's selector ∧ policy's selector → which policy → windows (open?) + remaining − limits → Loan
//! ```
//!
//! Start at [`decide`] (one node) and [`preview`] (what a policy would do).

mod amount;
mod choose;
mod decide;
mod preview;
mod request;
mod selector;
mod validate;
mod window;

pub use amount::{Amounts, limited, read_amounts, remaining};
pub use choose::{Policy, choose};
pub use decide::{Decision, Loan, NodeFacts, State, Withheld, decide, evict_at};
pub use preview::{Preview, PreviewNode, preview};
pub use request::{PodFacts, is_over, requests};
pub use selector::matches;
pub use validate::{check_policy, check_spec};
pub use window::{Window, WindowError, is_open, next_edge};
