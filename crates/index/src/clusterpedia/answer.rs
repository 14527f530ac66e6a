//! Lists, single objects, tables and watches.

use std::collections::HashSet;
use std::sync::Arc;

use atoll_apiserver::{Body, Hub, Instance, Kind, Query as Params, json, response};
use atoll_meta::{Status, api_version};
use http::{HeaderMap, HeaderValue, Response};
use serde_json::{Value, json};

use super::path::Objects;
use super::{Names, View, mark, options};
use crate::index::Index;
use crate::live::{Live, LiveEvent};
use crate::query::ResourceName;
use crate::rights::Rights;
use crate::search::{Item, Page};
use crate::shelf::Shelf;

const CLUSTER: &str = "shadow.clusterpedia.io/cluster-name";

/// In which form objects are wanted.
#[derive(Copy, Clone, PartialEq)]
pub enum Form {
    Objects,
    Metadata,
    Table,
}

/// The form an Accept header asks for.
pub fn form(headers: &HeaderMap) -> Form {
    let accept = headers.get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let first = accept.split(',').next().unwrap_or_default();
    if first.contains("as=Table") {
        Form::Table
    } else if first.contains("as=PartialObjectMetadata") {
        Form::Metadata
    } else {
        Form::Objects
    }
}

/// Answers a request for objects of one resource.
pub async fn answer(
    index: &Index,
    names: &Names<'_>,
    rights: Arc<dyn Rights>,
    ask: Objects,
    params: &Params,
    view: View,
) -> Result<Response<Body>, Status> {
    let mut query = options::query(params, names)?;
    if let Some(cluster) = &ask.cluster {
        query.sources = vec![names.source(cluster)];
    }
    query.resources =
        vec![ResourceName { version: Some(ask.version.clone()), ..ResourceName::new(&ask.group, &ask.resource) }];
    if let Some(namespace) = &ask.namespace {
        query.namespaces = vec![namespace.clone()];
    }
    let printer = Printer {
        hub: view.hub,
        instance: view.instance,
        group: ask.group.clone(),
        version: ask.version.clone(),
        resource: ask.resource.clone(),
        form: view.form,
        whole: params.get("includeObject") == Some("Object"),
    };
    if let Some(name) = &ask.name {
        if ask.cluster.is_none() {
            return Err(Status::bad_request(
                "getting one object needs a cluster: use /resources/clusters/{cluster}/...",
            ));
        }
        query.names = vec![name.clone()];
        let page = index.query(&query, &*rights).await?;
        let item = page.items.first().ok_or_else(|| Status::not_found(&ask.group, &ask.resource, name))?;
        let tree = match printer.form {
            Form::Table => printer.table(json!({}), std::slice::from_ref(item)),
            _ => printer.object(item.tree(), &item.shelf),
        };
        return Ok(with_freshness(json(200, &tree), &page, names));
    }
    if params.flag("watch") {
        let (page, live) = index.watch(query, rights).await?;
        return Ok(watch(printer, &page, live));
    }
    let page = index.query(&query, &*rights).await?;
    Ok(with_freshness(response(200, "application/json", printer.list(&page)), &page, names))
}

/// Says how fresh the answer is, and warns of clusters whose part is old.
pub fn with_freshness(mut answer: Response<Body>, page: &Page, names: &Names<'_>) -> Response<Body> {
    if let Some(at) = page.fresh_as_of.and_then(|at| HeaderValue::from_str(&at.to_string()).ok()) {
        answer.headers_mut().insert("x-atoll-fresh-as-of", at);
    }
    for stale in page.stale.iter().take(10) {
        let since =
            stale.as_of.map_or("not read yet".to_owned(), |at| format!("as of {}", atoll_meta::time::format(at)));
        let text = format!("299 - \"cluster {} is not in contact: {since}\"", names.cluster(&stale.source));
        if let Ok(value) = HeaderValue::from_str(&text) {
            answer.headers_mut().append("warning", value);
        }
    }
    answer
}

/// Writes objects of one resource.
struct Printer {
    hub: Arc<Hub>,
    instance: Arc<Instance>,
    group: String,
    version: String,
    resource: String,
    form: Form,
    whole: bool,
}

impl Printer {
    fn cluster(&self, shelf: &Shelf) -> String {
        Names { instance: &self.instance.name }.cluster(&shelf.key.source)
    }

    fn known(&self) -> Option<Arc<Kind>> {
        self.instance.kind(&self.group, &self.version, &self.resource)
    }

    fn object(&self, mut tree: Value, shelf: &Shelf) -> Value {
        tree["metadata"]["annotations"][CLUSTER] = self.cluster(shelf).into();
        if self.form == Form::Metadata { partial(&tree) } else { tree }
    }

    /// The object as text.
    fn written(&self, item: &Item) -> String {
        let quick = (self.form == Form::Objects)
            .then(|| mark::annotated(&item.body, CLUSTER, &self.cluster(&item.shelf)))
            .flatten();
        quick.unwrap_or_else(|| self.object(item.tree(), &item.shelf).to_string())
    }

    fn list(&self, page: &Page) -> Vec<u8> {
        let mut metadata = json!({"resourceVersion": "0"});
        if let Some(token) = &page.token {
            metadata["continue"] = token.as_str().into();
        }
        if let Some(remaining) = page.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        if self.form == Form::Table {
            return self.table(metadata, &page.items).to_string().into_bytes();
        }
        let kind = page.items.first().map_or_else(|| self.kind(), |item| item.shelf.kind.clone());
        let (kind, version) = match self.form {
            Form::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
            _ => (format!("{kind}List"), api_version(&self.group, &self.version)),
        };
        let (kind, version) = (Value::from(kind), Value::from(version));
        let mut text = format!("{{\"kind\":{kind},\"apiVersion\":{version},\"metadata\":{metadata},\"items\":[");
        for (at, item) in page.items.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(&self.written(item));
        }
        text.push_str("]}");
        text.into_bytes()
    }

    fn kind(&self) -> String {
        self.known().map_or_else(String::new, |kind| kind.kind.to_string())
    }

    fn table(&self, metadata: Value, items: &[Item]) -> Value {
        let rows: Vec<Value> = items.iter().map(|item| self.row(item.tree(), &item.shelf)).collect();
        let kind = items.first().map_or_else(|| self.kind(), |item| item.shelf.kind.clone());
        json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": self.columns(&kind), "rows": rows})
    }

    fn columns(&self, kind: &str) -> Value {
        let cluster = json!({"name": "Cluster", "type": "string", "format": "", "description": "The cluster the object is in.", "priority": 0});
        let own = match self.known().as_ref().and_then(|known| known.custom()) {
            Some(custom) => custom.columns(),
            None => atoll_builtin::print::columns(&self.group, kind)
                .iter()
                .map(|column| {
                    json!({"name": column.name, "type": column.ty, "format": column.format,
                           "description": column.description, "priority": column.priority})
                })
                .collect(),
        };
        std::iter::once(cluster).chain(own.as_array().cloned().unwrap_or_default()).collect()
    }

    fn row(&self, tree: Value, shelf: &Shelf) -> Value {
        let now = self.hub.now().as_second();
        let own = match self.known().as_ref().and_then(|known| known.custom()) {
            Some(custom) => custom.cells(&tree, now),
            None => atoll_builtin::print::cells(&self.group, &shelf.kind, &tree, now),
        };
        let cells: Vec<Value> = std::iter::once(Value::from(self.cluster(shelf))).chain(own).collect();
        let object = if self.whole { self.object(tree, shelf) } else { partial(&tree) };
        json!({"cells": cells, "object": object})
    }

    /// One line of a watch.
    fn event(&self, word: &str, tree: Value, shelf: &Shelf) -> String {
        let object = match self.form {
            Form::Table => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "0"},
                "columnDefinitions": self.columns(&shelf.kind), "rows": [self.row(tree, shelf)],
            }),
            _ => self.object(tree, shelf),
        };
        format!("{}\n", json!({"type": word, "object": object}))
    }
}

fn partial(tree: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": tree["metadata"]})
}

/// A running watch.
struct Stream {
    printer: Printer,
    shown: HashSet<(i64, String, String)>,
    live: Live,
}

fn watch(printer: Printer, page: &Page, live: Live) -> Response<Body> {
    let first: String = page.items.iter().map(|item| printer.event("ADDED", item.tree(), &item.shelf)).collect();
    let closing = printer.hub.shutdown.clone();
    let shown = page.items.iter().map(|item| (item.shelf.id, item.namespace.clone(), item.name.clone())).collect();
    let rest = futures::stream::unfold(Some(Stream { printer, shown, live }), move |state| {
        let closing = closing.clone();
        async move {
            let mut stream = state?;
            let event = tokio::select! {
                () = closing.cancelled() => return None,
                event = stream.live.next() => event,
            };
            let (line, next) = match event {
                Ok(event) => (stream.line(event), Some(stream)),
                Err(status) => (format!("{}\n", json!({"type": "ERROR", "object": status.to_value()})), None),
            };
            Some((Ok(line.into()), next))
        }
    });
    let all = futures::StreamExt::chain(futures::stream::once(async move { Ok(first.into()) }), rest);
    response(200, "application/json", Body::stream(all))
}

impl Stream {
    fn line(&mut self, event: LiveEvent) -> String {
        let (shelf, row, gone) = match event {
            LiveEvent::Put(shelf, row) => (shelf, row, false),
            LiveEvent::Removed(shelf, row) => (shelf, row, true),
        };
        let key = (shelf.id, row.namespace.clone(), row.name.clone());
        let word = if gone {
            self.shown.remove(&key);
            "DELETED"
        } else if self.shown.insert(key) {
            "ADDED"
        } else {
            "MODIFIED"
        };
        let mut tree = row.tree();
        if tree.is_null() {
            // Only its name was known when it vanished.
            let version = api_version(&shelf.key.group, &shelf.version);
            tree = json!({"kind": shelf.kind, "apiVersion": version, "metadata": {"name": row.name, "namespace": row.namespace}});
        }
        self.printer.event(word, tree, &shelf)
    }
}
