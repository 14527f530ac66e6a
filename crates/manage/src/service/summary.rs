//! Short lists for choices: namespaces, classes, groups.

use atoll_apiserver::Verb;
use atoll_index::{Item, Query};
use atoll_meta::Status;
use serde_json::{Value, json};

use super::list;
use crate::ask::Ask;
use crate::context::Ctx;
use crate::kinds::{DEFINITION, DEPLOYMENT, INGRESS_CLASS, Kind, NAMESPACE};

async fn all(ctx: &Ctx, kind: &Kind, source: &str) -> Result<Vec<Value>, Status> {
    let page = ctx.core.index.query(&Query::of(source, &kind.group, &kind.resource), &*ctx.rights()).await?;
    Ok(page.items.iter().map(Item::tree).collect())
}

fn names(trees: &[Value]) -> impl Iterator<Item = &str> {
    trees.iter().filter_map(|tree| tree["metadata"]["name"].as_str())
}

/// Namespaces the caller works in, and whether the caller has the whole instance.
pub async fn namespaces(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let instance = Ask(input).segment("instance")?;
    let entry = |name: &str| json!({"name": name, "instance": instance});
    if ctx.may_in(instance, Verb::List, &NAMESPACE.gvr(), "").await? {
        let found = all(ctx, &NAMESPACE, instance).await?;
        return Ok(json!({"data": names(&found).map(entry).collect::<Vec<_>>(), "accessScope": "Instance"}));
    }
    ctx.endpoint(instance).await?;
    let query = Query::of(instance, &NAMESPACE.group, &NAMESPACE.resource);
    let page = ctx.core.index.query(&query, &atoll_index::Everything).await?;
    let mut data = Vec::new();
    for item in &page.items {
        if ctx.may_in(instance, Verb::List, &DEPLOYMENT.gvr(), &item.name).await? {
            data.push(entry(&item.name));
        }
    }
    Ok(json!({"data": data, "accessScope": "Namespace"}))
}

/// Namespaces of a member.
pub async fn member_namespaces(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let ask = Ask(input);
    let (instance, cluster) = (ask.segment("instance")?, ask.segment("cluster")?);
    let found = all(ctx, &NAMESPACE, &list::source(input)?).await?;
    let data: Vec<Value> =
        names(&found).map(|name| json!({"name": name, "instance": instance, "cluster": cluster})).collect();
    Ok(json!({"data": data}))
}

/// Ingress classes of a member.
pub async fn ingress_classes(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let found = all(ctx, &INGRESS_CLASS, &list::source(input)?).await?;
    let items: Vec<Value> = found
        .iter()
        .map(|class| {
            let default = class["metadata"]["annotations"]["ingressclass.kubernetes.io/is-default-class"] == "true";
            json!({"name": class["metadata"]["name"], "isDefaultClass": default})
        })
        .collect();
    Ok(json!({"items": items}))
}

/// Groups of the kinds defined in an instance.
pub async fn definition_groups(ctx: &Ctx, input: &Value) -> Result<Value, Status> {
    let found = all(ctx, &DEFINITION, Ask(input).segment("instance")?).await?;
    let mut groups: Vec<&str> = found.iter().filter_map(|definition| definition["spec"]["group"].as_str()).collect();
    groups.sort_unstable();
    groups.dedup();
    Ok(json!({"items": groups}))
}
