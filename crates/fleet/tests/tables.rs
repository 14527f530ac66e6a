//! What `kubectl get` shows of the kinds of a fleet, beside the columns of the originals.
#![allow(clippy::unwrap_used)]

mod support;

use atoll_meta::Gvr;
use atoll_runtime::{Patch, collect};
use atoll_testkit::peers;
use bytes::Bytes;
use http::Request;
use regex::Regex;
use serde_json::{Value, json};
use support::{World, bindings, clusters, core, works};

/// The name of a column, its type, and 0 unless it is only shown when asked for.
type Column = (String, String, i64);

/// The columns of a collection and the cells of its rows.
async fn table(world: &World, path: &str) -> (Vec<Column>, Vec<Vec<Value>>) {
    let request = Request::get(path).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let answer = world.instance.transport().send(request.body(Bytes::new()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    let table: Value = serde_json::from_slice(&collect(answer.into_body()).await.unwrap()).unwrap();
    assert_eq!(table["kind"], "Table", "{table}");
    let rows = table["rows"].as_array().unwrap().iter().map(|row| row["cells"].as_array().unwrap().clone());
    (table["columnDefinitions"].as_array().unwrap().iter().map(column).collect(), rows.collect())
}

fn column(column: &Value) -> Column {
    let text = |field: &str| column[field].as_str().unwrap().to_owned();
    (text("name"), text("type"), column["priority"].as_i64().unwrap_or_default())
}

/// The columns of a version in one of Karmada's definitions, behind the name.
fn original(file: &str, version: &str) -> Option<Vec<Column>> {
    let path = peers::karmada_definitions().into_iter().find(|path| path.ends_with(file))?;
    let definition: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let versions = definition["spec"]["versions"].as_array().unwrap();
    let version = versions.iter().find(|own| own["name"] == version).unwrap();
    let mut columns = vec![("Name".to_owned(), "string".to_owned(), 0)];
    columns.extend(version["additionalPrinterColumns"].as_array().unwrap().iter().map(column));
    Some(columns)
}

/// The columns in which Karmada's server prints clusters, from its source.
fn printed_clusters() -> Option<Vec<Column>> {
    let path = peers::cache().join("src/karmada/pkg/printers/internalversion/printers.go");
    let Ok(source) = std::fs::read_to_string(path) else {
        peers::skip("the source of Karmada is missing (tests/peers/build karmadactl)");
        return None;
    };
    let definition =
        Regex::new(r#"\{Name: "([^"]+)", Type: "([^"]+)",(?: Format: "[^"]+",)?(?: Priority: (\d+),)?"#).unwrap();
    let found = definition.captures_iter(&source).map(|found| {
        let priority = found.get(3).map_or(0, |number| number.as_str().parse().unwrap());
        (found[1].to_owned(), found[2].to_owned(), priority)
    });
    Some(found.collect())
}

fn condition(ty: &str) -> Value {
    json!([{"type": ty, "status": "True", "reason": "r", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z"}])
}

async fn report(world: &World, gvr: &Gvr, namespace: Option<&str>, name: &str, status: Value) {
    world.instance.patch(gvr, namespace, name, "status", Patch::Merge, &json!({"status": status})).await.unwrap();
}

/// Ages are some seconds, and differ from run to run.
fn without_age(columns: &[Column], mut cells: Vec<Value>) -> Vec<Value> {
    let at = columns.iter().position(|column| column.0.eq_ignore_ascii_case("age")).unwrap();
    assert!(cells[at].as_str().unwrap().ends_with('s'), "{cells:?}");
    cells[at] = "age".into();
    cells
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_are_listed_as_karmada_lists_them() {
    let world = World::new(0).await;
    let make = async |name: &str, spec: Value| {
        let cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}, "spec": spec});
        world.instance.create(&clusters(), None, &cluster).await.unwrap();
    };
    make("bare", json!({"syncMode": "Pull"})).await;
    make("full", json!({"syncMode": "Push", "apiEndpoint": "https://m", "zones": ["a", "b"], "region": "r", "provider": "p", "proxyURL": "http://p"}))
        .await;
    report(
        &world,
        &clusters(),
        None,
        "full",
        json!({"kubernetesVersion": "v1.35.0", "conditions": condition("Ready")}),
    )
    .await;
    let (columns, rows) = table(&world, "/apis/cluster.karmada.io/v1alpha1/clusters").await;
    let cells: Vec<Vec<Value>> = rows.into_iter().map(|cells| without_age(&columns, cells)).collect();
    let none = "<none>";
    assert_eq!(
        cells,
        [
            json!(["bare", null, "Pull", "Unknown", "age", none, none, none, null, none]),
            json!(["full", "v1.35.0", "Push", "True", "age", "a,b", "r", "p", "https://m", "http://p"]),
        ]
        .map(|row| row.as_array().unwrap().clone())
    );
    let Some(mut wanted) = printed_clusters() else { return };
    // An age is a date here, which the server turns into the same words.
    for column in wanted.iter_mut().filter(|column| column.0 == "Age") {
        column.1 = "date".to_owned();
    }
    assert_eq!(columns, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn bindings_and_works_are_listed_as_karmada_lists_them() {
    let world = World::new(0).await;
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "karmada-es-m1"}});
    world.instance.create(&core("namespaces"), None, &space).await.unwrap();
    let binding = json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": {"name": "web"},
        "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "default"}}});
    world.instance.create(&bindings(), Some("default"), &binding).await.unwrap();
    report(&world, &bindings(), Some("default"), "web", json!({"conditions": condition("Scheduled")})).await;
    let (columns, mut rows) = table(&world, "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings").await;
    let cells = without_age(&columns, rows.remove(0));
    assert_eq!(cells, *json!(["web", "True", null, "age"]).as_array().unwrap());
    if let Some(wanted) = original("work.karmada.io_resourcebindings.yaml", "v1alpha2") {
        assert_eq!(columns, wanted);
    }

    let manifests = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}]);
    let work = json!({"apiVersion": "work.karmada.io/v1alpha1", "kind": "Work", "metadata": {"name": "web"}, "spec": {"workload": {"manifests": manifests}}});
    world.instance.create(&works(), Some("karmada-es-m1"), &work).await.unwrap();
    report(&world, &works(), Some("karmada-es-m1"), "web", json!({"conditions": condition("Applied")})).await;
    let (columns, mut rows) = table(&world, "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m1/works").await;
    let cells = without_age(&columns, rows.remove(0));
    assert_eq!(cells, *json!(["web", "Deployment,Service", "True", "age"]).as_array().unwrap());
    if let Some(wanted) = original("work.karmada.io_works.yaml", "v1alpha1") {
        assert_eq!(columns, wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_of_clusters_is_listed_and_available() {
    let world = World::new(0).await;
    let (columns, rows) = table(&world, "/apis/apiregistration.k8s.io/v1/apiservices").await;
    let row = rows.into_iter().find(|cells| cells[0] == "v1alpha1.cluster.karmada.io").unwrap();
    assert_eq!(
        without_age(&columns, row),
        *json!(["v1alpha1.cluster.karmada.io", "Local", "True", "age"]).as_array().unwrap()
    );
    let services = Gvr::new("apiregistration.k8s.io", "v1", "apiservices");
    let read = world.instance.get(&services, None, "v1alpha1.cluster.karmada.io").await.unwrap();
    let told = &read["status"]["conditions"][0];
    assert_eq!(
        (&told["type"], &told["status"], &told["reason"]),
        (&json!("Available"), &json!("True"), &json!("Local"))
    );
    assert_eq!(read["spec"].get("service"), None, "{read}");
}
