//! The API as its descriptors say it is.

use std::collections::HashMap;
use std::sync::LazyLock;

use atoll_meta::Status;
use futures::stream::BoxStream;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, SerializeOptions};
use serde_json::Value;

use crate::transcode::route::Router;

/// The compiled descriptors, for reflection too.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The package of our services.
pub const PACKAGE: &str = "atoll.v1alpha1";

/// What a method answers, as JSON of its message.
pub enum Reply {
    /// One message.
    One(Value),
    /// Many, until the end.
    Many(BoxStream<'static, Result<Value, Status>>),
}

/// Everything that follows from the descriptors.
pub struct Api {
    /// All descriptors.
    pub pool: DescriptorPool,
    /// REST.
    pub router: Router,
    /// Methods by gRPC path.
    pub methods: HashMap<String, MethodDescriptor>,
}

impl Api {
    /// The API of this program.
    pub fn get() -> &'static Self {
        static API: LazyLock<Api> = LazyLock::new(|| {
            let pool = DescriptorPool::decode(DESCRIPTORS).expect("the build checked the descriptors");
            let router = Router::new(&pool, PACKAGE);
            let services = pool.services().filter(|service| service.package_name() == PACKAGE);
            let methods = services
                .flat_map(|service| {
                    service
                        .methods()
                        .map(|method| (format!("/{}/{}", service.full_name(), method.name()), method))
                        .collect::<Vec<_>>()
                })
                .collect();
            Api { pool, router, methods }
        });
        &API
    }
}

/// JSON of a message, with all fields, as REST clients expect it.
pub fn tree(message: &DynamicMessage) -> Result<Value, Status> {
    let options = SerializeOptions::new().skip_default_fields(false);
    message.serialize_with_options(serde_json::value::Serializer, &options).map_err(Status::internal)
}
