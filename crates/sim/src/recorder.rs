//! Writes events in the background and many at a time, as the recorders of a real cluster do: whoever tells something
//! does not wait for the disk.

use std::sync::Arc;

use atoll_meta::{Gvr, Status};
use atoll_runtime::Endpoint;
use futures::{FutureExt as _, StreamExt as _};
use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::world::World;

/// How many events wait at most before those who tell more have to.
const ROOM: usize = 4096;
/// How many are written at once.
const WIDTH: usize = 32;

/// An event on its way.
pub struct Note {
    /// In whose name it is told.
    pub endpoint: Endpoint,
    /// Its namespace.
    pub namespace: String,
    /// The whole event, with its name.
    pub event: Value,
    /// Whether it was told before: then only what changes is written.
    pub again: bool,
}

impl Note {
    fn name(&self) -> &str {
        self.event["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// What a later telling of the same event says in addition.
    fn extend(&mut self, later: Self) {
        for field in ["count", "lastTimestamp"] {
            self.event[field] = later.event[field].clone();
        }
    }
}

/// The way of events to those who write them.
pub struct Recorder {
    sender: mpsc::Sender<Note>,
    receiver: Mutex<Option<mpsc::Receiver<Note>>>,
}

impl Default for Recorder {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(ROOM);
        Self { sender, receiver: Mutex::new(Some(receiver)) }
    }
}

impl Recorder {
    /// Hands an event over; waits only when very many do already.
    pub async fn take(&self, note: Note) {
        // Nobody writes events any more when the cluster ends.
        let _ = self.sender.send(note).await;
    }
}

/// Writes events until the cluster ends.
pub async fn run(world: Arc<World>) {
    let Some(mut receiver) = world.recorder.receiver.lock().take() else { return };
    let mut notes = Vec::new();
    loop {
        let count = tokio::select! {
            () = world.stop.cancelled() => return,
            count = receiver.recv_many(&mut notes, WIDTH) => count,
        };
        if count == 0 {
            return;
        }
        for round in rounds(notes.drain(..)) {
            let writes: Vec<_> = round.into_iter().map(|note| write(&world, note).boxed()).collect();
            futures::stream::iter(writes).buffer_unordered(WIDTH).for_each(|()| std::future::ready(())).await;
        }
    }
}

/// What can be written at once, then what has to wait for it: what was told several times in the same words is written
/// once, and an event that gets other words keeps their order, so that who watches sees each of them.
fn rounds(notes: impl Iterator<Item = Note>) -> Vec<Vec<Note>> {
    let mut rounds: Vec<Vec<Note>> = vec![Vec::new()];
    for note in notes {
        let Some(last) = rounds.last_mut() else { continue };
        match last.iter_mut().find(|known| known.name() == note.name() && known.namespace == note.namespace) {
            Some(known) if known.event["message"] == note.event["message"] => known.extend(note),
            Some(_) => rounds.push(vec![note]),
            None => last.push(note),
        }
    }
    rounds
}

/// Writes one event; a failure is only logged.
async fn write(world: &World, note: Note) {
    let result = match note.again {
        false => create(&note).await,
        true => match patch(&note).await {
            // It expired meanwhile, so its name is free.
            Err(status) if status.code == 404 => create(&note).await,
            result => result,
        },
    };
    if let Err(status) = result {
        tracing::debug!(instance = %world.name, %status, "event not recorded");
    }
}

async fn create(note: &Note) -> Result<(), Status> {
    let path = Gvr::new("", "v1", "events").path(Some(&note.namespace), None);
    send(note, Method::POST, &path, "application/json", &note.event).await
}

async fn patch(note: &Note) -> Result<(), Status> {
    let path = Gvr::new("", "v1", "events").path(Some(&note.namespace), Some(note.name()));
    let event = &note.event;
    let patch = json!({"count": event["count"], "lastTimestamp": event["lastTimestamp"], "message": event["message"]});
    send(note, Method::PATCH, &path, "application/merge-patch+json", &patch).await
}

async fn send(note: &Note, method: Method, path: &str, language: &str, body: &Value) -> Result<(), Status> {
    let bytes = serde_json::to_vec(body).unwrap_or_default().into();
    note.endpoint.send(method, path, language, bytes).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint() -> Endpoint {
        struct Nowhere;
        #[async_trait::async_trait]
        impl atoll_runtime::Transport for Nowhere {
            async fn send(
                &self,
                _: http::Request<bytes::Bytes>,
            ) -> Result<http::Response<atoll_runtime::BodyStream>, Status> {
                Err(Status::unavailable("nowhere"))
            }
        }
        Endpoint::new("nowhere", Arc::new(Nowhere), "test")
    }

    fn note(name: &str, count: u32, message: &str) -> Note {
        Note {
            endpoint: endpoint(),
            namespace: "d".into(),
            event: json!({"metadata": {"name": name}, "count": count, "message": message,
                          "firstTimestamp": count, "lastTimestamp": count}),
            again: count > 1,
        }
    }

    #[test]
    fn what_is_told_again_before_it_was_written_is_written_once() {
        let all = [note("a", 1, "m"), note("b", 4, "m"), note("a", 2, "m"), note("a", 3, "m")];
        let kept = rounds(all.into_iter()).remove(0);
        assert_eq!(kept.len(), 2);
        assert_eq!((kept[0].name(), kept[0].again, &kept[0].event["count"]), ("a", false, &json!(3)));
        assert_eq!((&kept[0].event["firstTimestamp"], &kept[0].event["lastTimestamp"]), (&json!(1), &json!(3)));
        assert_eq!((kept[1].name(), kept[1].again), ("b", true));
    }

    #[test]
    fn other_words_of_the_same_event_are_written_one_after_the_other() {
        let all =
            [note("a", 10, "down"), note("b", 1, "m"), note("a", 11, "up"), note("c", 1, "m"), note("a", 12, "up")];
        let told: Vec<Vec<_>> = rounds(all.into_iter())
            .iter()
            .map(|round| round.iter().map(|note| (note.name().to_owned(), note.event["message"].clone())).collect())
            .collect();
        let told_of = |name: &str, message: &str| (name.to_owned(), json!(message));
        assert_eq!(told, [vec![told_of("a", "down"), told_of("b", "m")], vec![told_of("a", "up"), told_of("c", "m")],]);
    }
}
