//! Commands in pods of members by a stream of gRPC in both directions.

use std::sync::Arc;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use prost_reflect::{DynamicMessage, MethodDescriptor, SerializeOptions};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::hub::{Hub, until};

const SERVICE: &str = "atoll.v1alpha1.PodService";

/// A command that runs.
struct Running {
    method: MethodDescriptor,
    input: mpsc::UnboundedSender<Bytes>,
    body: hyper::body::Incoming,
    buffer: BytesMut,
    /// Status of an answer without messages.
    refused: Option<String>,
}

/// What comes from a command.
#[derive(Debug)]
enum Said {
    Message(Value),
    /// The status at the end of the stream.
    Over(String),
}

impl Running {
    async fn open(hub: &Hub, token: &str, start: Value) -> Self {
        let pool = hub.reflect(SERVICE).await;
        let method = pool.get_service_by_name(SERVICE).unwrap().methods().find(|own| own.name() == "Exec").unwrap();
        let (input, receiver) = mpsc::unbounded_channel::<Bytes>();
        let frames = futures::stream::unfold(receiver, |mut receiver| async {
            let bytes = receiver.recv().await?;
            Some((Ok::<_, std::convert::Infallible>(Frame::data(bytes)), receiver))
        });
        let stream = hub.connect(b"h2").await;
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = hub
            .request(Some(token), "POST", &format!("/{SERVICE}/Exec"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(StreamBody::new(Box::pin(frames)))
            .unwrap();
        let own = input.clone();
        let first = framed(&method, json!({"start": start}));
        own.send(first).unwrap();
        let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
        let refused = parts.headers.get("grpc-status").map(|value| value.to_str().unwrap().to_owned());
        Self { method, input, body, buffer: BytesMut::new(), refused }
    }

    fn send(&self, message: Value) {
        let _ = self.input.send(framed(&self.method, message));
    }

    async fn next(&mut self) -> Said {
        loop {
            if let Some(head) = self.buffer.first_chunk::<5>() {
                let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                if self.buffer.len() >= length + 5 {
                    let mut whole = self.buffer.split_to(length + 5);
                    whole.advance(5);
                    let message = DynamicMessage::decode(self.method.output(), whole.freeze()).unwrap();
                    let options = SerializeOptions::new().skip_default_fields(false);
                    return Said::Message(
                        message.serialize_with_options(serde_json::value::Serializer, &options).unwrap(),
                    );
                }
            }
            let waiting = tokio::time::timeout(std::time::Duration::from_secs(60), self.body.frame());
            match waiting.await.expect("the command says nothing") {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => self.buffer.extend_from_slice(&bytes),
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap();
                        return Said::Over(trailers["grpc-status"].to_str().unwrap().to_owned());
                    }
                },
                Some(Err(error)) => panic!("{error}"),
                None => return Said::Over(self.refused.clone().unwrap_or_default()),
            }
        }
    }

    /// Everything one output says until the end of the command, and how that ended.
    async fn rest(&mut self, output: &str) -> (String, Value) {
        let mut text = String::new();
        loop {
            match self.next().await {
                Said::Message(message) if message["end"].is_object() => return (text, message["end"].clone()),
                Said::Message(message) => text.push_str(&decoded(&message[output])),
                Said::Over(status) => panic!("over with {status} after {text}"),
            }
        }
    }
}

fn decoded(value: &Value) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap_or_default()).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn encoded(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn framed(method: &MethodDescriptor, message: Value) -> Bytes {
    let message = DynamicMessage::deserialize(method.input(), message).unwrap();
    let mut out = BytesMut::new();
    out.put_u8(0);
    out.put_u32(u32::try_from(message.encoded_len()).unwrap());
    message.encode(&mut out).unwrap();
    out.freeze()
}

fn start(command: &[&str], stdin: bool) -> Value {
    json!({"instance": "fleet", "cluster": "member1", "namespace": "default", "name": "p", "command": command, "stdin": stdin})
}

#[tokio::test(flavor = "multi_thread")]
async fn s11_commands_run_over_grpc_for_who_may_enter_pods_until_they_may_not() {
    let hub = Arc::new(Hub::start());
    let admin = Some(hub.token.as_str());
    let pods = "/instances/member1/api/v1/namespaces/default/pods";
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    assert_eq!(hub.rest(admin, "POST", pods, Some(pod)).await.0, 201);
    let runs = async || hub.rest(admin, "GET", &format!("{pods}/p"), None).await.1["status"]["phase"] == "Running";
    until(&hub, "the pod runs", runs).await;
    let (ann, bob) = (hub.account("ann"), hub.account("bob"));
    hub.grant("ann", "editor", "ann", "fleet", "default").await;
    hub.grant("bob", "viewer", "bob", "fleet", "default").await;
    let maps = "/instances/fleet/api/v1/namespaces/default/configmaps";
    for who in [&ann, &bob] {
        until(&hub, "the grants hold", async || hub.rest(Some(who), "GET", maps, None).await.0 == 200).await;
    }

    let mut failing = Running::open(&hub, &ann, start(&["sh", "-c", "echo oh >&2; exit 3"], false)).await;
    let (text, end) = failing.rest("stderr").await;
    assert!(text.starts_with("oh\n"), "{text}");
    assert_eq!(end["code"], 3, "{end}");
    assert!(matches!(failing.next().await, Said::Over(status) if status == "0"));

    let mut shell = Running::open(&hub, &ann, start(&["cat"], true)).await;
    shell.send(json!({"stdin": encoded("through\n")}));
    shell.send(json!({"closeStdin": true}));
    let (text, end) = shell.rest("stdout").await;
    assert_eq!((text.as_str(), &end["code"]), ("through\n", &json!(0)), "{end}");

    // Who may see pods may not enter them; nor may nobody; and nonsense is told.
    for (token, first, wanted) in [
        (bob.as_str(), start(&["true"], false), "7"),
        ("wrong", start(&["true"], false), "16"),
        (ann.as_str(), start(&[], false), "3"),
        (ann.as_str(), json!({}), "3"),
    ] {
        let mut refused = Running::open(&hub, token, first).await;
        let said = refused.next().await;
        assert!(matches!(&said, Said::Over(status) if status == wanted), "{said:?}");
    }

    let mut open = Running::open(&hub, &ann, start(&["sh"], true)).await;
    open.send(json!({"stdin": encoded("echo here\n")}));
    assert!(matches!(open.next().await, Said::Message(_)));
    assert_eq!(hub.rest(admin, "DELETE", "/apis/atoll.io/v1alpha1/grants/ann", None).await.0, 200);
    let status = loop {
        if let Said::Over(status) = open.next().await {
            break status;
        }
    };
    assert_eq!(status, "7", "the stream says why it ended");

    let record = std::fs::read_to_string(hub.directory.path().join("audit.jsonl")).unwrap();
    let line = |words: &[&str]| record.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(line(&["\"ann\"", "Pod.Exec", "done"]) && line(&["\"bob\"", "Pod.Exec", "refused"]), "{record}");
    assert!(!record.contains("exit 3"), "commands are not on record");
}
