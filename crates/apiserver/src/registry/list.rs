//! GET on a collection: consistent, paged, filtered.

use atoll_meta::selector::{FieldSelector, LabelSelector};
use atoll_meta::{Object, Reason, Revision, Status};
use atoll_store::{Entry, Snapshot, StoreError};
use bytes::Bytes;
use futures::stream;
use http::Response;
use serde_json::{Value, json};

use super::cursor::Cursor;
use crate::body::Body;
use crate::call::Call;
use crate::instance::store_status;
use crate::kind::Kind;
use crate::negotiate::{Accept, Form, Media};
use crate::query::Match;
use crate::respond::{self, response};
use crate::table;

/// Size of the pieces in which a long list is sent.
const PIECE: usize = 64 * 1024;

/// Which objects of a collection are wanted.
pub struct Filter {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Filter {
    /// Whether every object is wanted.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.terms().is_empty()
    }

    /// Whether this object is wanted.
    pub fn matches(&self, kind: &Kind, object: &Object) -> bool {
        if !self.labels.matches_head(&object.head) {
            return false;
        }
        if self.fields.terms().is_empty() {
            return true;
        }
        // Name and namespace are in the head; only other fields need the tree.
        let tree = std::cell::OnceCell::new();
        self.fields.matches(|path| match path {
            "metadata.name" => Some(object.head.name.to_string()),
            "metadata.namespace" => Some(object.head.namespace.to_string()),
            other => kind.field(tree.get_or_init(|| object.tree(Revision(0))), other),
        })
    }
}

/// A part of a collection.
#[derive(Default)]
pub(super) struct Page {
    /// What is in it.
    pub entries: Vec<Entry>,
    next: Option<String>,
    remaining: Option<u64>,
}

impl Page {
    /// Says in the metadata of a list where it goes on, if it does.
    pub fn mark(&self, metadata: &mut Value) {
        if let Some(next) = &self.next {
            metadata["continue"] = next.as_str().into();
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
    }
}

impl Call {
    /// The selectors of the request, checked.
    pub fn filter(&self) -> Result<Filter, Status> {
        let mut filter = Filter { labels: self.query.labels()?, fields: self.query.fields()? };
        for term in filter.fields.terms() {
            if !self.kind.selectable(&term.path) {
                return Err(Status::bad_request(self.kind.not_selectable(&term.path)));
            }
        }
        if !self.target.name.is_empty() {
            // The old path of a watch names its object.
            filter.fields =
                FieldSelector::parse(&format!("metadata.name={}", self.target.name)).unwrap_or(filter.fields);
        }
        Ok(filter)
    }

    /// Lists the collection.
    pub async fn list(&self) -> Result<Response<Body>, Status> {
        let accept = self.accept(true)?;
        let filter = self.filter()?;
        let limit = self.limit()?;
        let (snapshot, after) = self.list_state(limit).await?;
        if limit == 0 && after.is_none() && accept == Accept::default() {
            return Ok(self.stream_list(snapshot, filter));
        }
        let page = self.cut(&snapshot, after.as_deref(), limit, &filter);
        let mut metadata = self.list_metadata(&snapshot, accept.form);
        page.mark(&mut metadata);
        self.page(accept, &metadata, &page.entries)
    }

    /// Takes a page out of a state: what fits, from behind a key, no more than `limit` unless that is 0.
    pub(super) fn cut(&self, snapshot: &Snapshot, after: Option<&str>, limit: usize, filter: &Filter) -> Page {
        let prefix = self.prefix();
        let resource_prefix = self.resource() + "/";
        let start = after.map(|start| format!("{resource_prefix}{start}"));
        let mut page = Page::default();
        let mut remaining = 0u64;
        for (_, entry) in snapshot.range(&prefix, start.as_deref()) {
            let full = limit > 0 && page.entries.len() == limit;
            if full && filter.is_everything() {
                remaining += 1;
                continue;
            }
            if !filter.matches(&self.kind, &entry.object) {
                continue;
            }
            if full {
                // Selectors make the rest uncountable without reading it all; one more match decides.
                remaining += 1;
                break;
            }
            page.entries.push(entry.clone());
        }
        if let (Some(last), true) = (page.entries.last(), remaining > 0) {
            let rv = i64::try_from(snapshot.revision.0).unwrap_or(i64::MAX);
            page.next = Some(Cursor::new(rv, &self.key_of(last)).encode());
            page.remaining = filter.is_everything().then_some(remaining);
        }
        page
    }

    fn key_of(&self, entry: &Entry) -> String {
        let head = &entry.object.head;
        if self.kind.namespaced { format!("{}/{}", head.namespace, head.name) } else { head.name.to_string() }
    }

    /// How many objects are wanted at most; 0 for all.
    pub(super) fn limit(&self) -> Result<usize, Status> {
        Ok(usize::try_from(self.query.number("limit")?.unwrap_or_default()).unwrap_or_default())
    }

    /// The state to list and where to start, by the rules of resourceVersion and continue.
    pub(super) async fn list_state(&self, limit: usize) -> Result<(Snapshot, Option<String>), Status> {
        self.query.number("timeoutSeconds")?;
        self.query.check_list()?;
        let matching = self.query.matching()?;
        let revision = self
            .query
            .revision()
            .map_err(|status| Status::bad_request(format!("invalid resource version: {}", status.message)))?;
        if let Some(token) = self.query.get("continue").filter(|token| !token.is_empty()) {
            return self.continued(token, revision).await;
        }
        match (matching, revision) {
            (Some(Match::Exact), Some(wanted)) => Ok((self.at(wanted).await?, None)),
            (None, Some(wanted)) if limit > 0 && wanted.0 > 0 => Ok((self.at(wanted).await?, None)),
            (_, Some(wanted)) => {
                self.wait_for(wanted).await?;
                Ok((self.hub.recent(&self.instance).await?, None))
            }
            (_, None) => Ok((self.hub.snapshot(&self.instance).await?, None)),
        }
    }

    async fn at(&self, wanted: Revision) -> Result<Snapshot, Status> {
        self.wait_for(wanted).await?;
        self.hub.engine.snapshot(self.instance.id, Some(wanted)).await.map_err(|error| match error {
            StoreError::Compacted { .. } => Status::expired("The resourceVersion for the provided list is too old."),
            other => store_status(&other),
        })
    }

    async fn continued(&self, token: &str, revision: Option<Revision>) -> Result<(Snapshot, Option<String>), Status> {
        if revision.is_some_and(|revision| revision.0 > 0) {
            return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
        }
        let parsed = Cursor::decode(token)?;
        if parsed.rv < 0 {
            return Ok((self.hub.snapshot(&self.instance).await?, Some(parsed.start)));
        }
        let at = Revision(parsed.rv.unsigned_abs());
        self.wait_for(at).await?;
        match self.hub.engine.snapshot(self.instance.id, Some(at)).await {
            Ok(snapshot) => Ok((snapshot, Some(parsed.start))),
            Err(StoreError::Compacted { .. }) => {
                let mut status = Status::new(
                    410,
                    Reason::Expired,
                    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
                );
                status.continue_token = Some(Cursor::new(-1, &parsed.start).encode());
                Err(status)
            }
            Err(error) => Err(store_status(&error)),
        }
    }

    /// A page of objects in the asked-for form.
    fn page(&self, accept: Accept, metadata: &Value, page: &[Entry]) -> Result<Response<Body>, Status> {
        if accept == Accept::default() {
            let mut out = self.list_head(metadata);
            for (index, entry) in page.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                self.write_item(entry, &mut out);
            }
            out.extend_from_slice(b"]}\n");
            return Ok(response(200, Media::Json.content_type(), out));
        }
        let trees = page.iter().map(|entry| self.kind.tree(entry, entry.modified));
        let list = match accept.form {
            Form::Table => {
                let include = self.include()?;
                let rows = trees.map(|tree| table::row(self, &tree, include, accept.beta)).collect();
                table::table(metadata.clone(), table::columns(self), rows, accept.beta)
            }
            Form::Metadata => {
                let version = if accept.beta { "meta.k8s.io/v1beta1" } else { "meta.k8s.io/v1" };
                let items: Vec<Value> = trees.map(|tree| respond::partial(&tree, accept.beta)).collect();
                json!({"kind": "PartialObjectMetadataList", "apiVersion": version, "metadata": metadata, "items": items})
            }
            Form::Object => {
                let items: Vec<Value> = trees.collect();
                json!({"kind": &*self.kind.list_kind, "apiVersion": self.kind.api_version(), "metadata": metadata, "items": items})
            }
        };
        respond::tree(200, accept.media, &list)
    }

    /// Metadata of a list; lists of custom kinds always say where they go on.
    pub(super) fn list_metadata(&self, snapshot: &Snapshot, form: Form) -> Value {
        let mut metadata = json!({"resourceVersion": snapshot.revision.to_string()});
        if self.kind.custom().is_some() && form == Form::Object {
            metadata["continue"] = "".into();
        }
        metadata
    }

    fn list_head(&self, metadata: &Value) -> Vec<u8> {
        format!(
            "{{\"kind\":{:?},\"apiVersion\":{:?},\"metadata\":{metadata},\"items\":[",
            self.kind.list_kind,
            self.kind.api_version()
        )
        .into_bytes()
    }

    /// Items of built-in lists leave out their kind, which the list names; those of custom kinds do not.
    fn write_item(&self, entry: &Entry, out: &mut Vec<u8>) {
        if self.kind.custom().is_some() || self.kind.converts() {
            self.kind.write(entry, entry.modified, out);
        } else {
            entry.object.write_untyped(entry.modified, out);
        }
    }

    /// A whole list in pieces, so that a long one costs one piece of memory. The snapshot keeps it consistent.
    fn stream_list(&self, snapshot: Snapshot, filter: Filter) -> Response<Body> {
        let mut head = Some(self.list_head(&self.list_metadata(&snapshot, Form::Object)));
        let call = self.fork();
        let prefix = self.prefix();
        let mut after: Option<String> = None;
        let mut first = true;
        let mut done = false;
        let pieces = std::iter::from_fn(move || {
            if done {
                return None;
            }
            let mut out = head.take().unwrap_or_else(|| Vec::with_capacity(PIECE + 4096));
            let mut last = None;
            for (key, entry) in snapshot.range(&prefix, after.as_deref()) {
                if !filter.matches(&call.kind, &entry.object) {
                    continue;
                }
                if !first {
                    out.push(b',');
                }
                first = false;
                call.write_item(entry, &mut out);
                if out.len() >= PIECE {
                    last = Some(key.as_str().to_owned());
                    break;
                }
            }
            if last.is_none() {
                done = true;
                out.extend_from_slice(b"]}\n");
            }
            after = last;
            Some(Ok(Bytes::from(out)))
        });
        response(200, Media::Json.content_type(), Body::stream(stream::iter(pieces)))
    }
}
