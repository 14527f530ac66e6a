//! The loads: many small writes and reads, whole lists, and one change seen by many watchers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::link::{Address, Link};
use crate::process;
use crate::report::Figures;

/// How much.
#[derive(Args, Clone)]
pub struct Load {
    /// ConfigMaps to create, read, change, list and delete
    #[arg(long, default_value_t = 10_000)]
    pub objects: usize,
    /// Connections that work at once
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Bytes in each ConfigMap
    #[arg(long, default_value_t = 1024)]
    pub size: usize,
    /// Lists of everything
    #[arg(long, default_value_t = 10)]
    pub lists: usize,
    /// Watchers of one object
    #[arg(long, default_value_t = 100)]
    pub watchers: usize,
    /// Changes of that object
    #[arg(long, default_value_t = 200)]
    pub changes: usize,
}

const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";

/// Runs all loads in order and notes what they took. `processes` are the server's, if they are ours.
pub async fn all(
    address: &Address,
    load: &Load,
    processes: Option<&[u32]>,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let memory = |figures: &mut Figures, when: &str| {
        if let Some(processes) = processes {
            figures.note(&format!("memory {when}, MiB"), process::memory(processes));
            figures.note(&format!("memory {when} without pages of files, MiB"), process::own_memory(processes));
        }
    };
    memory(figures, "idle");
    each(address, load, processes, "create", figures).await?;
    memory(figures, &format!("with {} objects", load.objects));
    each(address, load, processes, "get", figures).await?;
    each(address, load, processes, "update", figures).await?;
    lists(address, load, processes, "", figures).await?;
    lists(address, load, processes, "limit=500", figures).await?;
    fan_out(address, load, figures).await?;
    each(address, load, processes, "delete", figures).await?;
    memory(figures, "at the end");
    Ok(())
}

fn config_map(name: &str, size: usize, stamp: &str) -> Bytes {
    let tree = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "load"}},
        "data": {"payload": "x".repeat(size), "stamp": stamp},
    });
    tree.to_string().into()
}

/// One request for each object, spread over all connections.
async fn each(
    address: &Address,
    load: &Load,
    processes: Option<&[u32]>,
    what: &'static str,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    // Handshakes are not what is measured.
    let mut links = Vec::new();
    for _ in 0..load.connections {
        let mut link = address.connect().await?;
        link.send(Method::GET, "/version", Bytes::new()).await?;
        links.push(link);
    }
    let before = processes.map(process::cpu);
    let (started, next) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let (objects, size) = (load.objects, load.size);
    let workers: Vec<_> = links
        .into_iter()
        .map(|mut link| {
            let next = next.clone();
            tokio::spawn(async move {
                let mut times = Vec::new();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= objects {
                        return anyhow::Ok(times);
                    }
                    times.push(one(&mut link, what, &format!("load-{at:06}"), size).await?);
                }
            })
        })
        .collect();
    let mut times = Vec::new();
    for worker in workers {
        times.extend(worker.await??);
    }
    let seconds = started.elapsed().as_secs_f64();
    figures.note(&format!("{what}, per second"), objects as f64 / seconds);
    figures.times(what, times);
    if let (Some(before), Some(processes)) = (before, processes) {
        let used = process::cpu(processes) - before;
        figures.note(&format!("{what}, server CPU per operation, µs"), used * 1e6 / objects as f64);
    }
    Ok(())
}

async fn one(link: &mut Link, what: &str, name: &str, size: usize) -> anyhow::Result<f64> {
    let (method, path, body) = match what {
        "create" => (Method::POST, COLLECTION.to_owned(), config_map(name, size, "0")),
        "update" => (Method::PUT, format!("{COLLECTION}/{name}"), config_map(name, size, "1")),
        "get" => (Method::GET, format!("{COLLECTION}/{name}"), Bytes::new()),
        _ => (Method::DELETE, format!("{COLLECTION}/{name}"), Bytes::new()),
    };
    let started = Instant::now();
    link.send(method, &path, body).await?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

async fn lists(
    address: &Address,
    load: &Load,
    processes: Option<&[u32]>,
    query: &str,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let mut link = address.connect().await?;
    let before = processes.map(process::cpu);
    let mut times = Vec::new();
    for _ in 0..load.lists {
        let started = Instant::now();
        link.send(Method::GET, &format!("{COLLECTION}?{query}"), Bytes::new()).await?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    let what = if query.is_empty() { format!("list of {}", load.objects) } else { format!("list with {query}") };
    figures.times(&what, times);
    if let (Some(before), Some(processes)) = (before, processes) {
        let used = process::cpu(processes) - before;
        figures.note(&format!("{what}, server CPU, ms"), used * 1e3 / load.lists as f64);
    }
    Ok(())
}

/// From sending a change to the moment the last of many watchers has it.
async fn fan_out(address: &Address, load: &Load, figures: &mut Figures) -> anyhow::Result<()> {
    let mut link = address.connect().await?;
    let path = format!("{COLLECTION}/watched");
    link.send(Method::POST, COLLECTION, config_map("watched", load.size, "first")).await?;
    let list = link.send(Method::GET, &format!("{COLLECTION}?limit=1"), Bytes::new()).await?;
    let list: Value = serde_json::from_slice(&list)?;
    let revision = list["metadata"]["resourceVersion"].as_str().context("a list has a resourceVersion")?;
    let (seen, mut arrivals) = mpsc::unbounded_channel();
    let query = format!("{COLLECTION}?watch=1&resourceVersion={revision}&fieldSelector=metadata.name%3Dwatched");
    let mut watchers = tokio::task::JoinSet::new();
    for _ in 0..load.watchers {
        let mut link = address.connect().await?;
        let body = link.open(Method::GET, &query, Bytes::new()).await?;
        watchers.spawn(watch(link, body, seen.clone()));
    }
    let mut times = Vec::new();
    for change in 0..load.changes {
        let stamp = format!("stamp-{change:06}");
        let started = Instant::now();
        link.send(Method::PUT, &path, config_map("watched", load.size, &stamp)).await?;
        let mut last = started;
        for _ in 0..load.watchers {
            let (what, when): (String, Instant) = arrivals.recv().await.context("the watches ended")?;
            anyhow::ensure!(what == stamp, "saw {what} while waiting for {stamp}");
            last = last.max(when);
        }
        times.push((last - started).as_secs_f64() * 1e3);
    }
    figures.times(&format!("change to the last of {} watchers", load.watchers), times);
    link.send(Method::DELETE, &path, Bytes::new()).await?;
    Ok(())
}

/// Reports each stamp and when it came.
async fn watch(_link: Link, mut body: hyper::body::Incoming, seen: mpsc::UnboundedSender<(String, Instant)>) {
    let mut rest = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        let now = Instant::now();
        rest.extend_from_slice(&data);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            // Parsing is the watcher's affair and would be measured as the server's.
            let Some(at) = line.windows(13).rposition(|window| window.starts_with(b"stamp-")) else { continue };
            let stamp = String::from_utf8_lossy(&line[at..at + 12]).into_owned();
            if seen.send((stamp, now)).is_err() {
                return;
            }
        }
    }
}
