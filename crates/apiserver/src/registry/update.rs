//! PUT on an object or a subresource.

use atoll_builtin::strategy;
use atoll_meta::{FieldError, FieldPath, Status};
use http::Response;

use super::metadata::{meta_text, metadata};
use crate::body::Body;
use crate::call::Call;

impl Call {
    /// Replaces an object, or the part of it a subresource shows.
    pub async fn update(&self, sub: &str, body: &[u8]) -> Result<Response<Body>, Status> {
        self.accept(false)?;
        let dry_run = self.query.dry_run()?;
        let object = self.decode(body)?;
        let name = meta_text(&object, "name");
        if !name.is_empty() && name != self.target.name {
            return Err(Status::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                self.target.name
            )));
        }
        let conditional = !matches!(meta_text(&object, "resourceVersion"), "" | "0");
        let unconditional_allowed =
            self.kind.custom().is_none() && strategy::allows_unconditional_update(&self.kind.group, &self.kind.kind);
        let create_allowed = sub.is_empty()
            && self.kind.custom().is_none()
            && strategy::allows_create_on_update(&self.kind.group, &self.kind.kind);
        let mut first = Some(object);
        // Only a lost race needs the object a second time.
        let mut given = || first.take().map_or_else(|| self.decode(body), Ok);
        if create_allowed {
            let key = self.key(&self.target.name);
            if self.hub.read(&self.instance, key.as_str()).await?.is_none() {
                let named = || {
                    let mut object = given()?;
                    metadata(&mut object).insert("name".into(), self.target.name.clone().into());
                    Ok(object)
                };
                let stored = self.insert(dry_run, named).await?;
                return self.object(201, &stored.entry, stored.revision);
            }
        }
        if !conditional && !unconditional_allowed {
            self.fetch().await?;
            let error =
                FieldError::invalid(FieldPath::new("metadata.resourceVersion"), 0, "must be specified for an update");
            return Err(Status::invalid(&self.kind.group, &self.kind.plural, &self.target.name, &[error]));
        }
        let stored = self.modify(sub, dry_run, |_| given()).await?;
        self.object(200, &stored.entry, stored.revision)
    }
}
