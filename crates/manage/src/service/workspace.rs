//! Which workspace an instance or a namespace belongs to.

use atoll_apiserver::Verb;
use atoll_meta::Status;
use serde_json::{Value, json};

use super::list::Paging;
use super::visible_instances;
use crate::access::objects::WORKSPACE;
use crate::ask::Ask;
use crate::context::Ctx;
use crate::transcode::status::precondition;

/// Runs a method of the workspace service.
pub async fn call(ctx: &Ctx, method: &str, input: &Value) -> Result<Value, Status> {
    match method {
        "ListWorkspaces" => workspaces(ctx, input).await,
        "ListInstances" => instances(ctx, input).await,
        "ListNamespaceInstances" => namespaces(ctx, input).await,
        _ => bind(ctx, input).await,
    }
}

async fn all(ctx: &Ctx) -> Result<Vec<Value>, Status> {
    Ok(ctx.core.own_endpoint("root").list(&WORKSPACE.gvr(), None, "").await?.items)
}

fn info(workspace: &Value) -> Value {
    json!({"workspace": workspace["metadata"]["name"], "workspaceId": workspace["spec"]["id"].as_i64().unwrap_or_default()})
}

async fn workspaces(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let part = Ask(input).text("workspace");
    let mut found = Vec::new();
    for workspace in all(ctx).await? {
        let name = workspace["metadata"]["name"].as_str().unwrap_or_default();
        if name.contains(part) && ctx.may_in_root(Verb::Get, "workspaces", name).await.is_ok() {
            found.push(info(&workspace));
        }
    }
    let (items, pagination) = Paging::of(input).cut(found);
    Ok(json!({"items": items, "pagination": pagination}))
}

async fn instances(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let part = Ask(input).text("instance");
    let workspaces = all(ctx).await?;
    let visible = visible_instances(ctx).await?;
    let items = visible
        .iter()
        .filter_map(|instance| instance["metadata"]["name"].as_str())
        .filter(|name| name.contains(part))
        .map(|name| {
            let owner = workspaces.iter().find(|workspace| has(&workspace["spec"]["instances"], &name.into()));
            json!({"instance": name, "workspace": owner.map(info)})
        });
    let (items, pagination) = Paging::of(input).cut(items.collect());
    Ok(json!({"items": items, "pagination": pagination}))
}

async fn namespaces(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let workspaces = all(ctx).await?;
    let mut query = atoll_index::Query {
        resources: vec![atoll_index::ResourceName::new("", "namespaces")],
        ..atoll_index::Query::default()
    };
    let visible = visible_instances(ctx).await?;
    let names = visible.iter().filter_map(|instance| instance["metadata"]["name"].as_str());
    query.sources = names
        .filter(|name| ask.text("instance").is_empty() || *name == ask.text("instance"))
        .map(ToOwned::to_owned)
        .collect();
    if query.sources.is_empty() {
        return Ok(json!({"items": [], "pagination": Paging::of(input).tell(0)}));
    }
    query.fuzzy = Some(ask.text("namespace").to_owned()).filter(|text| !text.is_empty()).into_iter().collect();
    let page = ctx.core.index.query(&query, &*ctx.rights()).await?;
    let items = page.items.iter().map(|item| {
        let entry = json!({"instance": item.shelf.key.source, "namespace": item.name});
        let owner = workspaces.iter().find(|workspace| has(&workspace["spec"]["namespaces"], &entry));
        json!({"instance": item.shelf.key.source, "namespace": item.name, "workspace": owner.map(info)})
    });
    let (items, pagination) = Paging::of(input).cut(items.collect());
    Ok(json!({"items": items, "pagination": pagination}))
}

fn has(list: &Value, entry: &Value) -> bool {
    list.as_array().is_some_and(|list| list.contains(entry))
}

/// Binds or unbinds an instance or a namespace; it belongs to at most one workspace.
async fn bind(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let instance = ask.segment("instance")?;
    let (list, entry) = match ask.segment_opt("namespace")? {
        Some(namespace) => ("namespaces", json!({"instance": instance, "namespace": namespace})),
        None => ("instances", json!(instance)),
    };
    let workspaces = all(ctx).await?;
    let wanted = &input["workspace"];
    let named = |workspace: &&Value| {
        let id = crate::ask::number(&wanted["workspaceId"]);
        let name = wanted["workspace"].as_str().unwrap_or_default();
        if name.is_empty() { id != 0 && workspace["spec"]["id"] == id } else { workspace["metadata"]["name"] == name }
    };
    let owner = workspaces.iter().find(|workspace| has(&workspace["spec"][list], &entry));
    let mut target = match ask.text("action") {
        "BIND" => {
            if owner.is_some() {
                return Err(precondition("it belongs to a workspace already"));
            }
            let mut target = workspaces.iter().find(named).cloned().ok_or_else(|| {
                Status::not_found("atoll.io", "workspaces", wanted["workspace"].as_str().unwrap_or_default())
            })?;
            if !target["spec"][list].is_array() {
                target["spec"][list] = json!([]);
            }
            if let Some(own) = target["spec"][list].as_array_mut() {
                own.push(entry);
            }
            target
        }
        "UNBIND" => {
            let mut target = owner.cloned().ok_or_else(|| precondition("it belongs to no workspace"))?;
            if let Some(own) = target["spec"][list].as_array_mut() {
                own.retain(|known| *known != entry);
            }
            target
        }
        other => return Err(Status::bad_request(format!("action: cannot understand {other:?}"))),
    };
    let name = target["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    // As the caller: who may change workspaces is decided by the roles of `root`.
    target = ctx.root().update(&WORKSPACE.gvr(), None, &name, &target).await?;
    let mut answer = input.clone();
    answer["workspace"] = info(&target);
    Ok(answer)
}
