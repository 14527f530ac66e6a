//! What pods were last told, so that each reason is told once.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::Value;

use crate::tree;

/// Uid and last complaint of pods that wait for something, by `namespace/name`.
#[derive(Default)]
pub(crate) struct Complaints {
    told: Mutex<HashMap<String, (String, String)>>,
}

impl Complaints {
    /// Whether a pod has not been told this yet; from now on it has.
    pub(crate) fn is_news(&self, pod: &Value, message: &str) -> bool {
        let complaint = (tree::uid(pod).to_owned(), message.to_owned());
        let key = tree::key(tree::namespace(pod), tree::name(pod));
        self.told.lock().insert(key, complaint.clone()).as_ref() != Some(&complaint)
    }

    /// Forgets a pod that has nothing to complain about, or is gone.
    pub(crate) fn forget(&self, key: &str) {
        self.told.lock().remove(key);
    }

    /// The pods that wait for something.
    pub(crate) fn pods(&self) -> Vec<String> {
        self.told.lock().keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reason_is_told_once_to_each_pod_of_a_name() {
        let complaints = Complaints::default();
        let pod = |uid: &str| json!({"metadata": {"namespace": "n", "name": "p", "uid": uid}});
        assert!(complaints.is_news(&pod("1"), "no room"));
        assert!(!complaints.is_news(&pod("1"), "no room"));
        assert!(complaints.is_news(&pod("1"), "no secret"));
        assert!(complaints.is_news(&pod("2"), "no secret"), "another pod of the same name");
        assert_eq!(complaints.pods(), ["n/p"]);
        complaints.forget("n/p");
        assert!(complaints.pods().is_empty());
    }
}
