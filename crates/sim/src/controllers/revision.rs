//! ControllerRevisions: the templates a StatefulSet or DaemonSet had, for rollouts and undoing them.

use atoll_meta::Status;
use serde_json::{Value, json};

use super::split;
use crate::child::{controller_ref, hash};
use crate::kind::Kind;
use crate::world::{Work, World};
use crate::write;

/// The label by which pods name the template they were made from.
pub const LABEL: &str = "controller-revision-hash";

/// The templates of a parent, oldest first; the present one is the last.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// All of them.
    pub revisions: Vec<Value>,
}

/// The number of a revision.
pub fn number(revision: &Value) -> i64 {
    revision["revision"].as_i64().unwrap_or_default()
}

/// The name of a revision.
pub fn name(revision: &Value) -> &str {
    revision["metadata"]["name"].as_str().unwrap_or_default()
}

/// The hash of a revision.
pub fn hash_of(revision: &Value) -> &str {
    revision["metadata"]["labels"][LABEL]
        .as_str()
        .or_else(|| revision["metadata"]["labels"]["controller.kubernetes.io/hash"].as_str())
        .unwrap_or_default()
}

/// The template of a revision.
pub fn template(revision: &Value) -> Value {
    let mut template = revision["data"]["spec"]["template"].clone();
    if let Some(map) = template.as_object_mut() {
        map.remove("$patch");
    }
    template
}

/// What a revision keeps of its parent: a patch that brings the template back.
fn data(parent: &Value) -> Value {
    let mut template = parent["spec"]["template"].clone();
    template["$patch"] = "replace".into();
    json!({"spec": {"template": template}})
}

/// What must be written so that the present template is the newest revision.
#[derive(Debug, PartialEq)]
enum Need {
    /// Nothing.
    Nothing,
    /// An older revision becomes the newest: its name and number.
    Renumber(String, i64),
    /// A new one with this number.
    New(i64),
}

fn need(revisions: &[Value], data: &Value) -> Need {
    let highest = revisions.iter().map(number).max().unwrap_or(0);
    match revisions.iter().rev().find(|revision| revision["data"] == *data) {
        Some(same) if number(same) == highest => Need::Nothing,
        Some(same) => Need::Renumber(name(same).to_owned(), highest + 1),
        None => Need::New(highest + 1),
    }
}

/// Makes sure the present template has a revision; returns all of them.
pub async fn sync(world: &World, work: &Work, kind: Kind, parent: &Value) -> Result<History, Status> {
    let (namespace, own) = split(&work.key);
    let uid = parent["metadata"]["uid"].as_str().unwrap_or_default();
    let mut revisions: Vec<Value> =
        world.cache(Kind::ControllerRevision).owned_by(uid).iter().map(atoll_runtime::Item::tree).collect();
    revisions.sort_by_key(number);
    let data = data(parent);
    match need(&revisions, &data) {
        Need::Nothing => {}
        Need::Renumber(old, next) => {
            let patch = json!({"revision": next});
            let written = write::merge(&world.manager, Kind::ControllerRevision, (namespace, &old), "", &patch).await?;
            world.expect(work, written.revision());
            for revision in revisions.iter_mut().filter(|revision| name(revision) == old) {
                revision["revision"] = next.into();
            }
        }
        Need::New(next) => {
            let collisions = parent["status"]["collisionCount"].as_i64().unwrap_or_default();
            let hash = hash(&data, collisions);
            let mut labels = parent["spec"]["template"]["metadata"]["labels"].clone();
            let key = if kind == Kind::StatefulSet { "controller.kubernetes.io/hash" } else { LABEL };
            labels[key] = hash.clone().into();
            let revision = json!({
                "kind": "ControllerRevision", "apiVersion": "apps/v1",
                "metadata": {"name": format!("{own}-{hash}"), "labels": labels, "ownerReferences": [controller_ref(kind, parent)]},
                "data": data, "revision": next,
            });
            let written = write::create(&world.manager, Kind::ControllerRevision, namespace, &revision).await?;
            world.expect(work, written.revision());
            revisions.push(revision);
        }
    }
    revisions.sort_by_key(number);
    Ok(History { revisions })
}

impl History {
    /// The present one.
    pub fn newest(&self) -> Value {
        self.revisions.last().cloned().unwrap_or_default()
    }

    /// One by name.
    pub fn named(&self, wanted: &str) -> Option<&Value> {
        self.revisions.iter().find(|revision| name(revision) == wanted)
    }

    /// Deletes old ones that nobody uses, beyond the number to be kept.
    pub async fn trim(
        &self,
        world: &World,
        work: &Work,
        parent: &Value,
        used: impl Fn(&Value) -> bool,
    ) -> Result<(), Status> {
        let limit = usize::try_from(parent["spec"]["revisionHistoryLimit"].as_i64().unwrap_or(10)).unwrap_or_default();
        let newest = self.newest();
        let idle: Vec<&Value> = self.revisions.iter().filter(|one| name(one) != name(&newest) && !used(one)).collect();
        for revision in idle.iter().take(idle.len().saturating_sub(limit)) {
            let uid = revision["metadata"]["uid"].as_str().unwrap_or_default();
            let key = (split(&work.key).0, name(revision));
            write::delete(&world.manager, Kind::ControllerRevision, key, uid, None).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_that_comes_back_becomes_the_newest_revision() {
        let old = json!({"metadata": {"name": "a"}, "revision": 1, "data": {"x": 1}});
        let new = json!({"metadata": {"name": "b"}, "revision": 2, "data": {"x": 2}});
        let all = [old, new];
        assert_eq!(need(&all, &json!({"x": 2})), Need::Nothing);
        assert_eq!(need(&all, &json!({"x": 1})), Need::Renumber("a".into(), 3));
        assert_eq!(need(&all, &json!({"x": 3})), Need::New(3));
    }
}
