//! The connection to etcd.

use std::time::Duration;

use bytes::Bytes;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use self::proto::kv_client::KvClient;
use self::proto::watch_client::WatchClient;
use self::proto::{
    CompactionRequest, DeleteRangeRequest, PutRequest, RangeRequest, RangeResponse, RequestOp, TxnRequest, TxnResponse,
    compare::{CompareResult, CompareTarget, TargetUnion},
    request_op::Request,
};
use crate::StoreError;

/// Generated from `proto/etcd.proto`.
#[allow(clippy::all, clippy::unwrap_used, unused_qualifications, reason = "generated")]
pub(super) mod proto {
    tonic::include_proto!("etcdserverpb");
}

/// How long one question to etcd may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Certificates for etcd, all in PEM.
#[derive(Clone, Default)]
pub struct EtcdTls {
    /// Who vouches for the servers.
    pub ca: Vec<u8>,
    /// Our certificate and its key, where etcd asks for one.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The name in the servers' certificates, where it is not the one in the endpoints.
    pub server_name: Option<String>,
}

impl std::fmt::Debug for EtcdTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key must not reach a log.
        f.debug_struct("EtcdTls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

/// Channels to etcd that reconnect by themselves.
#[derive(Clone)]
pub(super) struct Wire {
    kv: KvClient<Channel>,
    watch: WatchClient<Channel>,
}

impl Wire {
    pub fn new(endpoints: &[String], tls: Option<&EtcdTls>) -> Result<Self, StoreError> {
        let refuse =
            |error: tonic::transport::Error| StoreError::Unavailable(format!("etcd endpoint: {}", root(&error)));
        let mut targets = Vec::new();
        for text in endpoints {
            let mut endpoint = Endpoint::from_shared(text.clone())
                .map_err(refuse)?
                .connect_timeout(Duration::from_secs(2))
                .tcp_nodelay(true)
                .http2_keep_alive_interval(Duration::from_secs(5))
                .keep_alive_timeout(Duration::from_secs(5))
                .keep_alive_while_idle(true);
            if let Some(tls) = tls {
                endpoint = endpoint.tls_config(tls_config(tls)).map_err(refuse)?;
            }
            targets.push(endpoint);
        }
        let channel = match targets.as_slice() {
            [] => return Err(StoreError::Unavailable("no etcd endpoint was given".into())),
            [one] => one.connect_lazy(),
            _ => Channel::balance_list(targets.into_iter()),
        };
        let kv = KvClient::new(channel.clone()).max_decoding_message_size(usize::MAX);
        let watch = WatchClient::new(channel).max_decoding_message_size(usize::MAX);
        Ok(Self { kv, watch })
    }

    pub fn watch(&self) -> WatchClient<Channel> {
        self.watch.clone()
    }

    pub async fn range(&self, request: RangeRequest) -> Result<RangeResponse, StoreError> {
        let mut kv = self.kv.clone();
        patiently(async move { kv.range(request).await }).await
    }

    pub async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, StoreError> {
        let mut kv = self.kv.clone();
        patiently(async move { kv.txn(request).await }).await
    }

    pub async fn delete(&self, key: Bytes, range_end: Bytes) -> Result<(), StoreError> {
        let mut kv = self.kv.clone();
        patiently(async move { kv.delete_range(DeleteRangeRequest { key, range_end }).await }).await.map(drop)
    }

    pub async fn compact(&self, revision: i64) -> Result<(), StoreError> {
        let mut kv = self.kv.clone();
        patiently(async move { kv.compact(CompactionRequest { revision }).await }).await.map(drop)
    }
}

fn tls_config(tls: &EtcdTls) -> ClientTlsConfig {
    let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.ca));
    if let Some((certificate, key)) = &tls.identity {
        config = config.identity(Identity::from_pem(certificate, key));
    }
    if let Some(name) = &tls.server_name {
        config = config.domain_name(name);
    }
    config
}

async fn patiently<T>(
    question: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(PATIENCE, question).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(unavailable(&status)),
        Err(_) => Err(StoreError::Unavailable(format!("etcd did not answer within {} s", PATIENCE.as_secs()))),
    }
}

/// What went wrong between us and etcd.
pub(super) fn unavailable(status: &tonic::Status) -> StoreError {
    StoreError::Unavailable(format!("etcd: {}", root(status)))
}

/// The innermost cause, which says most.
fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// What etcd always sends is missing.
pub(super) fn malformed() -> StoreError {
    StoreError::Unavailable("etcd sent an incomplete answer".into())
}

/// An operation that reads one key.
pub(super) fn read(key: Bytes) -> RequestOp {
    RequestOp { request: Some(Request::RequestRange(RangeRequest { key, ..Default::default() })) }
}

/// An operation that writes one key.
pub(super) fn put(key: Bytes, value: impl Into<Bytes>) -> RequestOp {
    RequestOp { request: Some(Request::RequestPut(PutRequest { key, value: value.into() })) }
}

/// An operation that removes one key.
pub(super) fn delete(key: Bytes) -> RequestOp {
    RequestOp { request: Some(Request::RequestDeleteRange(DeleteRangeRequest { key, range_end: Bytes::new() })) }
}

fn compare(key: Bytes, result: CompareResult, target: CompareTarget, union: TargetUnion) -> proto::Compare {
    proto::Compare { result: result.into(), target: target.into(), key, target_union: Some(union) }
}

/// Expects that a key is not there.
pub(super) fn is_absent(key: Bytes) -> proto::Compare {
    compare(key, CompareResult::Equal, CompareTarget::Version, TargetUnion::Version(0))
}

/// Expects that a key is there.
pub(super) fn is_present(key: Bytes) -> proto::Compare {
    compare(key, CompareResult::Greater, CompareTarget::Version, TargetUnion::Version(0))
}

/// Expects that a key was last changed at a revision.
pub(super) fn is_at(key: Bytes, revision: i64) -> proto::Compare {
    compare(key, CompareResult::Equal, CompareTarget::Mod, TargetUnion::ModRevision(revision))
}

/// What the reads of a transaction found, in order.
pub(super) fn found(response: TxnResponse) -> Vec<Option<proto::KeyValue>> {
    let reads = response.responses.into_iter().map(|answer| match answer.response {
        Some(proto::response_op::Response::ResponseRange(range)) => range.kvs.into_iter().next(),
        _ => None,
    });
    reads.collect()
}
