//! Certificate authority, certificates, tokens, kubeconfigs
