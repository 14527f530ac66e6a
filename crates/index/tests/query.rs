//! What a question finds, compared with a filter that looks at every object.
#![allow(clippy::unwrap_used)]

mod server;

use atoll_index::{Choice, Column, Everything, Facet, Index, OwnerOf, Place, Query, ResourceName, Rights, Row, Sort};
use atoll_meta::Status;
use atoll_meta::selector::{FieldSelector, LabelSelector};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

/// One object of the test world.
#[derive(Clone, Debug)]
struct Thing {
    source: &'static str,
    resource: (&'static str, &'static str),
    tree: Value,
}

const SOURCES: [&str; 3] = ["a", "a/m1", "b/m1"];
const RESOURCES: [(&str, &str); 3] = [("", "pods"), ("apps", "deployments"), ("", "nodes")];
const NAMESPACES: [&str; 3] = ["n1", "n2", "n3"];

fn thing() -> impl Strategy<Value = Thing> {
    let labels = prop::collection::btree_map("(app|tier|n)", "(x|y|1|5|12)", 0..3);
    (0..3usize, 0..3usize, 0..3usize, 0..6u32, labels, 0..4u64, prop::option::of(0..4u32), "(Running|Failed|)").prop_map(
        |(source, resource, namespace, number, labels, day, owner, phase)| {
            let resource = RESOURCES[resource];
            let kind = match resource.1 {
                "pods" => "Pod",
                "nodes" => "Node",
                _ => "Deployment",
            };
            let name = format!("{}-{number}", if number % 2 == 0 { "web" } else { "db" });
            let mut tree = json!({
                "kind": kind, "apiVersion": "v1",
                "metadata": {"name": name, "labels": labels, "uid": format!("u{number}"), "resourceVersion": format!("{day}"),
                             "creationTimestamp": format!("2024-01-0{}T00:00:00Z", day + 1)},
                "spec": {"replicas": day, "paused": day % 2 == 0}, "status": {"phase": phase},
            });
            if resource.1 != "nodes" {
                tree["metadata"]["namespace"] = NAMESPACES[namespace].into();
            }
            if let Some(owner) = owner {
                tree["metadata"]["ownerReferences"] = json!([{"uid": format!("u{owner}")}]);
            }
            Thing { source: SOURCES[source], resource, tree }
        },
    )
}

fn selector() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "app=x",
        "app in (x,y)",
        "app!=x",
        "app notin (x,y)",
        "app",
        "!app",
        "n>3",
        "n<3",
        "app=x,tier",
        "app=x,tier!=y",
        "n>1,app",
    ])
}

fn fields() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "status.phase=Running",
        "status.phase!=Running",
        "status.phase=",
        "spec.replicas=2",
        "spec.paused=true",
        "spec.paused!=true",
        "metadata.name=web-2",
        "metadata.namespace!=n1",
        "metadata.labels['app']=x",
        "spec.missing=",
        "spec.missing!=1",
    ])
}

prop_compose! {
    fn question()(
        sources in prop::sample::subsequence(vec!["a", "a/m1", "b/m1", "a/*"], 0..3),
        resources in prop::sample::subsequence(RESOURCES.to_vec(), 0..3),
        namespaces in prop::sample::subsequence(NAMESPACES.to_vec(), 0..3),
        names in prop::sample::subsequence(vec!["web-0", "db-1", "web-4"], 0..3),
        fuzzy in prop::sample::subsequence(vec!["web", "B-", "4"], 0..2),
        labels in selector(), fields in fields(),
        owner in prop::option::of(0..4u32),
        days in (prop::option::of(1..4u32), prop::option::of(1..4u32)),
        sort in prop::sample::subsequence(vec![Column::Name, Column::Created, Column::Namespace, Column::Source, Column::Resource], 0..3),
        descending in any::<bool>(), limit in 1..7usize,
    ) -> Query {
        let own = |list: Vec<&str>| list.into_iter().map(ToOwned::to_owned).collect::<Vec<String>>();
        let day = |day: Option<u32>| day.map(|day| format!("2024-01-0{day}T00:00:00Z").parse().unwrap());
        Query {
            sources: own(sources), namespaces: own(namespaces), names: own(names), fuzzy: own(fuzzy),
            resources: resources.iter().map(|(group, resource)| ResourceName::new(group, resource)).collect(),
            labels: LabelSelector::parse(labels).unwrap(), fields: FieldSelector::parse(fields).unwrap(),
            owner: owner.map(|owner| OwnerOf { uid: Some(format!("u{owner}")), ..OwnerOf::default() }),
            since: day(days.0), before: day(days.1),
            sort: sort.into_iter().map(|column| Sort { column, descending }).collect(),
            limit: Some(limit), ..Query::default()
        }
    }
}

/// Sees some namespaces of some resources.
struct Some3 {
    whole: Vec<&'static str>,
    part: Vec<&'static str>,
}

#[async_trait::async_trait]
impl Rights for Some3 {
    async fn may_see(&self, place: Place<'_>) -> Result<bool, Status> {
        Ok(self.allows(place.source, place.namespace))
    }
}

impl Some3 {
    fn allows(&self, source: &str, namespace: Option<&str>) -> bool {
        self.whole.contains(&source) || namespace.is_some_and(|namespace| self.part.contains(&namespace))
    }
}

/// The last thing told under each name is the one there is.
fn world(things: &[Thing]) -> Vec<Thing> {
    let mut latest: std::collections::BTreeMap<(String, String, String, String), Thing> =
        std::collections::BTreeMap::new();
    for thing in things {
        let row = Row::of(thing.tree.clone()).unwrap();
        let key = (thing.source.to_owned(), thing.resource.1.to_owned(), row.namespace, row.name);
        latest.insert(key, thing.clone());
    }
    latest.into_values().collect()
}

async fn filled(index: &Index, things: &[Thing]) {
    for thing in things {
        let (group, resource) = thing.resource;
        // Each comes with its own revision, so that no write is taken for a repetition.
        index.put(thing.source, group, "v1", resource, resource != "nodes", vec![thing.tree.clone()]).await.unwrap();
    }
}

fn expected(things: &[Thing], query: &Query, rights: &Some3) -> Vec<String> {
    let mut found: Vec<String> = world(things)
        .into_iter()
        .filter(|thing| {
            let row = Row::of(thing.tree.clone()).unwrap();
            let source = query.sources.is_empty()
                || query.sources.iter().any(|own| own == thing.source || (own == "a/*" && thing.source == "a/m1"));
            let resource =
                query.resources.is_empty() || query.resources.iter().any(|own| own.resource == thing.resource.1);
            let namespace = (!row.namespace.is_empty()).then_some(row.namespace.as_str());
            source && resource && rights.allows(thing.source, namespace) && query.matches(&row).unwrap()
        })
        .map(|thing| show(thing.source, thing.resource.1, &thing.tree))
        .collect();
    found.sort();
    found
}

fn show(source: &str, resource: &str, tree: &Value) -> String {
    format!("{source} {resource} {} {}", tree["metadata"]["namespace"], tree["metadata"]["name"])
}

fn check(things: Vec<Thing>, query: Query, whole: Vec<&'static str>, part: Vec<&'static str>, choice: Choice) {
    // A thing told twice with the same revision would be taken for the same thing.
    let things: Vec<Thing> = things
        .into_iter()
        .enumerate()
        .map(|(at, mut thing)| {
            thing.tree["metadata"]["resourceVersion"] = format!("{}", at + 1).into();
            thing
        })
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let index = Index::open(&choice).await.unwrap();
        for source in index.known_sources() {
            index.unfollow(&source).await;
        }
        filled(&index, &things).await;
        let rights = Some3 { whole, part };
        let wanted = expected(&things, &query, &rights);
        // Page by page, in order, nothing twice, remaining exact.
        let (mut found, mut token) = (Vec::new(), None);
        loop {
            let asked = Query { token, remaining: true, ..query.clone() };
            let page = index.query(&asked, &rights).await.unwrap();
            assert!(page.items.len() <= query.limit.unwrap());
            found.extend(page.items.clone());
            assert_eq!(page.remaining, Some((wanted.len() - found.len()) as u64));
            token = page.token;
            if token.is_none() {
                break;
            }
        }
        for pair in found.windows(2) {
            for sort in &query.sort {
                let key = |at: usize| match sort.column {
                    Column::Name => pair[at].name.clone(),
                    Column::Namespace => pair[at].namespace.clone(),
                    Column::Created => format!("{:020}", pair[at].created),
                    Column::Source => pair[at].shelf.key.source.clone(),
                    Column::Resource => pair[at].shelf.key.resource.clone(),
                };
                let order = if sort.descending { key(1).cmp(&key(0)) } else { key(0).cmp(&key(1)) };
                assert_ne!(order, std::cmp::Ordering::Greater, "out of order by {:?}", sort.column);
                if order == std::cmp::Ordering::Less {
                    break;
                }
            }
        }
        let mut shown: Vec<String> =
            found.iter().map(|item| show(&item.shelf.key.source, &item.shelf.key.resource, &item.tree())).collect();
        shown.sort();
        assert_eq!(shown, wanted);
        let total: u64 = index.count(&query, &rights).await.unwrap().iter().map(|(_, count)| count).sum();
        assert_eq!(total as usize, wanted.len());
        let facets = index.facet(&query, &Facet::Namespace, 100, &rights).await.unwrap();
        assert_eq!(facets.iter().map(|(_, count)| count).sum::<u64>() as usize, wanted.len());
        // The same by page numbers.
        let second = Query { offset: 2, limit: None, ..query.clone() };
        assert_eq!(index.query(&second, &rights).await.unwrap().items.len(), wanted.len().saturating_sub(2));
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn the_index_finds_what_a_naive_filter_finds(
        things in prop::collection::vec(thing(), 0..24), query in question(),
        whole in prop::sample::subsequence(SOURCES.to_vec(), 0..=3), part in prop::sample::subsequence(NAMESPACES.to_vec(), 0..=3),
    ) {
        check(things, query, whole, part, Choice::Memory);
    }
}

#[test]
fn postgresql_finds_the_same() {
    let Some(server) = server::Postgres::start() else { return };
    let choice = Choice::Postgres(server.url());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    drop(runtime.block_on(Index::open(&choice)).unwrap());
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) });
    let parts = (
        prop::collection::vec(thing(), 0..24),
        question(),
        prop::sample::subsequence(SOURCES.to_vec(), 0..=3),
        prop::sample::subsequence(NAMESPACES.to_vec(), 0..=3),
    );
    let tried = runner.run(&parts, |(things, query, whole, part)| {
        check(things, query, whole, part, choice.clone());
        Ok(())
    });
    tried.unwrap();
}

#[tokio::test]
async fn s14_no_text_becomes_part_of_a_statement() {
    let index = Index::open(&Choice::Memory).await.unwrap();
    let pod =
        json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "n", "labels": {"app": "x"}}});
    index.put("a", "", "v1", "pods", true, vec![pod]).await.unwrap();
    let attacks = [
        "' OR '1'='1",
        "\"; DROP TABLE objects; --",
        "x') UNION SELECT * FROM shelves --",
        "%",
        "\\",
        "?1",
        "$1",
        "\u{0}",
        "[\"a\"]",
    ];
    for attack in attacks {
        let text = vec![attack.to_owned()];
        let queries = [
            Query { sources: text.clone(), ..Query::default() },
            Query { namespaces: text.clone(), ..Query::default() },
            Query { names: text.clone(), ..Query::default() },
            Query { names: vec![attack.into(), "y".into()], ..Query::default() },
            Query { fuzzy: text.clone(), ..Query::default() },
            Query { kinds: text.clone(), ..Query::default() },
            Query {
                owner: Some(OwnerOf { uid: Some(attack.into()), generations: 2, ..OwnerOf::default() }),
                ..Query::default()
            },
            Query { owner: Some(OwnerOf { name: Some(attack.into()), ..OwnerOf::default() }), ..Query::default() },
            Query { fields: FieldSelector::exactly("spec.x", attack), ..Query::default() },
            Query { fields: FieldSelector::exactly("status.phase", attack), ..Query::default() },
            Query { fields: FieldSelector::exactly(attack, "x"), ..Query::default() },
            Query { token: Some(attack.into()), ..Query::default() },
        ];
        for query in queries {
            // Refused or nothing found; never an error of the database, never everything.
            match index.query(&query, &Everything).await {
                Ok(page) => assert!(page.items.is_empty(), "{attack:?} {query:?}"),
                Err(status) => assert_eq!(status.code, 400, "{attack:?} {query:?} {status}"),
            }
        }
        for facet in [Facet::Label(attack.into()), Facet::Field(attack.into())] {
            assert_eq!(index.facet(&Query::default(), &facet, 10, &Everything).await.unwrap(), []);
        }
    }
    assert_eq!(index.query(&Query::default(), &Everything).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn owners_are_found_over_generations() {
    let index = Index::open(&Choice::Memory).await.unwrap();
    let object = |kind: &str, name: &str, uid: &str, owner: &str| json!({"kind": kind, "apiVersion": "v1", "metadata": {"name": name, "namespace": "n", "uid": uid, "ownerReferences": [{"uid": owner}]}});
    index.put("a", "apps", "v1", "deployments", true, vec![object("Deployment", "web", "d", "")]).await.unwrap();
    index.put("a", "apps", "v1", "replicasets", true, vec![object("ReplicaSet", "web-1", "r", "d")]).await.unwrap();
    index
        .put("a", "", "v1", "pods", true, vec![object("Pod", "web-1-x", "p", "r"), object("Pod", "other", "q", "z")])
        .await
        .unwrap();
    let names = async |owner: OwnerOf| {
        let query = Query { owner: Some(owner), ..Query::default() };
        let page = index.query(&query, &Everything).await.unwrap();
        page.items.into_iter().map(|item| item.name).collect::<Vec<_>>()
    };
    let by_name = OwnerOf {
        name: Some("web".into()),
        resource: Some(ResourceName::new("apps", "deployments")),
        ..OwnerOf::default()
    };
    assert_eq!(names(by_name.clone()).await, ["web-1"]);
    assert_eq!(names(OwnerOf { generations: 1, ..by_name }).await, ["web-1-x"]);
    assert_eq!(names(OwnerOf { uid: Some("d".into()), generations: 1, ..OwnerOf::default() }).await, ["web-1-x"]);
}

/// Sees one resource only.
struct Only(&'static str);

#[async_trait::async_trait]
impl Rights for Only {
    async fn may_see(&self, place: Place<'_>) -> Result<bool, Status> {
        Ok(place.resource == self.0)
    }
}

#[tokio::test]
async fn the_name_of_an_owner_that_is_hidden_finds_nothing() {
    let index = Index::open(&Choice::Memory).await.unwrap();
    let object = |kind: &str, name: &str, uid: &str, owner: &str| json!({"kind": kind, "apiVersion": "v1", "metadata": {"name": name, "namespace": "n", "uid": uid, "ownerReferences": [{"uid": owner}]}});
    index.put("a", "batch", "v1", "jobs", true, vec![object("Job", "hidden", "j", "")]).await.unwrap();
    index.put("a", "", "v1", "pods", true, vec![object("Pod", "p", "p", "j")]).await.unwrap();
    let owner = OwnerOf { name: Some("hidden".into()), ..OwnerOf::default() };
    let query = Query { owner: Some(owner), ..Query::default() };
    assert_eq!(index.query(&query, &Everything).await.unwrap().items.len(), 1);
    assert_eq!(index.query(&query, &Only("pods")).await.unwrap().items.len(), 0);
    assert!(index.count(&query, &Only("pods")).await.unwrap().is_empty());
}

#[tokio::test]
async fn s12_secrets_never_reach_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::open(&Choice::Sqlite(directory.path().join("index.db"))).await.unwrap();
    let secret = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s", "namespace": "n", "labels": {"app": "kept"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "canary-1"}}, "data": {"key": "canary-2"}, "stringData": {"k": "canary-3"}});
    let work = json!({"kind": "Work", "apiVersion": "work.karmada.io/v1alpha1", "metadata": {"name": "w", "namespace": "n"},
        "spec": {"workload": {"manifests": [secret.clone()]}}});
    index.put("a", "", "v1", "secrets", true, vec![secret]).await.unwrap();
    index.put("a", "work.karmada.io", "v1alpha1", "works", true, vec![work]).await.unwrap();
    index.close().await;
    let mut kept = false;
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("canary"));
        kept |= text.contains("kept");
    }
    assert!(kept, "the test looked at the right files");
}

#[tokio::test]
async fn what_was_known_is_found_after_a_restart_and_forgotten_when_told() {
    let directory = tempfile::tempdir().unwrap();
    let choice = Choice::Sqlite(directory.path().join("index.db"));
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "n", "uid": "u", "ownerReferences": [{"uid": "o"}], "labels": {"a": "b"}}});
    Index::open(&choice).await.unwrap().put("a", "", "v1", "pods", true, vec![pod]).await.unwrap();
    let index = Index::open(&choice).await.unwrap();
    assert_eq!(index.query(&Query::of("a", "", "pods"), &Everything).await.unwrap().items.len(), 1);
    index.unfollow("a").await;
    assert!(index.query(&Query::default(), &Everything).await.unwrap().items.is_empty());
    assert!(index.facet(&Query::default(), &Facet::Label("a".into()), 9, &Everything).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_token_serves_only_its_own_question() {
    let index = Index::open(&Choice::Memory).await.unwrap();
    let pods =
        (0..3).map(|n| json!({"kind": "Pod", "metadata": {"name": format!("p{n}"), "namespace": "n"}})).collect();
    index.put("a", "", "v1", "pods", true, pods).await.unwrap();
    let query = Query { limit: Some(1), ..Query::default() };
    let token = index.query(&query, &Everything).await.unwrap().token;
    let other = Query { namespaces: vec!["m".into()], token: token.clone(), ..query.clone() };
    assert_eq!(index.query(&other, &Everything).await.unwrap_err().code, 400);
    assert_eq!(index.query(&Query { token, ..query }, &Everything).await.unwrap().items[0].name, "p1");
}

#[tokio::test]
async fn a_watch_tells_what_enters_and_leaves_the_question() {
    let index = Index::open(&Choice::Memory).await.unwrap();
    let pod = |revision: u32, app: &str| {
        vec![
            json!({"kind": "Pod", "metadata": {"name": "p", "namespace": "n", "resourceVersion": revision.to_string(), "labels": {"app": app}}}),
        ]
    };
    index.put("a", "", "v1", "pods", true, pod(1, "x")).await.unwrap();
    let query = Query { labels: LabelSelector::parse("app=x").unwrap(), ..Query::default() };
    let (page, mut live) = index.watch(query, std::sync::Arc::new(Everything)).await.unwrap();
    assert_eq!(page.items.len(), 1);
    index.put("a", "", "v1", "pods", true, pod(2, "y")).await.unwrap();
    assert!(matches!(live.next().await.unwrap(), atoll_index::LiveEvent::Removed(..)));
    index.put("a", "", "v1", "pods", true, pod(3, "x")).await.unwrap();
    assert!(matches!(live.next().await.unwrap(), atoll_index::LiveEvent::Put(..)));
    let shelf = index.shelf("a", "", "pods").unwrap();
    index.remove(&shelf, "n", "p").await;
    assert!(matches!(live.next().await.unwrap(), atoll_index::LiveEvent::Removed(..)));
}

/// Sees everything until told otherwise; it tells of that or not.
struct Revocable {
    revoked: tokio::sync::watch::Sender<u64>,
    tells: bool,
}

#[async_trait::async_trait]
impl Rights for Revocable {
    async fn may_see(&self, _place: Place<'_>) -> Result<bool, Status> {
        Ok(*self.revoked.borrow() == 0)
    }

    fn changes(&self) -> Option<tokio::sync::watch::Receiver<u64>> {
        self.tells.then(|| self.revoked.subscribe())
    }
}

#[tokio::test]
async fn a_quiet_watch_ends_when_its_rights_do() {
    let index = Index::open(&Choice::Memory).await.unwrap();
    index
        .put("a", "", "v1", "pods", true, vec![json!({"kind": "Pod", "metadata": {"name": "p", "namespace": "n"}})])
        .await
        .unwrap();
    // By the clock of the test: within a second of being told, else when it is looked at again.
    for (tells, latest) in [(true, 1), (false, 16)] {
        let rights = std::sync::Arc::new(Revocable { revoked: tokio::sync::watch::Sender::new(0), tells });
        let (_, mut live) = index.watch(Query::default(), rights.clone()).await.unwrap();
        tokio::time::pause();
        let begin = tokio::time::Instant::now();
        rights.revoked.send_replace(1);
        assert_eq!(live.next().await.unwrap_err().code, 403);
        assert!(begin.elapsed() <= std::time::Duration::from_secs(latest), "{:?}", begin.elapsed());
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_storm_of_changes_does_not_put_off_the_look_at_rights() {
    let index = Index::open(&Choice::Memory).await.unwrap();
    index.put("a", "", "v1", "pods", true, labelled("p", 1)).await.unwrap();
    let rights = std::sync::Arc::new(Revocable { revoked: tokio::sync::watch::Sender::new(0), tells: true });
    let (_, mut live) = index.watch(Query::default(), rights.clone()).await.unwrap();
    tokio::time::pause();
    let begin = tokio::time::Instant::now();
    let storm = async {
        loop {
            rights.revoked.send_modify(|epoch| *epoch += 1);
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    let ended = tokio::select! {
        () = storm => unreachable!("it never ends"),
        ended = tokio::time::timeout(std::time::Duration::from_secs(60), live.next()) => ended,
    };
    assert_eq!(ended.expect("it is looked at").unwrap_err().code, 403);
    assert!(begin.elapsed() <= std::time::Duration::from_secs(1), "{:?}", begin.elapsed());
}

fn labelled(name: &str, revision: u32) -> Vec<Value> {
    vec![
        json!({"kind": "Pod", "metadata": {"name": name, "namespace": "n", "resourceVersion": revision.to_string(), "labels": {"app": "x"}}}),
    ]
}

#[tokio::test]
async fn nothing_of_a_change_is_told_once_the_right_to_it_is_gone() {
    for change in ["changed", "gone", "no longer wanted", "never shown"] {
        let index = Index::open(&Choice::Memory).await.unwrap();
        index.put("a", "", "v1", "pods", true, labelled("p", 1)).await.unwrap();
        let rights = std::sync::Arc::new(Revocable { revoked: tokio::sync::watch::Sender::new(0), tells: false });
        let query = Query { labels: LabelSelector::parse("app=x").unwrap(), ..Query::default() };
        let (page, mut live) = index.watch(query, rights.clone()).await.unwrap();
        assert_eq!(page.items.len(), 1);
        rights.revoked.send_replace(1);
        let shelf = index.shelf("a", "", "pods").unwrap();
        match change {
            "changed" => index.put("a", "", "v1", "pods", true, labelled("p", 2)).await.unwrap(),
            "gone" => index.remove(&shelf, "n", "p").await,
            "no longer wanted" => {
                let mut other = labelled("p", 2);
                other[0]["metadata"]["labels"]["app"] = "y".into();
                index.put("a", "", "v1", "pods", true, other).await.unwrap();
            }
            // What the caller never saw is passed over; the next change of what they did see ends the watch.
            _ => {
                index.put("a", "", "v1", "pods", true, labelled("q", 2)).await.unwrap();
                index.remove(&shelf, "n", "p").await;
            }
        }
        assert_eq!(live.next().await.unwrap_err().code, 403, "{change}");
    }
}

/// Cannot say anything of one source once told so.
struct Silent(&'static str, std::sync::atomic::AtomicBool);

#[async_trait::async_trait]
impl Rights for Silent {
    async fn may_see(&self, place: Place<'_>) -> Result<bool, Status> {
        let silent = place.source == self.0 && self.1.load(std::sync::atomic::Ordering::SeqCst);
        if silent { Err(Status::unavailable("silent")) } else { Ok(true) }
    }
}

#[tokio::test]
async fn a_source_whose_rights_cannot_be_known_is_left_out_of_a_search_and_ends_a_watch() {
    let index = Index::open(&Choice::Memory).await.unwrap();
    for source in ["a", "b"] {
        index.put(source, "", "v1", "pods", true, labelled("p", 1)).await.unwrap();
    }
    let rights = std::sync::Arc::new(Silent("b", false.into()));
    let (page, mut live) = index.watch(Query::default(), rights.clone()).await.unwrap();
    assert_eq!(page.items.len(), 2);
    rights.1.store(true, std::sync::atomic::Ordering::SeqCst);
    let page = index.query(&Query::default(), &*rights).await.unwrap();
    assert_eq!(page.items.iter().map(|item| &*item.shelf.key.source).collect::<Vec<_>>(), ["a"]);
    index.put("b", "", "v1", "pods", true, labelled("p", 2)).await.unwrap();
    assert_eq!(live.next().await.unwrap_err().code, 503, "not told as gone");
}
