//! What messages show and objects do not say: states, counts, where something runs.

mod place;
mod pod;
mod state;

use serde_json::Value;

use crate::kinds::{CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, Kind, POD, STATEFUL_SET};

pub use place::places;

/// Adds what the message of a kind shows beyond the object.
pub fn shape(kind: &Kind, tree: &mut Value) {
    if *kind == DEPLOYMENT || *kind == STATEFUL_SET {
        state::deployment(tree);
    } else if *kind == DAEMON_SET {
        state::daemon_set(tree);
    } else if *kind == JOB {
        state::job(tree);
    } else if *kind == CRON_JOB {
        state::cron_job(tree);
    } else if *kind == POD {
        pod::pod(tree);
    }
}
