//! Clusterpedia's API over the index: the Kubernetes API of one or all clusters, read-only.
//!
//! `path` understands URLs, `options` the query language, `discovery` tells what there is,
//! `answer` writes lists, tables and watches.

mod answer;
mod collection;
mod discovery;
mod mark;
mod options;
mod path;

use std::sync::Arc;

use atoll_apiserver::{Body, Hub, Identity, Instance, Mount, MountedResource, Query as Params, Visit};
use atoll_meta::Status;
use http::{Method, Response};

use crate::index::Index;
use crate::rights::Rights;
use path::Ask;

/// Makes the rights of a caller.
pub type RightsOf = Arc<dyn Fn(&Identity) -> Arc<dyn Rights> + Send + Sync>;

const GROUP: &str = "clusterpedia.io";
const VERSION: &str = "v1beta1";

/// Serves `clusterpedia.io/v1beta1`.
pub struct Pedia {
    index: Index,
    rights: RightsOf,
}

impl Pedia {
    /// Over an index; `rights` says what a caller may see.
    pub fn new(index: Index, rights: RightsOf) -> Self {
        Self { index, rights }
    }
}

/// Where a request is answered, and how.
struct View {
    hub: Arc<Hub>,
    instance: Arc<Instance>,
    form: answer::Form,
}

/// Names of clusters as callers of one instance see them.
struct Names<'a> {
    instance: &'a str,
}

impl Names<'_> {
    /// The source behind a name: in `root` `instance` or `instance.member`, elsewhere the member or the instance itself.
    fn source(&self, cluster: &str) -> String {
        match self.instance {
            "root" => cluster.replacen('.', "/", 1),
            own if own == cluster => own.to_owned(),
            own => format!("{own}/{cluster}"),
        }
    }

    /// The name of a source.
    fn cluster(&self, source: &str) -> String {
        match source.split_once('/') {
            Some((own, member)) if own == self.instance => member.to_owned(),
            _ => source.replacen('/', ".", 1),
        }
    }

    /// What is asked when no cluster is named: all members of the instance; in `root`, all members.
    fn everywhere(&self) -> Vec<String> {
        if self.instance == "root" { Vec::new() } else { vec![format!("{}/*", self.instance)] }
    }
}

fn resource(plural: &str, kind: &str) -> MountedResource {
    MountedResource {
        plural: plural.into(),
        singular: String::new(),
        kind: kind.into(),
        namespaced: false,
        verbs: vec!["get".into(), "list".into()],
        short_names: Vec::new(),
    }
}

#[async_trait::async_trait]
impl Mount for Pedia {
    fn group(&self) -> &str {
        GROUP
    }

    fn version(&self) -> &str {
        VERSION
    }

    fn resources(&self) -> Vec<MountedResource> {
        vec![resource("collectionresources", "CollectionResource"), resource("resources", "Resources")]
    }

    fn serves(&self, _instance: &Instance) -> bool {
        true
    }

    async fn handle(&self, visit: Visit) -> Result<Response<Body>, Status> {
        if visit.request.method() != Method::GET {
            return Err(Status::method_not_allowed(GROUP, &visit.target.resource, visit.request.method().as_str()));
        }
        let params = Params::parse(visit.request.uri().query());
        let rights = (self.rights)(&visit.identity);
        let view = View { form: answer::form(visit.request.headers()), hub: visit.hub, instance: visit.instance };
        let instance = view.instance.clone();
        let names = Names { instance: &instance.name };
        let tail = visit.path.strip_prefix("/apis/clusterpedia.io/v1beta1").unwrap_or(&visit.path);
        // The body of a request must not be held while waiting; nobody reads it here.
        drop(visit.request);
        match path::parse(tail)? {
            Ask::Collections => Ok(collection::all()),
            Ask::Collection(name) => collection::one(&self.index, &names, rights, &name, &params, view).await,
            Ask::Discovery(cluster, path) => {
                let sources = cluster.map_or_else(|| names.everywhere(), |cluster| vec![names.source(&cluster)]);
                discovery::answer(&self.index, &sources, &path)
            }
            Ask::Resource(ask) => answer::answer(&self.index, &names, rights, ask, &params, view).await,
        }
    }
}
