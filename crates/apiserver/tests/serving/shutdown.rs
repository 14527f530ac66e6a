//! The end of a server: watches end as if they had run out, requests that run are answered.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};

use crate::port::{Port, body};
use crate::support::Who;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn request(verb: &str, path: &str) -> http::request::Builder {
    let request = Request::builder().method(verb).uri(path).header("host", "localhost");
    request.header("authorization", "Bearer of-admin").header("content-type", "application/json")
}

#[tokio::test]
async fn a_stopped_server_ends_watches_cleanly_and_answers_what_it_had_begun() {
    let port = Port::open().await;
    let mut watching = port.connect("localhost").await;
    let watch = request("GET", &format!("{MAPS}?watch=true")).body(body("")).unwrap();
    let mut events = watching.send_request(watch).await.unwrap().into_body();
    port.hub.post(&Who::Master, MAPS, json!({"metadata": {"name": "a"}})).await.expect(201);
    let first = events.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&first).unwrap()["object"]["metadata"]["name"], "a");

    // A request whose body is half sent when the server is told to stop.
    let (mut pieces, rest) = futures::channel::mpsc::unbounded::<&'static str>();
    let rest = futures::StreamExt::map(rest, |piece| Ok(Frame::data(Bytes::from(piece))));
    pieces.start_send("{\"metadata\":").unwrap();
    let mut writing = port.connect("localhost").await;
    let slow = request("POST", MAPS).header("expect", "100-continue");
    let mut slow = slow.body(BodyExt::boxed(StreamBody::new(rest))).unwrap();
    // The server says "100 Continue" when it begins to read the body.
    let (begins, begun) = tokio::sync::watch::channel(false);
    hyper::ext::on_informational(&mut slow, move |_| {
        let _ = begins.send(true);
    });
    let slow = tokio::spawn(async move { writing.send_request(slow).await });
    begun.clone().wait_for(|begun| *begun).await.unwrap();

    port.stop.cancel();
    port.hub.hub.shutdown.cancel();
    pieces.start_send("{\"name\":\"late\"}}").unwrap();
    drop(pieces);
    assert_eq!(slow.await.unwrap().unwrap().status(), 201);
    while let Some(frame) = events.frame().await {
        // An end without the last chunk would be an error here.
        let line = frame.unwrap().into_data().unwrap();
        let event: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("late")));
    }
    tokio::time::timeout(std::time::Duration::from_secs(60), port.serving).await.unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(port.address).await.is_err(), "nobody listens any more");
    port.hub.get(&Who::Master, &format!("{MAPS}/late")).await.expect(200);
}

#[tokio::test]
async fn a_dropped_instance_ends_its_watches_and_no_others() {
    let port = Port::open().await;
    port.hub.instance("a").await;
    let mut bodies = Vec::new();
    for base in ["/instances/a", ""] {
        let watch = request("GET", &format!("{base}{MAPS}?watch=true")).body(body("")).unwrap();
        bodies.push(port.connect("localhost").await.send_request(watch).await.unwrap().into_body());
    }
    port.hub.hub.drop_instance("a").await.unwrap();
    let ended = bodies.remove(0).collect().await.unwrap().to_bytes();
    assert!(ended.is_empty(), "{ended:?}");
    port.hub.post(&Who::Master, MAPS, json!({"metadata": {"name": "b"}})).await.expect(201);
    assert!(bodies[0].frame().await.unwrap().is_ok(), "the other goes on");
    port.stop.cancel();
}
