//! TokenRequest: tokens of service accounts, for a while, for an audience, bound to an object.

use atoll_meta::{FieldError, FieldPath, Key, Status};
use atoll_pki::{Bound, Claims};
use atoll_store::Entry;
use http::Response;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::body::Body;
use crate::call::Call;
use crate::negotiate::{self, Offer};

const DEFAULT_SECONDS: i64 = 3600;
const MIN_SECONDS: i64 = 600;
const MAX_FIELD: i64 = 1 << 32;

/// Issues a token for a service account.
pub async fn token(call: &Call, body: &[u8]) -> Result<Response<Body>, Status> {
    let accept = negotiate::accept(&call.headers, Offer { protobuf: true, list: false, watch: false, forms: false })?;
    let dry_run = call.query.dry_run()?;
    let mut request = decode(call, body)?;
    let key = call.key(&call.target.name);
    let account = call.hub.read(&call.instance, key.as_str()).await?.ok_or_else(|| call.not_found())?;
    let seconds = seconds(call, &request["spec"])?;
    let (bound, node) = match &request["spec"]["boundObjectRef"] {
        Value::Null => (None, None),
        reference => bind(call, reference).await?,
    };
    request["metadata"] = json!({});
    request["spec"]["expirationSeconds"] = seconds.into();
    let managed = managers(call, &request)?;
    let authority = call.hub.authority(&call.instance).await?;
    let mut audiences: Vec<String> = request["spec"]["audiences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(ToOwned::to_owned)
        .collect();
    if audiences.is_empty() {
        audiences = authority.audiences();
    }
    let expires = call.now.checked_add(SignedDuration::from_secs(seconds)).map_err(Status::internal)?;
    let claims = Claims {
        namespace: call.target.namespace.clone(),
        name: call.target.name.clone(),
        uid: account.object.head.uid.to_string(),
        audiences: audiences.clone(),
        expires: Some(expires),
        bound,
        node,
        jti: uuid::Uuid::new_v4().to_string(),
    };
    let signed =
        if dry_run { String::new() } else { authority.signer().sign(&claims, call.now).map_err(Status::internal)? };
    request["metadata"] = json!({
        "name": call.target.name, "namespace": call.target.namespace, "creationTimestamp": call.timestamp(),
        "uid": uuid::Uuid::new_v4().to_string(),
    });
    if let Some(managed) = managed {
        request["metadata"]["managedFields"] = managed;
    }
    request["spec"]["audiences"] = audiences.into();
    if request["spec"].get("boundObjectRef").is_none() {
        request["spec"]["boundObjectRef"] = Value::Null;
    }
    request["status"] = json!({"token": signed, "expirationTimestamp": atoll_meta::time::format(expires)});
    let mut answer = crate::respond::tree(201, accept.media, &request)?;
    call.add_warnings(&mut answer);
    Ok(answer)
}

/// Who is recorded to have asked for what.
fn managers(call: &Call, request: &Value) -> Result<Option<Value>, Status> {
    let types = atoll_builtin::types();
    let schema = types.get("io.k8s.api.authentication.v1.TokenRequest");
    let mut request = request.clone(); // the answer has other metadata
    if let Some(spec) = request["spec"].as_object_mut() {
        spec.retain(|_, value| !value.is_null());
    }
    let tracked = atoll_patch::managed::Request {
        manager: &call.manager()?,
        api_version: "authentication.k8s.io/v1",
        subresource: "token",
        now: &call.timestamp(),
        schema: schema.map(|schema| atoll_schema::Typed::new(types, schema)),
        reset: &[],
        versions: &|_| true,
    };
    atoll_patch::managed::update(&tracked, None, &mut request);
    Ok(request["metadata"].get_mut("managedFields").map(Value::take))
}

fn decode(call: &Call, body: &[u8]) -> Result<Value, Status> {
    let (mut request, _) = crate::decode::parse(negotiate::content(&call.headers)?, body)?;
    if !request.is_object() {
        return Err(Status::bad_request(
            "the object provided is unrecognized (must be of type object): couldn't get version/kind",
        ));
    }
    for (field, expected) in [("kind", "TokenRequest"), ("apiVersion", "authentication.k8s.io/v1")] {
        match request[field].as_str().unwrap_or_default() {
            "" => request[field] = expected.into(),
            given if given == expected => {}
            _ => {
                let text = |field: &str| request[field].as_str().unwrap_or_default();
                let (kind, version) = (text("kind"), text("apiVersion"));
                return Err(Status::bad_request(format!(
                    "{kind} in version {version:?} cannot be handled as a TokenRequest: no kind {kind:?} is registered for version {version:?}"
                )));
            }
        }
    }
    let name = request["metadata"]["name"].as_str().unwrap_or_default();
    if !name.is_empty() && name != call.target.name {
        let why = "must match the service account name if specified";
        let error = FieldError::invalid(FieldPath::new("metadata.name"), name, why);
        return Err(Status::invalid("authentication.k8s.io", "TokenRequest", &call.target.name, &[error]));
    }
    if !request["spec"].is_object() {
        request["spec"] = json!({});
    }
    Ok(request)
}

fn seconds(call: &Call, spec: &Value) -> Result<i64, Status> {
    let asked = match &spec["expirationSeconds"] {
        Value::Null => DEFAULT_SECONDS,
        given => given.as_i64().ok_or_else(|| Status::bad_request("spec.expirationSeconds must be a whole number"))?,
    };
    let invalid = |why: &str| {
        let error = FieldError::invalid(FieldPath::new("spec.expirationSeconds"), asked, why);
        Status::invalid("authentication.k8s.io", "TokenRequest", "", &[error])
    };
    if asked < MIN_SECONDS {
        return Err(invalid("may not specify a duration less than 10 minutes"));
    }
    if asked > MAX_FIELD {
        return Err(invalid("may not specify a duration larger than 2^32 seconds"));
    }
    let most = call.hub.options.max_token_seconds;
    if asked > most {
        call.warn(format!("requested expiration of {asked} seconds shortened to {most} seconds"));
        return Ok(most);
    }
    Ok(asked)
}

type Binding = (Option<Bound>, Option<(String, String)>);

/// The object a token ends with, checked against what is there.
async fn bind(call: &Call, reference: &Value) -> Result<Binding, Status> {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let namespace = &call.target.namespace;
    let (plural, key) = match (text("apiVersion"), kind) {
        ("v1", "Pod") => ("pods", Key::new("", "pods", namespace, name)),
        ("v1", "Secret") => ("secrets", Key::new("", "secrets", namespace, name)),
        ("v1", "Node") => ("nodes", Key::new("", "nodes", "", name)),
        (version, kind) => {
            let version = if version.contains('/') { version.to_owned() } else { format!("/{version}") };
            return Err(Status::bad_request(format!("cannot bind token to object of type {version}, Kind={kind}")));
        }
    };
    let entry =
        call.hub.read(&call.instance, key.as_str()).await?.ok_or_else(|| Status::not_found("", plural, name))?;
    let uid = entry.object.head.uid.to_string();
    let given = text("uid");
    if !given.is_empty() && given != uid {
        let why = format!(
            "the UID in the bound object reference ({given}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(Status::conflict("", plural, name, why));
    }
    let node = if kind == "Pod" { node_of(call, &entry).await? } else { None };
    Ok((Some(Bound { kind: kind.to_owned(), name: name.to_owned(), uid }), node))
}

/// The node a pod runs on; also refuses pods that run as somebody else.
async fn node_of(call: &Call, entry: &Entry) -> Result<Option<(String, String)>, Status> {
    let pod = entry.object.tree(entry.modified);
    let account = pod["spec"]["serviceAccountName"].as_str().unwrap_or_default();
    if account != call.target.name {
        return Err(Status::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            call.target.name
        )));
    }
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        return Ok(None);
    }
    let found = call.hub.read(&call.instance, Key::new("", "nodes", "", node).as_str()).await?;
    Ok(found.map(|entry| (node.to_owned(), entry.object.head.uid.to_string())))
}
