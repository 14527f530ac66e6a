//! What a change asks for, read from the change alone.

use std::time::Duration;

use atoll_meta::InstanceId;
use atoll_store::Event;

use crate::task::Task;
use crate::{approve, bootstrap, event, token};

/// What is to be done because of a change, and how much later.
pub fn asks(id: InstanceId, change: &Event) -> Vec<(Task, Duration)> {
    let Some(entry) = change.current.as_ref().or(change.previous.as_ref()) else { return Vec::new() };
    let head = &entry.object.head;
    let (gone, new) = (change.current.is_none(), change.previous.is_none());
    let now = |task: Task| (task, Duration::ZERO);
    let name = || head.name.to_string();
    let namespace = || head.namespace.to_string();
    match change.key.resource() {
        "namespaces." if gone => Vec::new(),
        "namespaces." if head.deleting => vec![now(Task::EmptyNamespace(id, name()))],
        "namespaces." if new => vec![now(Task::FurnishNamespace(id, name()))],
        "customresourcedefinitions.apiextensions.k8s.io" if !gone && head.deleting => {
            vec![now(Task::EmptyDefinition(id, name()))]
        }
        "configmaps." if &*head.name == "kube-root-ca.crt" && !new => {
            vec![now(Task::FurnishNamespace(id, namespace()))]
        }
        "configmaps." if bootstrap::is_info(head) => vec![now(Task::SignInfo(id))],
        "serviceaccounts." => {
            let mut tasks = Vec::new();
            if gone && &*head.name == "default" {
                tasks.push(now(Task::FurnishNamespace(id, namespace())));
            }
            if gone || new {
                tasks.push(now(Task::SettleTokens(id, namespace(), name())));
            }
            tasks
        }
        "secrets." if bootstrap::is_token(head) => {
            vec![now(Task::SignInfo(id)), now(Task::ExpireToken(id, name()))]
        }
        "secrets." if !gone => {
            let account = token::account_of(entry);
            account.map(|account| now(Task::SettleTokens(id, namespace(), account))).into_iter().collect()
        }
        // One look at all events of an instance, when the first of them can be over.
        "events." if !gone => vec![(Task::ExpireEvents(id), event::LIFE)],
        "jobs.batch" if !gone && contains(&entry.object.body, b"\"ttlSecondsAfterFinished\"") => {
            vec![now(Task::ExpireJob(id, change.key.clone()))]
        }
        "certificatesigningrequests.certificates.k8s.io" if !gone => {
            let mut tasks = vec![now(Task::ExpireRequest(id, name()))];
            if contains(&entry.object.body, approve::SIGNER.as_bytes()) {
                tasks.push(now(Task::ApproveRequest(id, name())));
            }
            tasks
        }
        _ => Vec::new(),
    }
}

/// Whether a body can hold a field at all; most need not be parsed.
pub fn contains(body: &[u8], word: &[u8]) -> bool {
    body.windows(word.len()).any(|window| window == word)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use atoll_meta::{Key, Object, Revision};
    use atoll_store::Entry;
    use serde_json::{Value, json};

    use super::*;

    fn entry(tree: &Value) -> Entry {
        Entry { object: Arc::new(Object::encode(tree).unwrap()), modified: Revision(2), created: Revision(1) }
    }

    fn change(key: Key, before: Option<&Value>, after: Option<&Value>) -> Event {
        Event { key, revision: Revision(2), current: after.map(entry), previous: before.map(entry) }
    }

    #[test]
    fn ordinary_changes_ask_for_nothing() {
        let map = json!({"metadata": {"name": "settings", "namespace": "default"}});
        let secret = json!({"metadata": {"name": "s", "namespace": "default"}, "type": "Opaque"});
        let job = json!({"metadata": {"name": "j", "namespace": "default"}, "spec": {}});
        for (group, plural, tree) in [("", "configmaps", &map), ("", "secrets", &secret), ("batch", "jobs", &job)] {
            let key = Key::new(group, plural, "default", "x");
            for (before, after) in [(None, Some(tree)), (Some(tree), Some(tree)), (Some(tree), None)] {
                let asked = asks(InstanceId(1), &change(key.clone(), before, after));
                assert!(asked.is_empty(), "{plural}: {asked:?}");
            }
        }
    }

    #[test]
    fn many_events_ask_for_one_later_look() {
        let event = json!({"metadata": {"name": "e", "namespace": "default"}});
        let asked = asks(InstanceId(1), &change(Key::new("", "events", "default", "e"), None, Some(&event)));
        assert_eq!(asked, [(Task::ExpireEvents(InstanceId(1)), Duration::from_secs(3600))]);
    }
}
