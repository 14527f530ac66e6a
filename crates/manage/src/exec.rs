//! Commands in pods of members over gRPC, for who may run them in the instance.

use std::convert::Infallible;

use atoll_apiserver::{Asked, Body, Hub, Identity, Incoming, Line, Place, RequestInfo, Verb, handle};
use atoll_meta::Status;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::SinkExt as _;
use futures::channel::mpsc::Sender as SizeSender;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, AttachParams, AttachedProcess, TerminalSize};
use prost_reflect::MethodDescriptor;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::api::{Api as Descriptors, Reply};
use crate::ask::Ask;
use crate::context::{Core, Ctx, Wish, member_of};
use crate::grpc::{self, Frames};
use crate::guard::{Leash, Shown, hold};
use crate::manage::Manage;
use crate::service::pod_part;

/// The path of the method.
const PATH: &str = "/atoll.v1alpha1.PodService/Exec";
/// Pieces of output that wait for a slow caller.
const WAITING: usize = 16;
/// Largest piece of output.
const PIECE: usize = 32 * 1024;

/// Whether a request runs a command.
pub fn is_exec<B>(request: &Request<B>) -> bool {
    request.uri().path() == PATH && grpc::is_grpc(request.headers())
}

/// Runs a command, on a leash, and puts that on record.
pub async fn open(
    manage: &Manage,
    request: Request<Incoming>,
    identity: Identity,
    (shown, line): (Shown, Option<Line>),
) -> Response<Body> {
    let method = &Descriptors::get().methods[PATH];
    let mut frames = Frames::new(request.into_body());
    let start = match first(method, &mut frames).await {
        Ok(start) => start,
        Err(status) => return grpc::failed(&status),
    };
    let core = manage.core().clone();
    let ctx = Ctx { core: core.clone(), identity: identity.clone(), wish: Wish::default() };
    let opened = run(&ctx, &start).await;
    let mut about = start.clone();
    about.as_object_mut().map(|map| map.remove("command")); // what is typed may hold secrets
    core.audit.record(&identity, "Pod.Exec", &about, opened.as_ref().err(), core.hub.now());
    let process = match opened {
        Ok(process) => process,
        Err(status) => return grpc::failed(&status),
    };
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(attend(process, frames, method.clone(), sender));
    let pieces = futures::stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    let answer = grpc::answer(method, Ok(Reply::Many(Box::pin(pieces))));
    let text = |key: &str| start[key].as_str().unwrap_or_default();
    let target = pod_part(text("namespace"), text("name"), "exec");
    let seen = core.hub.instance(text("instance")).map(|instance| Asked {
        instance,
        identity,
        info: RequestInfo { verb: Verb::Create, place: Place::Resource(target) },
        path: String::new(),
    });
    hold(Leash::in_root(core, shown, seen), line, answer)
}

/// What the first message says.
async fn first(method: &MethodDescriptor, frames: &mut Frames) -> Result<Value, Status> {
    let message = frames.next(method).await?.ok_or_else(|| Status::bad_request("the request holds no message"))?;
    match &message["start"] {
        Value::Object(start) => Ok(Value::Object(start.clone())),
        _ => Err(Status::bad_request("the first message must say which command to start")),
    }
}

/// Starts the command, when the caller may.
async fn run(ctx: &Ctx, start: &Value) -> Result<AttachedProcess, Status> {
    let ask = Ask(start);
    let (instance, member) = (ask.segment("instance")?, ask.segment("cluster")?);
    let (namespace, name) = (ask.segment("namespace")?, ask.segment("name")?);
    let command: Vec<&str> = start["command"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if command.is_empty() {
        return Err(Status::bad_request("there is no command"));
    }
    ctx.may_sub(instance, &pod_part(namespace, name, "exec"), Verb::Create).await?;
    let endpoint = member_of(&ctx.core, instance, member).await?;
    let client = match endpoint.transport().remote() {
        Some(client) => client.clone(),
        None => inside(&ctx.core, endpoint.name()),
    };
    let tty = start["tty"] == true;
    let params = AttachParams {
        container: ask.segment_opt("container")?.map(ToOwned::to_owned),
        stdin: start["stdin"] == true,
        stdout: true,
        stderr: !tty,
        tty,
        ..AttachParams::default()
    };
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    pods.exec(name, command, &params).await.map_err(|error| match error {
        kube::Error::Api(status) => Status::new(status.code, atoll_meta::Reason::Unknown, status.message.clone()),
        kube::Error::UpgradeConnection(error) => Status::bad_request(format!("the member does not run it: {error}")),
        other => Status::unavailable(other.to_string()),
    })
}

/// A way to an instance of this hub that can be upgraded, without a socket.
fn inside(core: &Core, instance: &str) -> kube::Client {
    let (hub, instance) = (core.hub.clone(), instance.to_owned());
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (hub, instance) = (hub.clone(), instance.clone());
        async move {
            let (near, far) = tokio::io::duplex(2 * PIECE);
            let serving = hyper::service::service_fn(move |request| {
                let (hub, instance) = (hub.clone(), instance.clone());
                async move { Ok::<_, Infallible>(serve(hub, &instance, request).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), serving);
            tokio::spawn(connection.with_upgrades());
            let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(near)).await?;
            tokio::spawn(connection.with_upgrades());
            sender.send_request(request).await
        }
    });
    kube::Client::new(service, "default")
}

async fn serve(hub: Arc<Hub>, instance: &str, mut request: Request<hyper::body::Incoming>) -> Response<Body> {
    let path = format!("/instances/{instance}{}", request.uri());
    match path.parse() {
        Ok(uri) => *request.uri_mut() = uri,
        Err(error) => return atoll_apiserver::failure(&Status::bad_request(format!("{path}: {error}"))),
    }
    // What the caller may was decided before, by the roles of the instance.
    request.extensions_mut().insert(Identity::master("system:atoll:manage"));
    handle(hub, request.map(|body| body.map_err(Into::into).boxed_unsync())).await
}

type Out = mpsc::Sender<Result<Value, Status>>;

/// Carries bytes both ways until the command ends or nobody listens any more.
async fn attend(mut process: AttachedProcess, frames: Frames, method: MethodDescriptor, sender: Out) {
    let (stdin, sizes) = (process.stdin(), process.terminal_size());
    let input = tokio::spawn(async move { feed(frames, &method, stdin, sizes).await });
    let status = process.take_status();
    let (out, err) = (process.stdout(), process.stderr());
    tokio::select! {
        () = sender.closed() => process.abort(),
        () = async {
            tokio::join!(tell("stdout", out, &sender), tell("stderr", err, &sender));
            let end = match status {
                Some(status) => status.await,
                None => None,
            };
            let _ = sender.send(Ok(json!({"end": ended(end)}))).await;
        } => {}
    }
    input.abort();
}

/// Passes the caller's messages on to the command.
async fn feed(
    mut frames: Frames,
    method: &MethodDescriptor,
    mut stdin: Option<impl tokio::io::AsyncWrite + Unpin>,
    mut sizes: Option<SizeSender<TerminalSize>>,
) {
    while let Ok(Some(message)) = frames.next(method).await {
        let bytes = STANDARD.decode(message["stdin"].as_str().unwrap_or_default()).unwrap_or_default();
        if let Some(stdin) = stdin.as_mut().filter(|_| !bytes.is_empty()) {
            let written = async { stdin.write_all(&bytes).await.is_ok() && stdin.flush().await.is_ok() };
            if !written.await {
                return;
            }
        }
        let side = |key: &str| message["size"][key].as_u64().and_then(|side| u16::try_from(side).ok());
        if let (Some(width), Some(height), Some(sizes)) = (side("width"), side("height"), sizes.as_mut()) {
            let _ = sizes.send(TerminalSize { width, height }).await;
        }
        if message["closeStdin"] == true {
            end(stdin.take()).await;
        }
    }
    end(stdin).await;
}

/// Tells the command that no more input comes; only dropping it does not.
async fn end(stdin: Option<impl tokio::io::AsyncWrite + Unpin>) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.shutdown().await;
    }
}

/// Passes one output of the command on to the caller.
async fn tell(name: &str, from: Option<impl AsyncRead + Unpin>, sender: &Out) {
    let Some(mut from) = from else { return };
    let mut piece = vec![0; PIECE];
    while let Ok(read) = from.read(&mut piece).await {
        if read == 0 || sender.send(Ok(json!({name: STANDARD.encode(&piece[..read])}))).await.is_err() {
            return;
        }
    }
}

/// How the command ended, as the member tells it.
fn ended(status: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Status>) -> Value {
    let Some(status) = status else {
        return json!({"code": 1, "message": "the connection ended before the command did"});
    };
    if status.status.as_deref() == Some("Success") {
        return json!({"code": 0});
    }
    let causes = status.details.and_then(|details| details.causes).unwrap_or_default();
    let code = causes.iter().find(|cause| cause.reason.as_deref() == Some("ExitCode"));
    let code = code.and_then(|cause| cause.message.as_deref()).and_then(|text| text.parse::<i32>().ok());
    json!({"code": code.unwrap_or(1), "message": status.message.unwrap_or_default()})
}
