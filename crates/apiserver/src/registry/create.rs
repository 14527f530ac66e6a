//! POST on a collection.

use atoll_meta::Status;
use http::Response;

use crate::body::Body;
use crate::call::Call;

impl Call {
    /// Creates an object.
    pub async fn create(&self, body: &[u8]) -> Result<Response<Body>, Status> {
        self.accept(false)?;
        let dry_run = self.query.dry_run()?;
        let stored = self.insert(dry_run, || self.decode(body)).await?;
        self.object(201, &stored.entry, stored.revision)
    }
}
