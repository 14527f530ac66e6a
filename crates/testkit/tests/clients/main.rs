//! Programs nobody here wrote, unchanged, against Atoll: kubectl in two versions, client-go informers,
//! the Python client, Helm, an operator built with controller-runtime.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod helm;
mod informer;
mod kubectl;
mod operator;
mod process;
mod proxy;
mod python;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use atoll_testkit::TestServer;

/// One server for all tests that run at the same time; it ends with the last of them.
fn shared() -> Arc<TestServer> {
    static SHARED: Mutex<Weak<TestServer>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(TestServer::memory().unwrap());
    *shared = Arc::downgrade(&server);
    server
}
