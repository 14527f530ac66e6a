//! gRPC by what the hub says of itself.

use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::Value;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use crate::hub::Hub;

impl Hub {
    /// What the hub says about the file of a symbol, and the files that one needs.
    pub async fn reflect(&self, symbol: &str) -> DescriptorPool {
        let asked = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::FileContainingSymbol(symbol.into())),
        };
        let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
        let (status, bytes) = self.frame(Some(&self.token), path, &asked.encode_to_vec()).await;
        assert_eq!(status, 0);
        let answer = ServerReflectionResponse::decode(bytes).unwrap();
        let Some(MessageResponse::FileDescriptorResponse(files)) = answer.message_response else {
            panic!("{answer:?}")
        };
        let mut pool = DescriptorPool::global();
        let mut wanted: Vec<Vec<u8>> = files.file_descriptor_proto;
        // Files come before those that need them only once all are known: ask until none is missing.
        let mut known: Vec<prost_types::FileDescriptorProto> = Vec::new();
        while let Some(bytes) = wanted.pop() {
            let file = prost_types::FileDescriptorProto::decode(&bytes[..]).unwrap();
            for name in &file.dependency {
                if pool.get_file_by_name(name).is_some() || known.iter().any(|own| own.name() == name) {
                    continue;
                }
                let asked = ServerReflectionRequest {
                    host: String::new(),
                    message_request: Some(MessageRequest::FileByFilename(name.clone())),
                };
                let (_, bytes) = self.frame(Some(&self.token), path, &asked.encode_to_vec()).await;
                let answer = ServerReflectionResponse::decode(bytes).unwrap();
                if let Some(MessageResponse::FileDescriptorResponse(files)) = answer.message_response {
                    wanted.extend(files.file_descriptor_proto);
                }
            }
            if !known.iter().any(|own| own.name() == file.name()) {
                known.push(file);
            }
        }
        pool.add_file_descriptor_protos(known).unwrap();
        pool
    }

    /// Calls a method that is known by reflection only.
    pub async fn grpc(&self, token: Option<&str>, service: &str, method: &str, input: Value) -> (i32, Value) {
        self.ask(&self.reflect(service).await, token, service, method, input).await
    }

    /// Calls a method that is known by what the hub said of its service.
    pub async fn ask(
        &self,
        pool: &DescriptorPool,
        token: Option<&str>,
        service: &str,
        method: &str,
        input: Value,
    ) -> (i32, Value) {
        let own = pool.get_service_by_name(service).unwrap();
        let found = own.methods().find(|known| known.name() == method).unwrap();
        let message = DynamicMessage::deserialize(found.input(), input).unwrap();
        let (status, bytes) = self.frame(token, &format!("/{service}/{method}"), &message.encode_to_vec()).await;
        let options = prost_reflect::SerializeOptions::new().skip_default_fields(false);
        let answer = DynamicMessage::decode(found.output(), bytes).unwrap();
        (status, answer.serialize_with_options(serde_json::value::Serializer, &options).unwrap())
    }
}
