//! Namespaces that a member had before us: what we send goes into them, they themselves are never deleted.

use atoll_api::words::{OVERWRITE, annotation};
use atoll_meta::Gvk;
use serde_json::Value;

use crate::merge;

/// Whether these are namespaces.
pub fn is_namespace(gvk: &Gvk) -> bool {
    gvk.group.is_empty() && gvk.kind == "Namespace"
}

/// Whether a namespace of a member that carries our marks may be somebody else's: it says that it was, or could be, taken
/// over. Earlier releases wrote that on every namespace, on those they made as well; nobody can tell these apart any more.
pub fn may_be_shared(namespace: &Value) -> bool {
    merge::may_take_over(namespace)
}

/// A namespace that may be somebody else's goes on saying so, also when it is not to be taken over any more.
pub fn keep_mark(desired: &mut Value, observed: &Value) {
    if may_be_shared(observed) {
        desired["metadata"]["annotations"][annotation::CONFLICT_RESOLUTION] = OVERWRITE.into();
    }
}

#[cfg(test)]
mod tests {
    use atoll_interpreter::Interpreter;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_mark_of_a_shared_namespace_outlives_a_manifest_that_does_not_have_it() {
        let manifest = json!({"metadata": {"name": "shop", "annotations": {annotation::MANAGED_ANNOTATIONS: "a"}}});
        let mark = annotation::CONFLICT_RESOLUTION;
        let observed = json!({"metadata": {"name": "shop",
            "annotations": {annotation::MANAGED_ANNOTATIONS: mark, mark: OVERWRITE}}});
        let merged = |observed: &Value| {
            let mut desired = merge::merge(&manifest, observed, &Interpreter::default()).unwrap_or_default();
            keep_mark(&mut desired, observed);
            desired
        };
        let first = merged(&observed);
        assert!(may_be_shared(&first) && may_be_shared(&merged(&first)));
        assert!(!may_be_shared(&merged(&json!({"metadata": {"name": "shop"}}))));
    }
}
