//! One of the two clusters, as a story sees it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use atoll_meta::{Gvr, Status};
use atoll_runtime::{Endpoint, Patch, WatchEvent};
use regex::Regex;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// How long the last of a record may come after what it tells of.
const SETTLE: Duration = Duration::from_secs(60);

/// A cluster and the namespace of a story.
#[derive(Clone)]
pub struct Side {
    name: &'static str,
    api: Endpoint,
    namespace: String,
}

/// What was seen of a resource since a record began: one list for each subject.
pub struct Record {
    seen: Arc<Mutex<Seen>>,
    more: Arc<Notify>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    lists: BTreeMap<String, Vec<String>>,
    revision: u64,
}

/// Between a subject and steps of which a slow observer may miss some.
const MISSABLE: &str = " ~ ";

impl Record {
    /// All that was seen, one line for each subject, once every one of `last` was. What never comes is
    /// missing in the lines, so that the comparison tells it.
    pub async fn lines(self, last: &[&str]) -> Vec<String> {
        self.settle(|seen| {
            let has = |words: &str| {
                let mut all =
                    seen.lists.iter().flat_map(|(subject, list)| list.iter().map(move |line| (subject, line)));
                all.any(|(subject, line)| format!("{subject}: {line}").contains(words))
            };
            last.iter().all(|words| has(words))
        })
        .await;
        self.written(": ")
    }

    /// The same up to a state of an object that was waited for; states in between are those that somebody wrote down.
    pub async fn steps(self, up_to: &Value) -> Vec<String> {
        let revision = revision(up_to);
        self.settle(|seen| seen.revision >= revision).await;
        self.written(MISSABLE)
    }

    async fn settle(&self, enough: impl Fn(&Seen) -> bool) {
        let wait = async {
            loop {
                let more = self.more.notified();
                if enough(&self.seen.lock().unwrap()) {
                    return;
                }
                more.await;
            }
        };
        let _ = tokio::time::timeout(SETTLE, wait).await;
        self.task.abort();
    }

    fn written(&self, between: &str) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.lists.iter().map(|(subject, list)| format!("{subject}{between}{}", list.join(" → "))).collect()
    }
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Whether two lines say the same. Steps need only end the same way, and go through the same in the same order; a
/// controller that is late writes fewer of them down.
pub fn agree(one: &str, other: &str) -> bool {
    let (Some((subject, steps)), Some((same, others))) = (one.split_once(MISSABLE), other.split_once(MISSABLE)) else {
        return one == other;
    };
    let (steps, others): (Vec<&str>, Vec<&str>) = (steps.split(" → ").collect(), others.split(" → ").collect());
    let (short, long) = if steps.len() < others.len() { (steps, others) } else { (others, steps) };
    let mut rest = long.iter();
    subject == same && short.last() == long.last() && short.iter().all(|step| rest.any(|one| one == step))
}

#[test]
fn steps_may_be_missed_but_not_mixed_up() {
    let table = [
        ("a: x → y", "a: x → y", true),
        ("a: x → y", "a: y", false),
        ("a ~ x → y → z", "a ~ x → z", true),
        ("a ~ x → z", "a ~ x → y → z", true),
        ("a ~ x → y", "a ~ x → z", false),
        ("a ~ x → y → z", "a ~ y → x → z", false),
        ("a ~ x → y → x", "a ~ x", true),
        ("a ~ x", "b ~ x", false),
    ];
    for (one, other, expected) in table {
        assert_eq!(agree(one, other), expected, "{one} | {other}");
    }
}

/// Names that are drawn, and moments, replaced by what they are.
pub fn plain(text: &str) -> String {
    static PATTERNS: LazyLock<[(Regex, &str); 4]> = LazyLock::new(|| {
        [
            (Regex::new(r"web-[bcdf-hj-np-tv-z0-9]{6,10}\b").unwrap(), "web-<hash>"),
            (
                Regex::new(r"(web-<hash>|\bjob|\bindexed-\d|\blater|-\d{8})-[bcdf-hj-np-tv-z2456789]{5}\b").unwrap(),
                "$1-<random>",
            ),
            (Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").unwrap(), "<time>"),
            (Regex::new(r"tick-\d{8}").unwrap(), "tick-<minute>"),
        ]
    });
    PATTERNS.iter().fold(text.to_owned(), |text, (pattern, name)| pattern.replace_all(&text, *name).into_owned())
}

/// A status as it is, without moments and drawn names.
pub fn status(object: &Value) -> String {
    let mut tree = object["status"].clone();
    fn strip(tree: &mut Value) {
        match tree {
            Value::Object(map) => {
                map.retain(|key, _| !key.ends_with("Time") && key != "resourceVersion" && key != "uid");
                map.values_mut().for_each(strip);
            }
            Value::Array(list) => {
                list.iter_mut().for_each(strip);
                list.sort_by_key(|one| one["type"].to_string());
            }
            _ => {}
        }
    }
    strip(&mut tree);
    for field in ["currentRevision", "updateRevision"] {
        if let Some(value) = tree.get_mut(field) {
            *value = "<revision>".into();
        }
    }
    plain(&tree.to_string())
}

impl Side {
    pub fn new(name: &'static str, api: Endpoint) -> Self {
        Self { name, api, namespace: String::new() }
    }

    /// The same cluster for a story, in a namespace of its own that is ready for pods.
    pub async fn at(&self, story: &str) -> Self {
        let own = Self { namespace: format!("story-{story}"), ..self.clone() };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own.namespace}});
        own.api.create(&Gvr::new("", "v1", "namespaces"), None, &object).await.unwrap();
        own.until(&Gvr::new("", "v1", "serviceaccounts"), "default", |_| true).await;
        own
    }

    pub async fn create(&self, gvr: &Gvr, object: Value) -> Value {
        self.api.create(gvr, Some(&self.namespace), &object).await.unwrap()
    }

    pub async fn merge(&self, gvr: &Gvr, name: &str, patch: Value) -> Value {
        self.api.patch(gvr, Some(&self.namespace), name, "", Patch::Merge, &patch).await.unwrap()
    }

    pub async fn list(&self, gvr: &Gvr) -> Vec<Value> {
        self.api.list(gvr, Some(&self.namespace), "").await.unwrap().items
    }

    /// Asks to evict a pod; returns what was answered.
    pub async fn evict(&self, pod: &str) -> String {
        let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", self.namespace);
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
        let answer: Result<_, Status> =
            self.api.send(http::Method::POST, &path, "application/json", body.to_string().into()).await;
        match answer {
            Ok(_) => "evicted".to_owned(),
            Err(status) => {
                let causes = status.details.as_ref().map(|details| &details.causes);
                let causes: Vec<String> =
                    causes.into_iter().flatten().map(|one| format!("{}: {}", one.reason, one.message)).collect();
                format!("{} {} ({})", status.code, status.message, causes.join("; "))
            }
        }
    }

    /// Waits until an object is as wanted, looking at every change.
    pub async fn until(&self, gvr: &Gvr, name: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let query = format!("fieldSelector=metadata.name%3D{name}");
        let last = Mutex::new(Value::Null);
        let wait = async {
            loop {
                let mut watch = self.api.watch(gvr, Some(&self.namespace), &query, "").await.unwrap();
                while let Some(Ok(event)) = watch.next().await {
                    if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
                        if fits(&object) {
                            return object;
                        }
                        *last.lock().unwrap() = object;
                    }
                }
            }
        };
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(object) => object,
            Err(_) => {
                panic!("{}: {} {name} never came so far: {}", self.name, gvr.resource, last.lock().unwrap()["status"])
            }
        }
    }

    /// Writes down what happens to a resource: `project` turns an object into its subject and what is
    /// seen of it; the same again is left out.
    pub async fn record(&self, gvr: &Gvr, project: fn(&Value, bool) -> Vec<(String, String)>) -> Record {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let mut watch = self.api.watch(gvr, Some(&self.namespace), "", "").await.unwrap();
        let more: Arc<Notify> = Arc::default();
        let (into, told) = (seen.clone(), more.clone());
        let task = tokio::spawn(async move {
            let mut last: HashMap<(String, String), String> = HashMap::new();
            while let Some(Ok(event)) = watch.next().await {
                let (object, gone) = match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                    WatchEvent::Deleted(object) => (object, true),
                    _ => continue,
                };
                let uid = object["metadata"]["uid"].to_string();
                let mut seen = into.lock().unwrap();
                seen.revision = revision(&object);
                for (subject, line) in project(&object, gone) {
                    if last.insert((uid.clone(), subject.clone()), line.clone()).as_ref() != Some(&line) {
                        seen.lists.entry(subject).or_default().push(plain(&line));
                    }
                }
                drop(seen);
                told.notify_one();
            }
        });
        Record { seen, more, task }
    }
}

/// What a condition of an object says, if it has it.
pub fn condition(object: &Value, kind: &str) -> Option<String> {
    let list = object["status"]["conditions"].as_array()?;
    let found = list.iter().find(|one| one["type"] == kind)?;
    Some(format!("{} {}", found["status"].as_str()?, found["reason"].as_str().unwrap_or_default()))
}

/// Events about an object of a kind, in their order.
pub fn event_about(event: &Value, kind: &str) -> Option<(String, String)> {
    (event["involvedObject"]["kind"] == kind).then(|| {
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let source = event["source"]["component"].as_str().unwrap_or_default();
        (format!("events of {kind}"), format!("{} {} {source}: {}", text("type"), text("reason"), text("message")))
    })
}

pub fn events() -> Gvr {
    Gvr::new("", "v1", "events")
}

pub fn pods() -> Gvr {
    Gvr::new("", "v1", "pods")
}

pub fn template(app: &str, image: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": image}]}})
}
