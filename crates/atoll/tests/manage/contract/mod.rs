//! Walks every path and verb of the contract in a running hub with two instances and three members, with clients made
//! of what the hub says of itself: REST by its OpenAPI document, gRPC by reflection.

mod fixture;
mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Value, json};

use crate::hub::{API, Hub, until};
use fixture::{Walk, body, definition, fill, fixture, named};
use shape::faults;

/// One operation of the contract.
pub struct Operation {
    verb: String,
    path: String,
    id: String,
    /// The schema of its answer.
    answer: Value,
    /// The fields of its body.
    body: Vec<String>,
}

impl Operation {
    /// Its service and method in gRPC.
    fn method(&self) -> (String, &str) {
        let (service, method) = self.id.split_once('_').unwrap();
        (format!("atoll.v1alpha1.{service}Service"), method)
    }
}

/// The operations of the contract in the document of the hub.
fn operations(document: &Value) -> Vec<Operation> {
    let mut all = Vec::new();
    for (path, verbs) in document["paths"].as_object().unwrap() {
        let Some(path) = path.strip_prefix(API) else { continue };
        for (verb, operation) in verbs.as_object().unwrap() {
            let schema = |part: &Value| part["content"]["application/json"]["schema"].clone();
            let asked = schema(&operation["requestBody"]);
            let name = asked["$ref"].as_str().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
            let fields = document["components"]["schemas"][name]["properties"].as_object();
            all.push(Operation {
                verb: verb.to_uppercase(),
                path: path.to_owned(),
                id: operation["operationId"].as_str().unwrap().to_owned(),
                answer: schema(&operation["responses"]["200"]),
                body: fields.map(|map| map.keys().cloned().collect()).unwrap_or_default(),
            });
        }
    }
    all
}

/// The document of the contract itself, with the schemas of its answers by verb and path.
struct Contract {
    definitions: Value,
    answers: BTreeMap<(String, String), Value>,
}

impl Contract {
    fn read() -> Option<Self> {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/openapi/kairship-v0.23.0.json");
        let document: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).unwrap();
        let mut answers = BTreeMap::new();
        for (path, verbs) in document["paths"].as_object().unwrap() {
            for (verb, operation) in verbs.as_object().unwrap() {
                let key = (verb.to_uppercase(), path.strip_prefix(API).unwrap().to_owned());
                answers.insert(key, operation["responses"]["200"]["schema"].clone());
            }
        }
        Some(Self { definitions: document["definitions"].clone(), answers })
    }
}

/// In which order operations make sense.
fn turn(operation: &Operation) -> u8 {
    let id = &operation.id;
    match operation.verb.as_str() {
        "POST" if id.contains("CustomResourceDefinition") || id.contains("CreateDeployment") => 0,
        "POST" if id.contains("_CreatePropagationPolicy") => 1,
        "POST" if id.contains("_Create") || id.contains("_Join") || id.contains("_Bind") => 2,
        "GET" => 3,
        "PUT" | "PATCH" => 4,
        "POST" => 5,
        _ => 6,
    }
}

/// Clients of a hub made of what it says of itself, and of the contract where that is at hand.
struct Clients<'a> {
    hub: &'a Hub,
    document: Value,
    pools: BTreeMap<String, DescriptorPool>,
    contract: Option<Contract>,
}

impl<'a> Clients<'a> {
    async fn new(hub: &'a Hub) -> Self {
        let (code, document) = hub.rest(Some(&hub.token), "GET", "/manage/openapi.json", None).await;
        assert_eq!(code, 200);
        let mut pools = BTreeMap::new();
        let services: BTreeSet<_> = operations(&document).iter().map(|operation| operation.method().0).collect();
        for service in services {
            let pool = hub.reflect(&service).await;
            pools.insert(service, pool);
        }
        Self { hub, document, pools, contract: Contract::read() }
    }

    /// What is wrong with an answer: by the document of the hub, as a message, and by the contract.
    fn check(&self, operation: &Operation, answer: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        faults(&self.document["components"]["schemas"], &operation.answer, answer, &operation.id, &mut wrong);
        let (service, method) = operation.method();
        let service = self.pools[&service].get_service_by_name(&service).unwrap();
        let output = service.methods().find(|own| own.name() == method).unwrap().output();
        // Fields that the message does not have are refused.
        if let Err(error) = DynamicMessage::deserialize(output, answer) {
            wrong.push(format!("{}: {error}", operation.id));
        }
        if let Some(contract) = &self.contract {
            let schema = &contract.answers[&(operation.verb.clone(), operation.path.clone())];
            faults(&contract.definitions, schema, answer, &operation.id, &mut wrong);
        }
        wrong
    }

    /// Whether gRPC answers a question as REST does; asked again while the answer itself changes.
    async fn agrees(&self, operation: &Operation, path: &str, fields: &Value, answer: Value) -> Result<(), String> {
        let (service, method) = operation.method();
        let token = Some(self.hub.token.as_str());
        let mut before = answer;
        for _ in 0..20 {
            let (code, by_grpc) = self.hub.ask(&self.pools[&service], token, &service, method, fields.clone()).await;
            if code == 0 && by_grpc == before {
                return Ok(());
            }
            let (_, after) = self.hub.rest(token, "GET", path, None).await;
            if code != 0 || before == after {
                return Err(format!("{}: REST says {after}, gRPC says {code} {by_grpc}", operation.id));
            }
            before = after;
        }
        Err(format!("{}: it changes all the time", operation.id))
    }

    /// Calls every operation; what is not served and why, and what is wrong.
    async fn walk(&self, walk: &Walk) -> (BTreeMap<String, String>, Vec<String>) {
        let mut all = operations(&self.document);
        all.sort_by_key(|operation| (turn(operation), std::cmp::Reverse(operation.path.len())));
        let (mut elsewhere, mut wrong) = (BTreeMap::new(), Vec::new());
        let token = Some(self.hub.token.as_str());
        for operation in &all {
            let (inside, fields) = fill(operation, walk);
            let path = format!("{API}{inside}");
            let (code, answer) = self.hub.rest(token, &operation.verb, &path, body(operation, &inside, walk)).await;
            match code {
                200 => {
                    wrong.extend(self.check(operation, &answer));
                    if operation.verb == "GET" {
                        wrong.extend(self.agrees(operation, &path, &fields, answer).await.err());
                    }
                }
                501 => {
                    let (service, method) = operation.method();
                    let (code, _) = self.hub.ask(&self.pools[&service], token, &service, method, fields).await;
                    wrong.extend((code != 12).then(|| format!("{}: {code} by gRPC", operation.id)));
                    let why = answer["message"].as_str().unwrap_or_default().to_owned();
                    elsewhere.insert(operation.id.clone(), why);
                }
                _ => wrong.push(format!("{} {} {path}: {code} {answer}", operation.id, operation.verb)),
            }
        }
        (elsewhere, wrong)
    }
}

/// A hub with `fleet` of two members and `second` of one.
async fn prepare() -> Hub {
    let hub = Hub::run(&["up", "--demo", "--members", "2", "--nodes", "1"]);
    let said = |words: &[&str]| {
        let (done, text) = hub.atoll(words, "");
        assert!(done, "atoll {words:?}: {text}");
        text
    };
    said(&["instance", "create", "second"]);
    said(&["sim", "create", "member3", "--nodes", "1"]);
    let [second, member] = ["second", "member3"].map(|name| {
        let path = hub.directory.path().join(format!("{name}.kubeconfig"));
        std::fs::write(&path, said(&["instance", "kubeconfig", name])).unwrap();
        path.display().to_string()
    });
    said(&["join", "member3", "--kubeconfig", &member, "--hub-kubeconfig", &second, "--instance", "second"]);
    let workspace =
        json!({"kind": "Workspace", "apiVersion": "atoll.io/v1alpha1", "metadata": {"name": "w"}, "spec": {"id": 7}});
    made(&hub, "/apis/atoll.io/v1alpha1/workspaces", workspace).await;
    hub
}

async fn made(hub: &Hub, path: &str, object: Value) {
    let (code, answer) = hub.rest(Some(&hub.token), "POST", path, Some(object)).await;
    assert_eq!(code, 201, "{path}: {answer}");
}

/// What one walk needs: kinds of its own, something to promote, and an index that knows its member.
async fn prepare_walk(hub: &Hub, walk: &Walk) {
    let instance = format!("/instances/{}", walk.instance);
    for definition in [definition("boats", "Boat", "Namespaced"), definition("seas", "Sea", "Cluster")] {
        made(hub, &format!("{instance}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"), definition).await;
    }
    let member = format!("/instances/{}", walk.member);
    for (group, resource) in
        [("apis/apps", "deployments"), ("api", "services"), ("apis/networking.k8s.io", "ingresses")]
    {
        let object: Value = serde_json::from_str(&named(fixture(resource), "far")).unwrap();
        made(hub, &format!("{member}/{group}/v1/namespaces/default/{resource}"), object).await;
    }
    let found = format!("/manage/v1alpha1/search?names=far&sources={}/{}", walk.instance, walk.member);
    let known = async || {
        let (_, answer) = hub.rest(Some(&hub.token), "GET", &found, None).await;
        ["Deployment", "Service", "Ingress"]
            .iter()
            .all(|kind| answer["items"].as_array().into_iter().flatten().any(|item| item["kind"] == *kind))
    };
    until(hub, "the index knows the member", known).await;
}

/// The page that lists all operations.
fn page(document: &Value, elsewhere: &BTreeMap<String, String>) -> String {
    let mut all = operations(document);
    all.sort_by(|a, b| (a.id.split('_').next(), &a.path, &a.verb).cmp(&(b.id.split('_').next(), &b.path, &b.verb)));
    let mut text = format!(
        "# Operations of the management plane\n\n\
         The contract of Kairship v0.23.0 has {} operations below `{API}`. {} are served, {} answer\n\
         `Unimplemented` with the reason given here. The table is written by a test\n\
         (`cargo test -p atoll --test manage contract`) that calls every operation of a running hub with two instances and\n\
         three members, by REST and by gRPC, with clients made of what the hub says of itself, and compares the shapes of the\n\
         answers; it fails when this page is out of date, and writes it anew when `ATOLL_WRITE_DOCS=1` is set.\n\n\
         Operations beyond the contract are described in [management](howto/management.md).\n\n\
         | service | operation | verb | path | answer |\n|---|---|---|---|---|\n",
        all.len(),
        all.len() - elsewhere.len(),
        elsewhere.len(),
    );
    for operation in all {
        let (service, name) = operation.id.split_once('_').unwrap();
        let answer = elsewhere.get(&operation.id).map_or("served".to_owned(), |why| format!("unimplemented: {why}"));
        text.push_str(&format!("| {service} | {name} | {} | `{}` | {answer} |\n", operation.verb, operation.path));
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_of_the_contract_is_answered_in_every_instance_of_a_running_hub() {
    let hub = prepare().await;
    let clients = Clients::new(&hub).await;
    match &clients.contract {
        Some(contract) => {
            let own = operations(&clients.document).into_iter().map(|own| (own.verb, own.path));
            assert_eq!(own.collect::<BTreeSet<_>>(), contract.answers.keys().cloned().collect());
        }
        None => {
            println!("SKIPPED: the document of the contract is not there; that of the hub is compared with the page")
        }
    }
    let mut tables = Vec::new();
    for walk in [
        Walk { instance: "fleet", member: "member1", spare: "spare" },
        Walk { instance: "second", member: "member3", spare: "other" },
    ] {
        prepare_walk(&hub, &walk).await;
        let (elsewhere, wrong) = clients.walk(&walk).await;
        assert!(wrong.is_empty(), "{} faults in {}:\n{}", wrong.len(), walk.instance, wrong.join("\n"));
        tables.push(elsewhere);
    }
    assert_eq!(tables[0], tables[1]);
    let text = page(&clients.document, &tables[0]);
    println!("{text}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/management-operations.md");
    if std::env::var_os("ATOLL_WRITE_DOCS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(known == text, "docs/management-operations.md is out of date: run this test with ATOLL_WRITE_DOCS=1");
}
