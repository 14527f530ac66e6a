//! ConfigMaps and Secrets.

use atoll_meta::FieldPath;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::strategy::errors::Errors;
use crate::strategy::tree::{at, entries, fill_text, flag, keep, remove, same, text};
use crate::strategy::{PLAIN, Rules, name};

const MAX_SIZE: usize = 1024 * 1024;
const LOCKED: &str = "field is immutable when `immutable` is set";

pub(super) const CONFIG_MAP: Rules = Rules {
    validate: config_map,
    validate_update: |new, old, out| {
        locked(new, old, &["data", "binaryData"], out);
        config_map(new, out);
    },
    ..PLAIN
};

pub(super) const SECRET: Rules = Rules {
    default: |_, object| {
        merge_text(object);
        fill_text(object, "type", "Opaque");
    },
    update: |_, new, old| {
        if text(new, "type").is_empty() {
            keep(new, old, "type");
        }
    },
    validate: secret,
    validate_update: |new, old, out| {
        out.immutable(&FieldPath::root(), new, old, "type");
        locked(new, old, &["data"], out);
        secret(new, out);
    },
    ..PLAIN
};

/// What was written as text is kept as bytes.
fn merge_text(object: &mut Value) {
    let given: Vec<(String, String)> = entries(object, "stringData")
        .map(|(key, value)| (key.clone(), STANDARD.encode(value.as_str().unwrap_or_default())))
        .collect();
    if !given.is_empty()
        && let Some(data) = crate::strategy::tree::map(object, "data")
    {
        data.extend(given.into_iter().map(|(key, value)| (key, Value::String(value))));
    }
    remove(object, "stringData");
}

fn locked(new: &Value, old: &Value, fields: &[&str], out: &mut Errors) {
    if !flag(old, "immutable") {
        return;
    }
    if !flag(new, "immutable") {
        out.forbidden(&FieldPath::new("immutable"), LOCKED);
    }
    for field in fields {
        if !same(at(new, field), at(old, field)) {
            out.forbidden(&FieldPath::new(field), LOCKED);
        }
    }
}

fn decoded_len(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    STANDARD.decode(text).map_or(text.len(), |bytes| bytes.len())
}

fn config_map(object: &Value, out: &mut Errors) {
    let mut size = 0;
    for (key, value) in entries(object, "data") {
        let path = FieldPath::new("data").key(key);
        out.each(&path, key, name::config_key(key));
        if at(object, "binaryData").get(key).is_some() {
            out.invalid(&path, key.as_str(), "duplicate of key present in binaryData");
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in entries(object, "binaryData") {
        out.each(&FieldPath::new("binaryData").key(key), key, name::config_key(key));
        size += decoded_len(value);
    }
    if size > MAX_SIZE {
        // The original names the whole like this.
        out.too_long(&FieldPath::new("[]"), MAX_SIZE);
    }
}

fn secret(object: &Value, out: &mut Errors) {
    let path = FieldPath::new("data");
    let mut size = 0;
    for (key, value) in entries(object, "data") {
        out.each(&path.key(key), key, name::config_key(key));
        size += decoded_len(value);
    }
    if size > MAX_SIZE {
        out.too_long(&path, MAX_SIZE);
    }
    let given = |key: &str| at(object, "data").get(key).is_some();
    let mut need = |keys: &[&str]| {
        for key in keys.iter().filter(|key| !given(key)) {
            out.required(&path.key(key), "");
        }
    };
    match text(object, "type") {
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            let owner = at(object, "metadata.annotations").get(key).and_then(Value::as_str).unwrap_or_default();
            if owner.is_empty() {
                out.required(&FieldPath::new("metadata.annotations").key(key), "");
            }
        }
        "kubernetes.io/dockercfg" => need(&[".dockercfg"]),
        "kubernetes.io/dockerconfigjson" => need(&[".dockerconfigjson"]),
        "kubernetes.io/basic-auth" if !given("username") && !given("password") => need(&["username", "password"]),
        "kubernetes.io/ssh-auth" => need(&["ssh-privatekey"]),
        "kubernetes.io/tls" => need(&["tls.crt", "tls.key"]),
        _ => {}
    }
    for (kind, key) in
        [("kubernetes.io/dockercfg", ".dockercfg"), ("kubernetes.io/dockerconfigjson", ".dockerconfigjson")]
    {
        if text(object, "type") == kind && given(key) {
            docker_config(object, key, out);
        }
    }
}

fn docker_config(object: &Value, key: &str, out: &mut Errors) {
    let encoded = at(object, "data").get(key).and_then(Value::as_str).unwrap_or_default();
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    if let Err(fault) = serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes) {
        out.invalid(&FieldPath::new("data").key(key), "<secret contents redacted>", fault.to_string());
    }
}
