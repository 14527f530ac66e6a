//! Who set which fields.

use atoll_meta::Status;
use atoll_patch::managed;
use serde_json::Value;

use super::metadata::{metadata, put};
use crate::call::Call;

impl Call {
    /// Records which manager set which fields.
    pub fn track(&self, live: Option<&Value>, object: &mut Value, sub: &str) -> Result<(), Status> {
        let manager = self.manager()?;
        let now = self.timestamp();
        // Ownership is kept in the version of the request.
        let api_version = self.kind.api_version();
        let reset = self.reset_fields(sub);
        let request = managed::Request {
            manager: &manager,
            api_version: &api_version,
            subresource: sub,
            now: &now,
            schema: self.kind.typed(),
            reset,
            versions: &|_| true,
        };
        let fits = |tree: &mut Value| {
            if self.kind.custom().is_none() {
                return true;
            }
            // Metadata has a schema of its own and was looked at before.
            let meta = tree["metadata"].take();
            let fits = request.fits(tree);
            tree["metadata"] = meta;
            fits
        };
        if !self.kind.converts() && &*self.kind.kind != "Event" {
            if fits(object) {
                managed::update(&request, live, object);
            } else {
                metadata(object).remove("managedFields");
            }
            return Ok(());
        }
        let live = live.map(|live| self.tracked_form(live));
        let mut shown = self.tracked_form(object);
        if !fits(&mut shown) {
            metadata(object).remove("managedFields");
            return Ok(());
        }
        managed::update(&request, live.as_ref(), &mut shown);
        let managed = shown["metadata"].get_mut("managedFields").map(Value::take);
        put_managed(object, managed);
        Ok(())
    }

    /// A stored tree in the version of the request, without what nobody set.
    fn tracked_form(&self, tree: &Value) -> Value {
        let mut tree = tree.clone(); // what is stored keeps its form
        if self.kind.converts() {
            tree = crate::convert::to(&self.kind, tree);
        }
        if let (Some(map), "Event") = (tree.as_object_mut(), &*self.kind.kind) {
            let converted = self.kind.converts();
            map.retain(|key, value| match value {
                Value::Null => !converted && key != "eventTime",
                Value::Object(inner) => !converted || !inner.is_empty(),
                _ => true,
            });
        }
        tree
    }

    /// Fields that cannot be owned through an endpoint, because it ignores them.
    pub fn reset_fields(&self, sub: &str) -> &'static [&'static str] {
        match sub {
            "status" => &["spec"],
            "" if self.kind.has_status() => &["status"],
            _ => &[],
        }
    }
}

/// Takes recorded ownership out, out of reach of what may change an object from here on.
pub(super) fn take_managed(object: &mut Value) -> Option<Value> {
    metadata(object).remove("managedFields")
}

/// Puts recorded ownership back after parts that rebuild an object.
pub(super) fn put_managed(object: &mut Value, managed: Option<Value>) {
    if object["metadata"].get("managedFields") != managed.as_ref() {
        put(&mut object["metadata"], "managedFields", managed);
    }
}
