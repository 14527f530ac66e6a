//! `atoll get`: objects of all members at once.

use std::collections::BTreeSet;

use atoll_meta::Gvr;
use atoll_runtime::Endpoint;
use clap::Args;
use http::Method;
use serde_json::{Value, json};

use super::access::{Access, Fault, block_on, told};
use super::output::{self, Format};
use super::pods::member_path;

/// How long a member may take unless said otherwise: the others have answered long before.
const PATIENCE: u64 = 5;

/// List objects of all members of an instance.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  atoll get pods -A\n  atoll get deployments -n shop -l app=web -o wide\n  atoll get deploy/web -o yaml\n  atoll get nodes --clusters member1,member2"
)]
pub struct Get {
    /// Resource: plural, singular, short name or `resource.group`; with a name also `RESOURCE/NAME`
    resource: String,
    /// Name of one object
    name: Option<String>,
    /// Namespace
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// All namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Label selector
    #[arg(short = 'l', long, default_value = "", hide_default_value = true)]
    selector: String,
    /// Only these members, separated by commas
    #[arg(long, value_delimiter = ',')]
    clusters: Vec<String>,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    /// Seconds to wait for a member; one that takes longer is named and left out
    #[arg(long, default_value_t = PATIENCE)]
    timeout: u64,
    #[command(flatten)]
    access: Access,
}

/// A resource as discovery describes it.
pub struct Resource {
    /// Where it is.
    pub gvr: Gvr,
    /// Whether it lives in namespaces.
    pub namespaced: bool,
}

impl Get {
    /// Runs it.
    pub fn run(mut self) -> anyhow::Result<()> {
        if let Some((resource, name)) = self.resource.split_once('/') {
            if self.name.is_some() {
                return Err(Fault::Usage("say RESOURCE/NAME, or RESOURCE and NAME".into()).into());
            }
            (self.name, self.resource) = (Some(name.to_owned()), resource.to_owned());
        }
        block_on(async move {
            let fleet = self.access.endpoint("fleet").await?;
            let resource = find(&fleet, &self.resource).await?;
            let names = members(&fleet, &self.clusters).await?;
            let path = self.path(&resource);
            let answers = futures::future::join_all(names.iter().map(|name| self.answer(&fleet, name, &path))).await;
            let mut tables: Vec<(&str, Value)> = Vec::new();
            let mut failed = false;
            for (name, answer) in names.iter().zip(answers) {
                match answer {
                    Ok(value) => tables.push((name, value)),
                    Err(status) if status.code == 404 && self.name.is_some() => {}
                    Err(status) => {
                        failed = true;
                        eprintln!("{name}: {status}");
                    }
                }
            }
            if let Some(name) = self.name.as_deref().filter(|_| tables.is_empty() && !failed) {
                return Err(
                    Fault::Missing(format!("{} {name:?} is in none of {}", self.resource, names.join(", "))).into()
                );
            }
            self.print(&tables)?;
            if failed { anyhow::bail!("some members did not answer") } else { Ok(()) }
        })
    }

    fn path(&self, resource: &Resource) -> String {
        let namespace = (resource.namespaced && !self.all_namespaces).then_some(self.namespace.as_str());
        let mut path = resource.gvr.path(namespace, self.name.as_deref());
        if !self.selector.is_empty() {
            path.push_str("?labelSelector=");
            path.push_str(&encode(&self.selector));
        }
        path
    }

    /// What a member says, or that it says nothing: the others must not wait for it.
    async fn answer(&self, fleet: &Endpoint, member: &str, path: &str) -> Result<Value, atoll_meta::Status> {
        let patience = std::time::Duration::from_secs(self.timeout.max(1));
        match tokio::time::timeout(patience, self.ask(fleet, member, path)).await {
            Ok(answer) => answer,
            Err(_) => Err(atoll_meta::Status::unavailable(format!("no answer within {} s", patience.as_secs()))),
        }
    }

    async fn ask(&self, fleet: &Endpoint, member: &str, path: &str) -> Result<Value, atoll_meta::Status> {
        let accept = match self.output {
            Format::Table | Format::Wide => "application/json;as=Table;v=v1;g=meta.k8s.io",
            Format::Json | Format::Yaml | Format::Name => "application/json",
        };
        let request = http::Request::builder()
            .method(Method::GET)
            .uri(format!("{}{path}", member_path(member)))
            .header("accept", accept)
            .body(bytes::Bytes::new())
            .map_err(|error| atoll_meta::Status::bad_request(error.to_string()))?;
        let answer = fleet.transport().send(request).await?;
        let code = answer.status().as_u16();
        let body = atoll_runtime::collect(answer.into_body()).await?;
        if code >= 400 {
            return Err(atoll_meta::Status::from_json(code, &body));
        }
        serde_json::from_slice(&body).map_err(atoll_meta::Status::internal)
    }

    fn print(&self, tables: &[(&str, Value)]) -> anyhow::Result<()> {
        let items: Vec<Value> = tables
            .iter()
            .flat_map(|(name, value)| {
                let kind = value["kind"].as_str().and_then(|kind| kind.strip_suffix("List"));
                let list = match value.get("items") {
                    Some(Value::Array(items)) => items.clone(),
                    _ => vec![value.clone()],
                };
                list.into_iter().map(move |mut item| {
                    // Items of a list do not say themselves what they are.
                    if let (Some(kind), None) = (kind, item.get("kind")) {
                        item["kind"] = kind.into();
                    }
                    json!({"cluster": name, "object": item})
                })
            })
            .collect();
        if output::tree(self.output, &Value::Array(items))? {
            return Ok(());
        }
        let named: Vec<(Option<&str>, &Value)> = tables.iter().map(|(name, table)| (Some(*name), table)).collect();
        if named.iter().all(|(_, table)| table["rows"].as_array().is_none_or(Vec::is_empty)) {
            eprintln!("no resources found");
            return Ok(());
        }
        output::server_table(&named, self.output == Format::Wide);
        Ok(())
    }
}

/// Names of the members of an instance, or of some of them, each once.
pub async fn members(fleet: &Endpoint, only: &[String]) -> anyhow::Result<Vec<String>> {
    let clusters = fleet.list(&Gvr::new("cluster.karmada.io", "v1alpha1", "clusters"), None, "").await.map_err(told)?;
    let names = clusters.items.iter().filter_map(|item| item["metadata"]["name"].as_str());
    let names: Vec<String> = names.map(ToOwned::to_owned).collect();
    if only.is_empty() {
        return Ok(names);
    }
    match only.iter().find(|name| !names.contains(name)) {
        Some(unknown) => {
            let names = names.join(", ");
            Err(Fault::Missing(format!("there is no member {unknown:?}; the instance has: {names}")).into())
        }
        None => {
            let mut seen = BTreeSet::new();
            Ok(only.iter().filter(|name| seen.insert(*name)).cloned().collect())
        }
    }
}

/// Finds a resource by any of its names.
pub async fn find(endpoint: &Endpoint, word: &str) -> anyhow::Result<Resource> {
    let (name, group) = word.split_once('.').map_or((word, None), |(name, group)| (name, Some(group)));
    let name = name.to_lowercase();
    let mut versions = vec![("".to_owned(), "v1".to_owned())];
    let groups = endpoint.get_path("/apis").await.map_err(told)?;
    for item in groups["groups"].as_array().into_iter().flatten() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        versions.push((text(&item["name"]), text(&item["preferredVersion"]["version"])));
    }
    for (api_group, version) in versions {
        if group.is_some_and(|wanted| wanted != api_group) {
            continue;
        }
        let path =
            if api_group.is_empty() { format!("/api/{version}") } else { format!("/apis/{api_group}/{version}") };
        let Ok(list) = endpoint.get_path(&path).await else { continue };
        for item in list["resources"].as_array().into_iter().flatten() {
            let plural = item["name"].as_str().unwrap_or_default();
            let short = item["shortNames"].as_array().into_iter().flatten().any(|short| short == name.as_str());
            let kind = item["kind"].as_str().unwrap_or_default();
            let fits = plural == name || item["singularName"] == name.as_str() || short || kind.to_lowercase() == name;
            if fits && !plural.contains('/') {
                return Ok(Resource {
                    gvr: Gvr::new(&api_group, &version, plural),
                    namespaced: item["namespaced"] == true,
                });
            }
        }
    }
    Err(Fault::Missing(format!("the server does not know a resource {word:?}")).into())
}

/// Percent-encodes a query value.
pub fn encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
