//! Issuing credentials of an instance to people and programs.

use std::sync::Arc;

use atoll_meta::Status;
use atoll_pki::{Access, Auth, Kubeconfig, PemPair, Validity};
use jiff::{SignedDuration, Timestamp};

use super::Authority;
use crate::hub::Hub;
use crate::instance::Instance;

/// Issues certificates and kubeconfigs for one instance.
pub struct Credentials {
    authority: Arc<Authority>,
    name: Arc<str>,
    url: String,
    serving_ca: String,
    now: Timestamp,
}

impl Hub {
    /// What issues credentials of an instance.
    pub async fn credentials(&self, instance: &Instance) -> Result<Credentials, Status> {
        Ok(Credentials {
            authority: self.authority(instance).await?,
            name: instance.name.clone(),
            url: self.url(instance),
            serving_ca: self.keys.own().serving.cert_pem(),
            now: self.now(),
        })
    }
}

impl Credentials {
    /// The URL of the instance.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What callers must trust to reach the instance.
    pub fn serving_ca(&self) -> &str {
        &self.serving_ca
    }

    /// What the instance vouches with.
    pub fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// Issues a client certificate.
    pub fn certificate(&self, user: &str, groups: &[String], lasting: SignedDuration) -> Result<PemPair, Status> {
        self.authority.ca.issue_client(user, groups, Validity::lasting(self.now, lasting)).map_err(Status::internal)
    }

    /// How to reach the instance as a user with a fresh certificate.
    pub fn access(&self, user: &str, groups: &[String], lasting: SignedDuration) -> Result<Access, Status> {
        Ok(Access {
            server: self.url.clone(),
            ca_pem: Some(self.serving_ca.clone()),
            insecure: false,
            tls_server_name: None,
            auth: Auth::Certificate(self.certificate(user, groups, lasting)?),
            namespace: None,
        })
    }

    /// A kubeconfig whose one context is named like the instance.
    pub fn kubeconfig(&self, user: &str, groups: &[String], lasting: SignedDuration) -> Result<Kubeconfig, Status> {
        let mut config = Kubeconfig::new();
        config.add(&self.name, &self.access(user, groups, lasting)?);
        Ok(config)
    }
}
