//! Protobuf against what the original's codecs write (`objects/golden.jsonl`, made by
//! `xtask/gofields/golden` from `objects/objects.yaml`), and against hostile bytes.
#![allow(clippy::unwrap_used, missing_docs)]

use atoll_builtin::{canonical, proto};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

struct Golden {
    name: String,
    type_name: Option<String>,
    given: Value,
    full: Value,
    protobuf: Vec<u8>,
}

fn golden() -> Vec<Golden> {
    let lines = include_str!("objects/golden.jsonl").lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|mut line| {
            let given = line["given"].take();
            let (group, version) = atoll_meta::split_api_version(given["apiVersion"].as_str().unwrap());
            let kind = given["kind"].as_str().unwrap();
            let info = atoll_builtin::find_kind(group, version, kind);
            Golden {
                name: format!("{kind} {}", given["metadata"]["name"]),
                type_name: info.map(|info| info.type_name.clone()),
                full: line["full"].take(),
                protobuf: STANDARD.decode(line["protobuf"].as_str().unwrap()).unwrap(),
                given,
            }
        })
        .collect()
}

/// Paths at which two trees differ.
fn differences(path: &str, left: &Value, right: &Value, out: &mut Vec<String>) {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let (a, b) = (left.get(key), right.get(key));
                match (a, b) {
                    (Some(a), Some(b)) => differences(&format!("{path}.{key}"), a, b, out),
                    _ => out.push(format!("{path}.{key}: {a:?} / {b:?}")),
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (a, b)) in left.iter().zip(right).enumerate() {
                differences(&format!("{path}[{at}]"), a, b, out);
            }
        }
        _ if left == right => {}
        _ => out.push(format!("{path}: {left} / {right}")),
    }
}

fn check(name: &str, what: &str, left: &Value, right: &Value, failures: &mut Vec<String>) {
    let mut found = Vec::new();
    differences("", left, right, &mut found);
    failures.extend(found.into_iter().map(|difference| format!("{name}, {what}: {difference}")));
}

#[test]
fn objects_decode_to_what_the_original_writes_in_json() {
    let mut failures = Vec::new();
    for Golden { name, type_name, full, protobuf, .. } in golden() {
        let decoded = proto::decode(&protobuf).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(decoded.api_version, full["apiVersion"]);
        let mut object = decoded.object;
        // Only kinds that are served have a name to look the type up by.
        let Some(type_name) = type_name else { continue };
        canonical(&type_name, &mut object);
        check(&name, "decoded", &object, &full, &mut failures);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_tree_as_given_takes_the_originals_form() {
    let mut failures = Vec::new();
    for Golden { name, type_name, mut given, full, .. } in golden() {
        let Some(type_name) = type_name else { continue };
        canonical(&type_name, &mut given);
        check(&name, "given", &given, &full, &mut failures);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn objects_encode_to_the_originals_bytes() {
    let mut failures = Vec::new();
    for Golden { name, full, protobuf, .. } in golden() {
        let bytes = proto::encode(&full).unwrap_or_else(|error| panic!("{name}: {error}"));
        if bytes != protobuf {
            failures.push(format!("{name}: {} bytes, original {}", bytes.len(), protobuf.len()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn what_clients_may_leave_out_is_left_out() {
    let deployment = golden().into_iter().find(|entry| entry.name.starts_with("Deployment ")).unwrap();
    let object = proto::decode(&deployment.protobuf).unwrap().object;
    assert_eq!(object["spec"]["replicas"], 0, "a pointer keeps its zero");
    let expected = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}},
        },
    });
    assert_eq!(object, expected);
}

#[test]
fn options_decode_in_every_group() {
    for api_version in ["v1", "meta.k8s.io/v1", "apps/v1", "example.com/v1"] {
        for (kind, body) in
            [("DeleteOptions", json!({"gracePeriodSeconds": 0})), ("CreateOptions", json!({"fieldManager": "m"}))]
        {
            let mut object = body;
            object["apiVersion"] = api_version.into();
            object["kind"] = kind.into();
            assert_eq!(proto::decode(&proto::encode(&object).unwrap()).unwrap().object, object);
        }
    }
}

#[test]
fn lists_can_be_encoded_from_their_parts() {
    let entry = golden().into_iter().find(|entry| entry.name.starts_with("ConfigMapList")).unwrap();
    let items = entry.full["items"].as_array().unwrap();
    let bytes = proto::encode_list("v1", "ConfigMapList", &entry.full["metadata"], items.iter()).unwrap();
    assert_eq!(bytes, entry.protobuf);
}

#[test]
fn watch_events_are_framed_around_the_envelope() {
    let frame = proto::encode_watch_event("ADDED", b"k8s\0abc");
    let expected = [&[0, 0, 0, 18][..], &[0x0a, 5], b"ADDED", &[0x12, 9, 0x0a, 7], b"k8s\0abc"].concat();
    assert_eq!(frame, expected);
}

#[test]
fn what_is_not_an_object_is_refused() {
    let cases: [(&[u8], proto::ProtoError); 4] = [
        (b"", proto::ProtoError::Magic),
        (b"{\"kind\":\"Pod\"}", proto::ProtoError::Magic),
        (b"k8s\0", proto::ProtoError::NoKind),
        (b"k8s\0\x0a\xff", proto::ProtoError::Truncated),
    ];
    for (bytes, error) in cases {
        assert_eq!(proto::decode(bytes).unwrap_err(), error);
    }
    let table = json!({"apiVersion": "meta.k8s.io/v1", "kind": "Table", "rows": []});
    assert!(matches!(proto::encode(&table), Err(proto::ProtoError::UnknownKind { .. })));
    let custom = json!({"apiVersion": "example.com/v1", "kind": "Foo"});
    assert!(matches!(proto::encode(&custom), Err(proto::ProtoError::UnknownKind { .. })));
    let wrong = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": 1}});
    assert!(matches!(proto::encode(&wrong), Err(proto::ProtoError::Shape { .. })));
}

/// A field with bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
    out
}

fn enveloped(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [proto::MAGIC.to_vec(), field(1, &meta), field(2, raw)].concat()
}

#[test]
fn deep_nesting_is_refused() {
    // A CRD schema may hold schemas without end: 28 is `not`, two bytes of tag.
    let mut schema = Vec::new();
    for _ in 0..3000 {
        let mut outer = vec![0xe2, 0x01];
        outer.extend_from_slice(&field(1, &schema)[1..]);
        schema = outer;
    }
    let raw = field(2, &field(7, &field(4, &field(1, &schema))));
    let bytes = enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition", &raw);
    assert_eq!(proto::decode(&bytes), Err(proto::ProtoError::Depth));
    let mut list = enveloped("v1", "List", b"");
    for _ in 0..3000 {
        list = enveloped("v1", "List", &field(2, &field(1, &list)));
    }
    assert_eq!(proto::decode(&list), Err(proto::ProtoError::Depth));
}

#[test]
fn millions_of_empty_elements_are_refused() {
    let spec: Vec<u8> = std::iter::repeat_n([0x12, 0], 1_500_000).flatten().collect();
    let bytes = enveloped("v1", "Pod", &field(2, &spec));
    assert_eq!(proto::decode(&bytes), Err(proto::ProtoError::Size));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_after_the_magic_give_an_answer(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = proto::decode(&[&proto::MAGIC[..], &tail].concat());
    }

    #[test]
    fn cut_and_damaged_objects_give_an_answer(which in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(), flip in any::<prop::sample::Index>(), bits in any::<u8>()) {
        let all = golden();
        let mut bytes = which.get(&all).protobuf.clone();
        let at = flip.index(bytes.len());
        bytes[at] ^= bits;
        let _ = proto::decode(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        let _ = proto::decode(&bytes);
    }

    #[test]
    fn a_truncated_object_is_never_taken_for_a_whole_one(which in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>()) {
        let all = golden();
        let entry = which.get(&all);
        let length = cut.index(entry.protobuf.len());
        // The last four bytes are two empty fields of the envelope, which may be missing; so may
        // the whole object behind its kind.
        let head = 6 + usize::from(entry.protobuf[5]);
        prop_assume!(![4, 2, 0].contains(&(entry.protobuf.len() - length)) && length != head);
        prop_assert!(proto::decode(&entry.protobuf[..length]).is_err());
    }

    #[test]
    fn config_maps_survive_the_round_trip(data in proptest::collection::btree_map("[a-z.]{1,8}", any::<String>(), 1..8)) {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
        prop_assert_eq!(proto::decode(&proto::encode(&object).unwrap()).unwrap().object, object);
    }
}

#[test]
fn every_kind_and_list_has_a_protobuf_form() {
    for kind in atoll_builtin::kinds() {
        for name in [kind.kind, kind.list_kind].into_iter().filter(|name| !name.is_empty()) {
            let object = json!({"apiVersion": kind.api_version(), "kind": name});
            let bytes = proto::encode(&object).unwrap_or_else(|error| panic!("{}: {error}", kind.gvk()));
            assert_eq!(proto::decode(&bytes).unwrap().kind, name);
        }
    }
}
