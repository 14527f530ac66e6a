//! GET with `watch`: the present state and then every change, in order, without gap or repeat.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use atoll_meta::{Revision, Status};
use atoll_store::{Entry, Event, Scope, StoreError, Watch};
use bytes::Bytes;
use futures::stream;
use http::Response;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::list::Filter;
use crate::body::Body;
use crate::call::Call;
use crate::instance::{store_status, too_large};
use crate::negotiate::{Accept, Form, Media};
use crate::respond::{partial, response};
use crate::table;

const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// Events that are put into one buffer before it is handed to the connection.
const BATCH: usize = 64 * 1024;

/// What a watch needs to turn changes into bytes.
struct Watcher {
    call: Call,
    accept: Accept,
    filter: Filter,
    /// Only keys with this prefix (a namespace) concern this watch.
    prefix: String,
    changes: Box<dyn Watch>,
    /// Present state still to be told.
    initial: VecDeque<Entry>,
    /// The revision of the present state, until its end was announced.
    initial_end: Option<Revision>,
    announce_end: bool,
    bookmarks: bool,
    next_bookmark: Instant,
    deadline: Instant,
    /// Whether a bookmark comes before the end; short watches have nothing to save by it.
    last_word: bool,
    last_sent: Revision,
    first_table: bool,
    finished: bool,
    _place: crate::limit::Entered,
}

impl Call {
    /// Watches the collection.
    pub async fn watch(&self) -> Result<Response<Body>, Status> {
        let place = self.hub.enter_watch(&self.instance)?;
        let accept = self.accept_watch()?;
        self.query.check_watch()?;
        let filter = self.filter()?;
        let revision = self.query.revision()?;
        let bookmarks = self.query.flag("allowWatchBookmarks");
        let asked = self.query.get("sendInitialEvents").is_some_and(|value| !value.is_empty());
        let send_initial = asked && self.query.flag("sendInitialEvents");
        let seconds = match self.query.number("timeoutSeconds")? {
            Some(seconds) if seconds > 0 => seconds.unsigned_abs(),
            _ => 1800 + rand::random::<u64>() % 1800,
        };
        let content_type = match accept.media {
            Media::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            Media::Json | Media::Yaml => "application/json",
        };
        let now = Instant::now();
        let unset = revision.is_none_or(|revision| revision.0 == 0);
        let from_start = send_initial || (unset && !asked);
        let (after, initial) = if from_start {
            let snapshot = match revision {
                Some(wanted) => match self.wait_for(wanted).await {
                    Ok(()) => self.hub.recent(&self.instance).await?,
                    Err(status) => return Ok(response(200, content_type, error_event(&status, accept.media))),
                },
                None => self.hub.snapshot(&self.instance).await?,
            };
            let prefix = self.prefix();
            let entries = snapshot
                .range(&prefix, None)
                .filter(|(_, e)| filter.matches(&self.kind, &e.object))
                .map(|(_, e)| e.clone());
            (snapshot.revision, entries.collect())
        } else if unset {
            (self.hub.engine.revision(self.instance.id).map_err(|error| store_status(&error))?, VecDeque::new())
        } else {
            (revision.unwrap_or_default(), VecDeque::new())
        };
        let changes = match self.follow(after, seconds).await {
            Ok(Some(changes)) => changes,
            Ok(None) => return Ok(response(200, content_type, Vec::new())),
            Err(status) => return Ok(response(200, content_type, error_event(&status, accept.media))),
        };
        let watcher = Watcher {
            call: self.fork(),
            accept: Accept { media: if accept.media == Media::Yaml { Media::Json } else { accept.media }, ..accept },
            filter,
            prefix: self.prefix(),
            changes,
            initial,
            initial_end: from_start.then_some(after),
            announce_end: send_initial && bookmarks,
            bookmarks,
            next_bookmark: now + BOOKMARK_EVERY,
            deadline: now + Duration::from_secs(seconds),
            last_word: bookmarks && seconds > 2,
            last_sent: after,
            first_table: true,
            finished: false,
            _place: place,
        };
        let buffers = stream::unfold(watcher, |mut watcher| async move {
            let bytes = watcher.next().await?;
            Some((Ok(bytes), watcher))
        });
        let mut answer = response(200, content_type, Body::stream(buffers));
        self.add_warnings(&mut answer);
        Ok(answer)
    }

    /// Changes after a revision; `None` when that revision does not come within the time of the watch.
    ///
    /// Another replica may be ahead for a moment. An instance that was made anew never gets there: who
    /// followed the old one is told, and begins again.
    async fn follow(&self, after: Revision, seconds: u64) -> Result<Option<Box<dyn Watch>>, Status> {
        let begin = || {
            let changes = self.hub.engine.watch(self.instance.id, Scope::Resource(self.resource()), after);
            changes.map(Some)
        };
        match begin() {
            Err(StoreError::Future { .. }) => {
                match tokio::time::timeout(Duration::from_secs(seconds), self.wait_for(after)).await {
                    Ok(reached) => reached?,
                    Err(_) => return Ok(None),
                }
                begin().map_err(|error| watch_error(&error, after))
            }
            other => other.map_err(|error| watch_error(&error, after)),
        }
    }
}

impl Watcher {
    /// The next buffer, or the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.finished {
            return None;
        }
        let mut out = Vec::new();
        while let Some(entry) = self.initial.pop_front() {
            self.put("ADDED", &entry, entry.modified, &mut out);
            if out.len() >= BATCH {
                return Some(out.into());
            }
        }
        if let Some(revision) = self.initial_end.take() {
            if self.announce_end {
                self.bookmark(revision, true, &mut out);
            }
            if !out.is_empty() {
                return Some(out.into());
            }
        }
        loop {
            let wake = self.next_bookmark.min(self.deadline);
            tokio::select! {
                biased;
                () = self.call.hub.shutdown.cancelled() => return None,
                () = self.call.instance.gone.cancelled() => return None,
                changes = self.changes.next() => match changes {
                    Ok(events) => {
                        for event in &events {
                            self.event(event, &mut out);
                        }
                    }
                    Err(StoreError::NoInstance) => return None,
                    Err(error) => {
                        self.finished = true;
                        return Some(error_event(&watch_error(&error, self.last_sent), self.accept.media).into());
                    }
                },
                () = tokio::time::sleep_until(wake) => {
                    let now = Instant::now();
                    if now >= self.deadline {
                        self.finished = true;
                        if !self.last_word {
                            return None;
                        }
                    }
                    self.next_bookmark = now + BOOKMARK_EVERY;
                    if self.bookmarks {
                        let revision = self.changes.progress();
                        self.bookmark(revision, false, &mut out);
                    }
                }
            }
            if !out.is_empty() {
                return Some(out.into());
            }
            if self.finished {
                return None;
            }
        }
    }

    /// A change as this watch sees it: its selector may turn it into coming, staying or going.
    fn event(&mut self, event: &Arc<Event>, out: &mut Vec<u8>) {
        if !event.key.as_str().starts_with(&self.prefix) {
            return;
        }
        let fits = |entry: &Entry| self.filter.matches(&self.call.kind, &entry.object);
        let everything = self.filter.is_everything();
        let before = event.previous.as_ref().is_some_and(|entry| everything || fits(entry));
        let now = event.current.as_ref().is_some_and(|entry| everything || fits(entry));
        match (before, now, &event.current, &event.previous) {
            (false, true, Some(entry), _) => self.put("ADDED", entry, event.revision, out),
            (true, true, Some(entry), _) => self.put("MODIFIED", entry, event.revision, out),
            (true, false, _, Some(entry)) => self.put("DELETED", entry, event.revision, out),
            _ => {}
        }
        self.last_sent = event.revision;
    }

    fn put(&mut self, what: &str, entry: &Entry, revision: Revision, out: &mut Vec<u8>) {
        if self.accept.form == Form::Object && self.accept.media == Media::Json {
            out.extend_from_slice(b"{\"type\":\"");
            out.extend_from_slice(what.as_bytes());
            out.extend_from_slice(b"\",\"object\":");
            self.call.kind.write(entry, revision, out);
            out.extend_from_slice(b"}\n");
            return;
        }
        let tree = self.call.kind.tree(entry, revision);
        let object = match self.accept.form {
            Form::Object => tree,
            Form::Metadata => partial(&tree, self.accept.beta),
            Form::Table => {
                let include = self.call.include().unwrap_or(table::Include::Metadata);
                let columns =
                    if std::mem::take(&mut self.first_table) { table::columns(&self.call) } else { Value::Null };
                let metadata = json!({"resourceVersion": revision.to_string()});
                table::table(
                    metadata,
                    columns,
                    vec![table::row(&self.call, &tree, include, self.accept.beta)],
                    self.accept.beta,
                )
            }
        };
        frame(what, &object, self.accept.media, out);
    }

    fn bookmark(&mut self, revision: Revision, initial_end: bool, out: &mut Vec<u8>) {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let kind = &self.call.kind;
        let object = match self.accept.form {
            Form::Object => json!({"kind": &*kind.kind, "apiVersion": kind.api_version(), "metadata": metadata}),
            Form::Metadata => partial(&json!({"metadata": metadata}), self.accept.beta),
            Form::Table => {
                let row = json!({"cells": [], "object": partial(&json!({"metadata": metadata}), false)});
                table::table(json!({"resourceVersion": revision.to_string()}), Value::Null, vec![row], self.accept.beta)
            }
        };
        frame("BOOKMARK", &object, self.accept.media, out);
    }
}

fn frame(what: &str, object: &Value, media: Media, out: &mut Vec<u8>) {
    if media == Media::Protobuf
        && let Ok(enveloped) = atoll_builtin::proto::encode(object)
    {
        out.extend_from_slice(&atoll_builtin::proto::encode_watch_event(what, &enveloped));
        return;
    }
    // Serialising a tree into a vector cannot fail.
    let _ = serde_json::to_writer(&mut *out, &json!({"type": what, "object": object}));
    out.push(b'\n');
}

fn error_event(status: &Status, media: Media) -> Vec<u8> {
    let mut out = Vec::new();
    frame("ERROR", &status.to_value(), media, &mut out);
    out
}

fn watch_error(error: &StoreError, after: Revision) -> Status {
    match error {
        StoreError::Compacted { oldest } => Status::expired(format!("too old resource version: {after} ({oldest})")),
        StoreError::Future { newest } => too_large(after, *newest),
        other => store_status(other),
    }
}
