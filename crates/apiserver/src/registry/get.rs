//! GET of one object.

use atoll_meta::Status;
use http::Response;

use crate::body::Body;
use crate::call::Call;
use crate::instance::{store_status, too_large};

impl Call {
    /// Reads an object.
    pub async fn get(&self) -> Result<Response<Body>, Status> {
        let entry = match self.query.revision()? {
            None => self.fetch().await?,
            Some(wanted) => {
                self.wait_for(wanted).await?;
                let key = self.key(&self.target.name);
                self.hub.recent(&self.instance).await?.get(key.as_str()).cloned().ok_or_else(|| self.not_found())?
            }
        };
        self.object(200, &entry, entry.modified)
    }

    /// The stored entry of the named object, or 404.
    pub async fn fetch(&self) -> Result<atoll_store::Entry, Status> {
        self.hub.read(&self.instance, self.key(&self.target.name).as_str()).await?.ok_or_else(|| self.not_found())
    }

    /// Waits until the instance has reached a revision a client saw elsewhere, as a replica may lag.
    pub async fn wait_for(&self, wanted: atoll_meta::Revision) -> Result<(), Status> {
        let newest = self.hub.engine.revision(self.instance.id).map_err(|error| store_status(&error))?;
        if wanted <= newest {
            return Ok(());
        }
        let mut changes = self
            .hub
            .engine
            .watch(self.instance.id, atoll_store::Scope::All, newest)
            .map_err(|error| store_status(&error))?;
        let reached = async {
            loop {
                match changes.next().await {
                    Ok(_) if changes.progress() >= wanted => return Ok(()),
                    Ok(_) => {}
                    Err(error) => return Err(store_status(&error)),
                }
            }
        };
        match tokio::time::timeout(std::time::Duration::from_secs(3), reached).await {
            Ok(result) => result,
            Err(_) => {
                let newest = self.hub.engine.revision(self.instance.id).unwrap_or_default();
                Err(too_large(wanted, newest))
            }
        }
    }
}
