//! Lists from the index, page by page.

use atoll_apiserver::Verb;
use atoll_index::{Column, Everything, Item, OwnerOf, Query, ResourceName, Sort};
use atoll_meta::Status;
use atoll_meta::selector::{FieldSelector, LabelSelector};
use prost_reflect::{Kind as FieldKind, MessageDescriptor, MethodDescriptor};
use serde_json::{Map, Value, json};

use super::policy;
use crate::ask::{Ask, number};
use crate::context::Ctx;
use crate::kinds::{CLUSTER, DEPLOYMENT, Kind, OVERRIDE, POD, POLICY, SERVICE};
use crate::pour::pour;
use crate::shape;

/// Results per page when nothing is asked for.
const PAGE_SIZE: usize = 10;

/// Which page is asked for.
pub struct Paging {
    page: usize,
    size: Option<usize>,
}

impl Paging {
    /// From the fields of a request; a negative size asks for everything.
    pub fn of(input: &Value) -> Self {
        let page = usize::try_from(number(&input["page"])).unwrap_or_default().max(1);
        let size = match number(&input["pageSize"]) {
            0 => Some(PAGE_SIZE),
            size => usize::try_from(size).ok(),
        };
        Self { page, size }
    }

    fn offset(&self) -> usize {
        self.size.map_or(0, |size| (self.page - 1).saturating_mul(size))
    }

    /// The `pagination` of an answer.
    pub fn tell(&self, total: usize) -> Value {
        let size = self.size.unwrap_or(total).max(1);
        json!({"total": total, "page": self.page, "pageSize": size, "pages": total.div_ceil(size)})
    }

    /// One page of what is all there.
    pub fn cut<T>(&self, all: Vec<T>) -> (Vec<T>, Value) {
        let told = self.tell(all.len());
        (all.into_iter().skip(self.offset()).take(self.size.unwrap_or(usize::MAX)).collect(), told)
    }
}

/// The source a request is about: an instance, or a member of it.
pub fn source(input: &Value) -> Result<String, Status> {
    let ask = Ask(input);
    let instance = ask.segment("instance")?;
    Ok(match ask.segment_opt("cluster")? {
        Some(member) => format!("{instance}/{member}"),
        None => instance.to_owned(),
    })
}

/// The question a list asks, without its page.
pub fn query(kind: &Kind, source: &str, input: &Value) -> Result<Query, Status> {
    let ask = Ask(input);
    let selector = |error: atoll_meta::selector::SelectorError| Status::bad_request(error.to_string());
    let namespaces: Vec<String> = if kind.namespaced {
        ask.segment_opt("namespace")?.map(ToOwned::to_owned).into_iter().collect()
    } else {
        Vec::new()
    };
    let fuzzy =
        ["name", "fuzzyName"].iter().map(|key| ask.text(key).to_owned()).filter(|text| !text.is_empty()).collect();
    Ok(Query {
        sources: vec![source.to_owned()],
        resources: vec![ResourceName::new(&kind.group, &kind.resource)],
        namespaces,
        fuzzy,
        labels: LabelSelector::parse(ask.text("labelSelector")).map_err(selector)?,
        fields: FieldSelector::parse(ask.text("fieldSelector")).map_err(selector)?,
        sort: vec![sort(input)],
        ..Query::default()
    })
}

/// Newest first, unless something else is asked for.
fn sort(input: &Value) -> Sort {
    let ask = Ask(input);
    let direction = if input.get("sortDir").is_some() { ask.text("sortDir") } else { ask.text("orderBy") };
    let column = Column::parse(ask.text("sortBy")).unwrap_or(Column::Created);
    Sort { column, descending: direction != "asc" }
}

/// Lists objects of a kind.
pub async fn list(ctx: &Ctx, kind: &Kind, method: &MethodDescriptor, input: &Value) -> Result<Value, Status> {
    let source = source(input)?;
    let mut query = query(kind, &source, input)?;
    if !relate(ctx, kind, &source, input, &mut query).await? {
        return Ok(answer(method, Vec::new(), Paging::of(input).tell(0)));
    }
    let paging = Paging::of(input);
    let (trees, pagination) = if let Some(keep) = filter(ctx, kind, &source, input).await? {
        let all = trees(ctx, kind, &source, &query, input).await?;
        paging.cut(all.into_iter().filter(|tree| keep(tree)).collect())
    } else if ctx.core.index.shelf(&source, &kind.group, &kind.resource).is_none() {
        paging.cut(trees(ctx, kind, &source, &query, input).await?)
    } else {
        let rights = ctx.rights();
        let total = ctx
            .core
            .index
            .count(&query, &*rights)
            .await?
            .iter()
            .map(|(_, count)| usize::try_from(*count).unwrap_or_default())
            .sum();
        query.offset = paging.offset();
        query.limit = paging.size;
        let page = ctx.core.index.query(&query, &*rights).await?;
        (shaped(ctx, kind, &source, page.items.iter().map(Item::tree).collect()).await?, paging.tell(total))
    };
    Ok(answer(method, trees, pagination))
}

/// Everything that is asked for, shaped: from the index, or from the instance while it is not indexed.
async fn trees(ctx: &Ctx, kind: &Kind, source: &str, query: &Query, input: &Value) -> Result<Vec<Value>, Status> {
    let found = if ctx.core.index.shelf(source, &kind.group, &kind.resource).is_some() {
        let page = ctx.core.index.query(query, &*ctx.rights()).await?;
        page.items.iter().map(Item::tree).collect()
    } else {
        if let Some((instance, _)) = source.split_once('/') {
            // Who may not see members learns nothing about which there are.
            if !ctx.may_in(instance, Verb::List, &CLUSTER.gvr(), "").await? {
                return Ok(Vec::new());
            }
            return Err(Status::unavailable(format!("{source} has not been read yet")));
        }
        let namespace = query.namespaces.first().map(String::as_str);
        let list = ctx.endpoint(source).await?.list(&kind.gvr(), namespace, "").await?;
        let part = Ask(input).text("name").to_owned();
        list.items
            .into_iter()
            .filter(|tree| tree["metadata"]["name"].as_str().is_some_and(|name| name.contains(&part)))
            .collect()
    };
    shaped(ctx, kind, source, found).await
}

/// Adds what messages show and objects do not say.
pub async fn shaped(ctx: &Ctx, kind: &Kind, source: &str, mut trees: Vec<Value>) -> Result<Vec<Value>, Status> {
    for tree in &mut trees {
        shape::shape(kind, tree);
        tree["metadata"]["cluster"] = source.rsplit('/').next().unwrap_or(source).into();
    }
    if !source.contains('/') {
        shape::places(ctx, kind, source, &mut trees).await?;
    }
    Ok(trees)
}

/// Puts items into the one repeated message field of the answer.
pub fn answer(method: &MethodDescriptor, trees: Vec<Value>, pagination: Value) -> Value {
    let output = method.output();
    let Some((name, message)) = items_field(&output) else { return json!({}) };
    let items: Vec<Value> = trees.iter().map(|tree| pour(tree, &message)).collect();
    let mut map = Map::new();
    map.insert(name, items.into());
    map.insert("pagination".into(), pagination);
    Value::Object(map)
}

fn items_field(output: &MessageDescriptor) -> Option<(String, MessageDescriptor)> {
    output.fields().find_map(|field| match field.kind() {
        FieldKind::Message(message) if field.is_list() => Some((field.json_name().to_owned(), message)),
        _ => None,
    })
}

/// Narrows a question to what belongs to a workload; `false` when there is nothing of the kind.
async fn relate(ctx: &Ctx, kind: &Kind, source: &str, input: &Value, query: &mut Query) -> Result<bool, Status> {
    let ask = Ask(input);
    let (of, name) = (ask.text("kind"), ask.text("kindName"));
    if *kind != POD || name.is_empty() {
        return Ok(true);
    }
    if of == "Service" {
        let Some(service) = find(ctx, &SERVICE, source, ask.text("namespace"), name).await? else { return Ok(false) };
        let Some(selector) = service["spec"]["selector"].as_object().filter(|selector| !selector.is_empty()) else {
            return Ok(false);
        };
        query.labels = LabelSelector::from_labels(selector).map_err(|error| Status::bad_request(error.to_string()))?;
        return Ok(true);
    }
    let (group, resource, generations) = match of {
        "Deployment" => ("apps", "deployments", 1),
        "StatefulSet" => ("apps", "statefulsets", 0),
        "DaemonSet" => ("apps", "daemonsets", 0),
        "Job" => ("batch", "jobs", 0),
        "CronJob" => ("batch", "cronjobs", 1),
        _ => return Err(Status::bad_request(format!("kind: {of:?} has no pods"))),
    };
    // A CronJob's pod of the same name as a Deployment's is not the Deployment's: owners go by uid.
    query.owner = Some(OwnerOf {
        name: Some(name.to_owned()),
        resource: Some(ResourceName::new(group, resource)),
        generations,
        uid: None,
    });
    Ok(true)
}

/// An object of a source by name, as the index has it.
pub async fn find(ctx: &Ctx, kind: &Kind, source: &str, namespace: &str, name: &str) -> Result<Option<Value>, Status> {
    let mut query = Query::of(source, &kind.group, &kind.resource);
    query.names = vec![name.to_owned()];
    if kind.namespaced {
        query.namespaces = vec![namespace.to_owned()];
    }
    let page = ctx.core.index.query(&query, &*ctx.rights()).await?;
    Ok(page.items.first().map(Item::tree))
}

type Keep = Box<dyn Fn(&Value) -> bool + Send>;

/// What the index cannot decide: states, types, relations of policies and services.
async fn filter(ctx: &Ctx, kind: &Kind, source: &str, input: &Value) -> Result<Option<Keep>, Status> {
    let ask = Ask(input);
    let mut keeps: Vec<Keep> = Vec::new();
    let phase = ask.text("phase").to_owned();
    if !phase.is_empty() && !phase.ends_with("UNSPECIFIED") {
        if *kind == POLICY || *kind == OVERRIDE {
            let used = policy::used(ctx, source).await?;
            let wanted = !phase.to_lowercase().starts_with("not") && !phase.to_lowercase().starts_with("un");
            let kind = kind.clone();
            keeps.push(Box::new(move |tree| used.contains(&kind, tree) == wanted));
        } else {
            let key = if *kind == DEPLOYMENT { "state" } else { "phase" };
            let fits = move |text: &str| {
                text.eq_ignore_ascii_case(&phase)
                    || text.to_lowercase().ends_with(&format!("_{}", phase.to_lowercase()))
            };
            keeps.push(Box::new(move |tree| tree["status"][key].as_str().is_some_and(&fits)));
        }
    }
    if let Some(types) = input["type"].as_array().filter(|types| !types.is_empty() && *kind == SERVICE) {
        let types: Vec<String> = types.iter().filter_map(|word| word.as_str().map(ToOwned::to_owned)).collect();
        keeps.push(Box::new(move |tree| types.iter().any(|word| tree["spec"]["type"] == word.as_str())));
    }
    let (of, name) = (ask.text("kind"), ask.text("kindName"));
    if *kind == SERVICE && !name.is_empty() {
        let workload =
            Kind::named(of).unwrap_or_else(|| Kind::of("apps", "v1", &format!("{}s", of.to_lowercase()), true));
        let found = find(ctx, &workload, source, ask.text("namespace"), name).await?.unwrap_or_default();
        let labels = found["spec"]["template"]["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        keeps.push(Box::new(move |tree| selects(tree, &labels)));
    }
    if policy::is_policy(kind) && !of.is_empty() {
        let target = policy::Target {
            api_version: ask.text("apiVersion").into(),
            kind: of.into(),
            namespace: ask.text("namespace").into(),
            name: name.into(),
        };
        let labels = target.labels(ctx, source).await?;
        keeps.push(Box::new(move |tree| target.selected_by(tree, &labels)));
    }
    if *kind == crate::kinds::FEDERATED_HPA && !of.is_empty() && !of.ends_with("UNSPECIFIED") {
        let of = of.to_owned();
        keeps.push(Box::new(move |tree| tree["spec"]["scaleTargetRef"]["kind"] == of.as_str()));
    }
    if *kind == crate::kinds::DEFINITION && !ask.text("group").is_empty() {
        let group = ask.text("group").to_owned();
        keeps.push(Box::new(move |tree| tree["spec"]["group"] == group.as_str()));
    }
    if keeps.is_empty() {
        return Ok(None);
    }
    Ok(Some(Box::new(move |tree| keeps.iter().all(|keep| keep(tree)))))
}

fn selects(service: &Value, labels: &Map<String, Value>) -> bool {
    let selector = service["spec"]["selector"].as_object();
    selector.is_some_and(|selector| {
        !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    })
}

/// Counts objects of a kind in a source, whoever asks.
pub async fn count(ctx: &Ctx, kind: &Kind, source: &str) -> Result<u64, Status> {
    let query = Query::of(source, &kind.group, &kind.resource);
    Ok(ctx.core.index.count(&query, &Everything).await?.iter().map(|(_, count)| count).sum())
}
