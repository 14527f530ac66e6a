//! A work that is to be carried out, and its manifests.

use std::sync::Arc;

use atoll_api::words::label;
use atoll_api::work::Work;
use atoll_meta::{Gvk, Status};
use atoll_runtime::Item;
use serde_json::Value;

use crate::member::{Member, Stamp};

/// A work and the member it is for.
pub struct Order<'a> {
    /// The name of the work.
    pub name: Arc<str>,
    /// The work without its manifests.
    pub work: Work,
    /// The member.
    pub member: &'a Arc<Member>,
    manifests: Vec<Value>,
}

impl<'a> Order<'a> {
    /// From a work as it is known; none if it cannot be read.
    pub fn of(item: &Item, name: Arc<str>, member: &'a Arc<Member>) -> Option<Self> {
        let mut work: Work = item.decode().ok()?;
        work.metadata.resource_version = Some(item.revision.to_string());
        let manifests = std::mem::take(&mut work.spec.workload.manifests);
        Some(Self { name, work, member, manifests })
    }

    /// The generation of the work.
    pub fn generation(&self) -> i64 {
        self.work.metadata.generation.unwrap_or_default()
    }

    /// What tells this state of the work from others.
    pub fn stamp(&self) -> Stamp {
        Stamp { uid: self.work.metadata.uid.as_deref().unwrap_or_default().into(), generation: self.generation() }
    }

    /// The permanent id of the work.
    pub fn id(&self) -> Option<&str> {
        self.work.metadata.labels.as_ref()?.get(label::WORK_ID).map(String::as_str)
    }

    /// The namespace of the work.
    pub fn namespace(&self) -> Option<&str> {
        self.work.metadata.namespace.as_deref()
    }

    /// Whether nothing is to be sent.
    pub fn is_suspended(&self) -> bool {
        self.work.spec.suspend_dispatching == Some(true)
    }

    /// Whether objects stay in the member when the work goes.
    pub fn preserves(&self) -> bool {
        self.work.spec.preserve_resources_on_deletion == Some(true)
    }

    /// What the work asks for, in its order.
    pub fn pieces(&self) -> Vec<Piece<'_>> {
        let text = |manifest: &Value, field: &str| manifest[field].as_str().unwrap_or_default().to_owned();
        let all = self.manifests.iter().enumerate();
        all.map(|(ordinal, manifest)| {
            let gvk = Gvk::of(&text(manifest, "apiVersion"), &text(manifest, "kind"));
            Piece { order: self, ordinal, manifest, gvk }
        })
        .collect()
    }
}

/// One manifest of a work.
pub struct Piece<'a> {
    /// The work.
    pub order: &'a Order<'a>,
    /// Its place in the work.
    pub ordinal: usize,
    /// The manifest.
    pub manifest: &'a Value,
    /// What it is.
    pub gvk: Gvk,
}

impl<'a> Piece<'a> {
    /// The member it is for.
    pub fn member(&self) -> &'a Arc<Member> {
        self.order.member
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        self.manifest["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The namespace of the object.
    pub fn namespace(&self) -> Option<&str> {
        self.manifest["metadata"]["namespace"].as_str().filter(|namespace| !namespace.is_empty())
    }

    /// Whether the manifest says what it is for.
    pub fn is_named(&self) -> bool {
        !self.gvk.kind.is_empty() && !self.name().is_empty()
    }

    /// The object as messages speak of it.
    pub fn describe(&self) -> String {
        let namespace = self.namespace().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{} {namespace}{}", self.gvk.kind, self.name())
    }
}

/// What came of a manifest.
pub struct Outcome {
    /// What the member holds.
    pub object: Option<Value>,
    /// Whether we just wrote it.
    pub wrote: bool,
    /// What is to be known of it, if it was left as somebody else made it.
    pub remark: Option<String>,
}

impl Outcome {
    /// An object that was just written.
    pub fn written(object: Value) -> Self {
        Self { object: Some(object), wrote: true, remark: None }
    }

    /// What was there and needed nothing.
    pub fn found(object: Option<Value>) -> Self {
        Self { object, wrote: false, remark: None }
    }
}

/// Why a manifest could not be carried out.
pub struct Trouble {
    /// What happened.
    pub status: Status,
    /// Whether it may pass by itself: what the object needs in the member is on its way there, too.
    pub awaited: bool,
}

impl Trouble {
    /// Something the object needs is not there.
    pub fn awaits(what: String) -> Self {
        Self { status: Status::unavailable(what), awaited: true }
    }
}

impl From<Status> for Trouble {
    fn from(status: Status) -> Self {
        Self { status, awaited: false }
    }
}

/// What came of an attempt to carry out a manifest.
pub type Attempt = Result<Outcome, Trouble>;
