//! Search over all instances and members.

use atoll_index::{Column, Facet, Item, LiveEvent, OwnerOf, Place, Query, ResourceName, Shelf, Sort};
use atoll_meta::selector::{FieldSelector, LabelSelector};
use atoll_meta::{Status, api_version};
use serde_json::{Value, json};

use crate::api::Reply;
use crate::ask::Ask;
use crate::context::Ctx;

/// How long a search waits for a write it is asked to see.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// Runs a method of the search service.
pub async fn call(ctx: &Ctx, method: &str, input: &Value) -> Result<Reply, Status> {
    match method {
        "Search" => search(ctx, input).await.map(Reply::One),
        "Facets" => facets(ctx, input).await.map(Reply::One),
        "ListSources" => sources(ctx).await.map(Reply::One),
        _ => watch(ctx, input).await,
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(ToOwned::to_owned)).collect()
}

fn resource(text: &str) -> ResourceName {
    match text.split_once('.') {
        Some((resource, group)) => ResourceName::new(group, resource),
        None => ResourceName { resource: text.to_owned(), ..ResourceName::default() },
    }
}

fn query(input: &Value) -> Result<Query, Status> {
    let ask = Ask(input);
    let selector = |error: atoll_meta::selector::SelectorError| Status::bad_request(error.to_string());
    let sort = texts(&input["orderBy"])
        .iter()
        .map(|text| {
            let (column, descending) =
                text.strip_suffix(" desc").map_or((text.as_str(), false), |column| (column, true));
            let column = Column::parse(column)
                .ok_or_else(|| Status::bad_request(format!("orderBy: cannot understand {text:?}")))?;
            Ok(Sort { column, descending })
        })
        .collect::<Result<_, Status>>()?;
    let owner = (!ask.text("ownerUid").is_empty()).then(|| OwnerOf {
        uid: Some(ask.text("ownerUid").to_owned()),
        generations: u32::try_from(ask.number("ownerGenerations")).unwrap_or_default(),
        ..OwnerOf::default()
    });
    Ok(Query {
        sources: texts(&input["sources"]),
        hidden: true,
        resources: texts(&input["resources"]).iter().map(|text| resource(text)).collect(),
        kinds: texts(&input["kinds"]),
        namespaces: texts(&input["namespaces"]),
        names: texts(&input["names"]),
        fuzzy: Some(ask.text("fuzzyName").to_owned()).filter(|text| !text.is_empty()).into_iter().collect(),
        labels: LabelSelector::parse(ask.text("labelSelector")).map_err(selector)?,
        fields: FieldSelector::parse(ask.text("fieldSelector")).map_err(selector)?,
        owner,
        sort,
        limit: Some(usize::try_from(ask.number("limit")).ok().filter(|limit| *limit > 0).unwrap_or(100).min(10_000)),
        token: Some(ask.text("continue").to_owned()).filter(|text| !text.is_empty()),
        remaining: true,
        ..Query::default()
    })
}

async fn search(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let query = query(input)?;
    let wait = Ask(input).text("waitFor");
    if !wait.is_empty() {
        let [source, name, revision] = wait.split(' ').collect::<Vec<_>>()[..] else {
            return Err(Status::bad_request("waitFor: expected source, resource.group and revision"));
        };
        let resource = resource(name);
        let (group, resource) = (resource.group.as_deref().unwrap_or_default(), &*resource.resource);
        // Who may not list it learns neither that it is there nor how far it is.
        if !may_wait(ctx, source, group, resource, &query.namespaces).await {
            return Err(Status::bad_request(format!("waitFor: there is no {name} of {source:?} for this caller")));
        }
        ctx.core.index.wait_for(source, group, resource, revision, PATIENCE).await?;
    }
    let page = ctx.core.index.query(&query, &*ctx.rights()).await?;
    let whole = input["objects"] == true;
    let items: Vec<Value> = page.items.iter().map(|item| found(item, whole)).collect();
    let stale: Vec<Value> = page.stale.iter().map(state).collect();
    Ok(json!({
        "items": items, "continue": page.token.unwrap_or_default(), "remaining": page.remaining.unwrap_or_default().to_string(),
        "freshAsOf": page.fresh_as_of.map(|at| at.to_string()).unwrap_or_default(), "stale": stale,
    }))
}

/// Whether the caller may list a resource of a source: everywhere, or in one of the namespaces they ask for.
async fn may_wait(ctx: &Ctx, source: &str, group: &str, resource: &str, namespaces: &[String]) -> bool {
    let shelf = ctx.core.index.shelf(source, group, resource);
    let version = shelf.as_ref().map_or("v1", |shelf| &*shelf.version);
    let namespaces = if shelf.as_ref().is_none_or(|shelf| shelf.namespaced) { namespaces } else { &[] };
    let rights = ctx.rights();
    for namespace in std::iter::once(None).chain(namespaces.iter().map(|name| Some(name.as_str()))) {
        // One that cannot be asked now is as one that refuses.
        let place = Place { source, group, version, resource, namespace, name: None };
        if rights.may_see(place).await.unwrap_or(false) {
            return true;
        }
    }
    false
}

fn state(fresh: &atoll_index::Freshness) -> Value {
    json!({"source": fresh.source, "asOf": fresh.as_of.map(|at| at.to_string()).unwrap_or_default(), "trouble": fresh.trouble.clone().unwrap_or_default()})
}

fn found(item: &Item, whole: bool) -> Value {
    let mut tree = named(&item.shelf, &item.namespace, &item.name);
    tree["uid"] = item.uid.as_str().into();
    tree["resourceVersion"] = item.revision.as_str().into();
    tree["created"] = (item.created / 1000).to_string().into();
    if whole {
        tree["object"] = item.body.as_str().into();
    }
    tree
}

fn named(shelf: &Shelf, namespace: &str, name: &str) -> Value {
    json!({"source": shelf.key.source, "apiVersion": api_version(&shelf.key.group, &shelf.version), "kind": shelf.kind,
           "resource": shelf.key.resource, "namespace": namespace, "name": name})
}

async fn facets(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let by = Ask(input).text("by");
    let facet = match by.split_once(':') {
        None => match by {
            "source" | "" => Facet::Source,
            "resource" => Facet::Resource,
            "namespace" => Facet::Namespace,
            _ => return Err(Status::bad_request(format!("by: cannot count by {by:?}"))),
        },
        Some(("label", key)) => Facet::Label(key.to_owned()),
        Some(("field", path)) => Facet::Field(path.to_owned()),
        Some(_) => return Err(Status::bad_request(format!("by: cannot count by {by:?}"))),
    };
    let limit = usize::try_from(Ask(input).number("limit")).ok().filter(|limit| *limit > 0).unwrap_or(20);
    let counts = ctx.core.index.facet(&query(&input["query"])?, &facet, limit, &*ctx.rights()).await?;
    let counts: Vec<Value> =
        counts.into_iter().map(|(value, count)| json!({"value": value, "count": count.to_string()})).collect();
    Ok(json!({"counts": counts}))
}

/// Sources of instances the caller may see, members included.
async fn sources(ctx: &Ctx) -> Result<Value, Status> {
    let visible = super::visible_instances(ctx).await?;
    let names = ctx.core.index.known_sources().into_iter();
    let seen = names.filter(|name| {
        name.split('/').next().is_some_and(|own| visible.iter().any(|instance| instance["metadata"]["name"] == own))
    });
    let items: Vec<Value> = seen.filter_map(|name| ctx.core.index.freshness(&name).as_ref().map(state)).collect();
    Ok(json!({"items": items}))
}

async fn watch(ctx: &Ctx, input: &Value) -> Result<Reply, Status> {
    let whole = input["objects"] == true;
    let (page, live) = ctx.core.index.watch(query(input)?, ctx.rights()).await?;
    let mut first: Vec<Result<Value, Status>> =
        page.items.iter().map(|item| Ok(json!({"type": "ADDED", "object": found(item, whole)}))).collect();
    first.push(Ok(json!({"type": "SYNCED"})));
    let rest = futures::stream::unfold(Some(live), move |state| async move {
        let mut live = state?;
        match live.next().await {
            Err(status) => Some((Err(status), None)),
            Ok(event) => Some((Ok(change(&event, whole)), Some(live))),
        }
    });
    Ok(Reply::Many(Box::pin(futures::StreamExt::chain(futures::stream::iter(first), rest))))
}

fn change(event: &LiveEvent, whole: bool) -> Value {
    let (word, shelf, row) = match event {
        LiveEvent::Put(shelf, row) => ("MODIFIED", shelf, row),
        LiveEvent::Removed(shelf, row) => ("DELETED", shelf, row),
    };
    let mut tree = named(shelf, &row.namespace, &row.name);
    tree["uid"] = row.uid.as_str().into();
    tree["resourceVersion"] = row.revision.as_str().into();
    tree["created"] = (row.created / 1000).to_string().into();
    if whole {
        tree["object"] = row.body.as_str().into();
    }
    json!({"type": word, "object": tree})
}
