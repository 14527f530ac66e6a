//! The guestbook of Kubernetes' test image: a front end that keeps what it is told.

use atoll_apiserver::Query;
use serde_json::json;

use crate::world::World;

/// Longest entry that is kept, and how many are.
const LONGEST: usize = 4096;
const MOST: usize = 1000;

/// Answers `cmd=get|set&key=…&value=…`. All front ends of a namespace have one memory behind them.
pub fn answer(world: &World, namespace: &str, query: &str) -> String {
    let query = Query::parse(Some(query));
    let key = (namespace.to_owned(), query.get("key").unwrap_or_default().to_owned());
    let mut notes = world.notes.lock();
    match query.get("cmd") {
        Some("set") => {
            let value = query.get("value").unwrap_or_default();
            if value.len() <= LONGEST && (notes.len() < MOST || notes.contains_key(&key)) {
                notes.insert(key, value.to_owned());
            }
            json!({"message": "Updated"}).to_string()
        }
        _ => json!({"data": notes.get(&key).map_or("", String::as_str)}).to_string(),
    }
}
