//! Who is who: certificate authorities, certificates, tokens and kubeconfigs.
//!
//! Start at [`Ca`] (issues certificates), [`CaBundle`] (says who a peer is),
//! [`TokenSigner`] (service account tokens) and [`ServerCerts`] (serving with
//! certificates that can be renewed while serving). Time is always passed in.

mod authority;
mod bootstrap;
mod bundle;
mod certificate;
mod der;
mod error;
mod joining;
mod kubeconfig;
mod renewal;
mod request;
mod secret;
mod serve;
mod token;

pub use authority::{Ca, PemPair};
pub use bootstrap::BootstrapToken;
pub use bundle::{CaBundle, Identity, needs_renewal, validity_of};
pub use certificate::{San, Validity};
pub use error::PkiError;
pub use joining::detached_signature;
pub use kubeconfig::{Access, Auth, Kubeconfig};
pub use renewal::Renewing;
pub use request::{Request, Signer};
pub use secret::{equal, random_text};
pub use serve::{ClientCas, ServerCerts, client_config, provider, server_config};
pub use token::{Bound, Claims, TokenSigner};
