//! Events about templates and bindings: sent while nobody asks for anything more urgent, and lasting trouble not again
//! at every try.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::Status;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::binding::{self, Binding};
use crate::core::Core;

type Again = Result<Option<Duration>, Status>;

/// How soon trouble that lasts is told again in the same words.
const AGAIN: Duration = Duration::from_secs(600);
/// How many events wait at most; what comes on top is lost, as a hub has better uses for its memory.
const ROOM: usize = 4096;
/// How much trouble is remembered at most.
const MEMORY: usize = 4096;

/// The object an event is about.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct About {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
    uid: String,
}

impl About {
    /// Any object.
    pub fn object(tree: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let meta = &tree["metadata"];
        Self {
            api_version: text(&tree["apiVersion"]),
            kind: text(&tree["kind"]),
            namespace: text(&meta["namespace"]),
            name: text(&meta["name"]),
            uid: text(&meta["uid"]),
        }
    }

    /// A binding and its template: people look at either.
    pub fn both(binding: &Binding) -> [Self; 2] {
        let resource = binding.spec.resource.clone();
        let template = Self {
            api_version: resource.api_version,
            kind: resource.kind,
            namespace: resource.namespace,
            name: resource.name,
            uid: resource.uid,
        };
        [Self::object(&binding::about(binding)), template]
    }

    fn to_value(&self) -> Value {
        let mut tree = json!({"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": self.name}});
        for (field, text) in [("namespace", &self.namespace), ("uid", &self.uid)] {
            if !text.is_empty() {
                tree["metadata"][field] = text.as_str().into();
            }
        }
        tree
    }
}

/// An event on its way.
#[derive(Debug, Eq, Hash, PartialEq)]
pub struct Note {
    about: About,
    warning: bool,
    reason: String,
    message: String,
    at: Timestamp,
}

/// Trouble that was told, and when.
#[derive(Default)]
pub struct Trouble(HashMap<(About, String, String), Instant>);

impl Trouble {
    /// Whether it was not told for a while; it counts as told from now on.
    fn is_news(&mut self, about: &About, reason: &str, message: &str, now: Instant) -> bool {
        let lasts = |at: &Instant| now.duration_since(*at) < AGAIN;
        let told = (about.clone(), reason.to_owned(), message.to_owned());
        if self.0.get(&told).is_some_and(lasts) {
            return false;
        }
        if self.0.len() >= MEMORY {
            self.0.retain(|_, at| lasts(at));
        }
        if self.0.len() >= MEMORY {
            // Rather told twice than never.
            self.0.clear();
        }
        self.0.insert(told, now);
        true
    }
}

impl Core {
    /// Tells something about an object. It is sent later and may get lost: nobody waits for it.
    pub fn tell(&self, about: About, warning: bool, reason: &str, message: &str) {
        if self.queues.events.len() >= ROOM {
            tracing::debug!(reason, message, "event not recorded: too many wait");
            return;
        }
        let (reason, message) = (reason.to_owned(), message.to_owned());
        self.queues.events.add(Arc::new(Note { about, warning, reason, message, at: self.now() }));
    }

    /// Warns of trouble that is met at every try until somebody mends it: once, and then every ten minutes.
    pub fn warn(&self, about: About, reason: &str, message: &str) {
        if self.trouble.lock().is_news(&about, reason, message, Instant::now()) {
            self.tell(about, true, reason, message);
        }
    }
}

/// Whether a refusal stays until somebody changes something; what is merely busy, gone or overtaken is tried again.
pub fn is_lasting(status: &Status) -> bool {
    matches!(status.code, 400 | 403 | 422)
}

/// Sends an event; one that fails is only logged.
pub async fn send(core: Arc<Core>, note: Arc<Note>) -> Again {
    let kind = if note.warning { "Warning" } else { "Normal" };
    core.instance.patient().event(&note.about.to_value(), kind, &note.reason, &note.message, note.at).await;
    Ok(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn about(name: &str) -> About {
        About::object(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "uid": "u"}}))
    }

    #[test]
    fn an_event_names_its_object() {
        let tree = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u"}});
        assert_eq!(About::object(&tree).to_value(), tree);
        let binding: Binding = serde_json::from_value(json!({"metadata": {"name": "web-deployment", "namespace": "d", "uid": "b"},
            "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "d", "uid": "t"}}}))
        .unwrap();
        let found = About::both(&binding).map(|about| about.to_value());
        let meta = |name: &str, uid: &str| json!({"name": name, "namespace": "d", "uid": uid});
        assert_eq!(
            found,
            [
                json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": meta("web-deployment", "b")}),
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("web", "t")}),
            ]
        );
    }

    #[test]
    fn lasting_trouble_is_told_again_after_a_while_only() {
        let (mut trouble, start) = (Trouble::default(), Instant::now());
        let minutes = |count: u64| start + Duration::from_secs(60 * count);
        for (name, reason, message, minute, news) in [
            ("a", "Failed", "no", 0, true),
            ("a", "Failed", "no", 1, false),
            ("b", "Failed", "no", 1, true),
            ("a", "Other", "no", 1, true),
            ("a", "Failed", "never", 1, true),
            ("a", "Failed", "no", 9, false),
            ("a", "Failed", "no", 10, true),
            ("a", "Failed", "no", 11, false),
        ] {
            assert_eq!(
                trouble.is_news(&about(name), reason, message, minutes(minute)),
                news,
                "{name} {reason} {minute}"
            );
        }
        for number in 0..2 * MEMORY {
            assert!(trouble.is_news(&about(&number.to_string()), "Failed", "no", minutes(12)));
            assert!(trouble.0.len() <= MEMORY);
        }
    }
}
