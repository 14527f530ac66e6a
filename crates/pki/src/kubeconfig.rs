//! Kubeconfigs: written for people, read from people.

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{PemPair, PkiError, needs_renewal, secret, validity_of};

/// A kubeconfig file; what is not understood is kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Kubeconfig {
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    clusters: Vec<NamedServer>,
    users: Vec<NamedUser>,
    contexts: Vec<NamedContext>,
    #[serde(rename = "current-context")]
    current: String,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct NamedServer {
    name: String,
    cluster: Server,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Server {
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_authority_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_authority: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    insecure_skip_tls_verify: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_server_name: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct User {
    #[serde(skip_serializing_if = "Option::is_none")]
    client_certificate_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_key_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_certificate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(rename = "tokenFile", skip_serializing_if = "Option::is_none")]
    token_file: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("User(…)")
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// How to prove who one is.
#[derive(Clone, Eq, PartialEq)]
pub enum Auth {
    /// Not at all.
    None,
    /// With a bearer token.
    Token(String),
    /// With a client certificate.
    Certificate(PemPair),
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Token(_) => "Token(…)",
            Self::Certificate(_) => "Certificate(…)",
        })
    }
}

impl Auth {
    /// Whether it is a certificate that is to be replaced. One that cannot be read is, too.
    pub fn is_old(&self, now: Timestamp) -> bool {
        match self {
            Self::None | Self::Token(_) => false,
            Self::Certificate(pair) => validity_of(&pair.cert)
                .map_or(true, |validity| needs_renewal(validity.not_before, validity.not_after, now)),
        }
    }

    /// Whether it is a certificate that nobody accepts any more.
    pub fn is_over(&self, now: Timestamp) -> bool {
        match self {
            Self::None | Self::Token(_) => false,
            Self::Certificate(pair) => validity_of(&pair.cert).map_or(true, |validity| validity.not_after <= now),
        }
    }
}

/// What a context comes down to: where to call and how.
#[derive(Clone, Debug)]
pub struct Access {
    /// URL of the server.
    pub server: String,
    /// Authorities to trust; `None` means those of the system.
    pub ca_pem: Option<String>,
    /// Whether the server's certificate is not checked at all.
    pub insecure: bool,
    /// Name to expect in the server's certificate, if not the one in the URL.
    pub tls_server_name: Option<String>,
    /// How to prove who one is.
    pub auth: Auth,
    /// Default namespace.
    pub namespace: Option<String>,
}

impl Kubeconfig {
    /// An empty one.
    pub fn new() -> Self {
        Self { api_version: "v1".to_owned(), kind: "Config".to_owned(), ..Self::default() }
    }

    /// Adds or replaces a context with its server and user, all of the same name.
    pub fn add(&mut self, name: &str, access: &Access) {
        let encode = |text: &String| STANDARD.encode(text);
        let server = Server {
            server: access.server.clone(),
            certificate_authority_data: access.ca_pem.as_ref().map(encode),
            insecure_skip_tls_verify: access.insecure.then_some(true),
            tls_server_name: access.tls_server_name.clone(),
            ..Server::default()
        };
        let user = match &access.auth {
            Auth::None => User::default(),
            Auth::Token(token) => User { token: Some(token.clone()), ..User::default() },
            Auth::Certificate(pair) => User {
                client_certificate_data: Some(encode(&pair.cert)),
                client_key_data: Some(encode(&pair.key)),
                ..User::default()
            },
        };
        let context = Context {
            cluster: name.to_owned(),
            user: name.to_owned(),
            namespace: access.namespace.clone(),
            ..Context::default()
        };
        self.remove(name);
        self.clusters.push(NamedServer { name: name.to_owned(), cluster: server });
        self.users.push(NamedUser { name: name.to_owned(), user });
        self.contexts.push(NamedContext { name: name.to_owned(), context });
        if self.current.is_empty() {
            self.current = name.to_owned();
        }
    }

    /// Removes a context and the server and user of the same name.
    pub fn remove(&mut self, name: &str) {
        self.clusters.retain(|entry| entry.name != name);
        self.users.retain(|entry| entry.name != name);
        self.contexts.retain(|entry| entry.name != name);
    }

    /// Chooses the current context.
    pub fn set_current(&mut self, name: &str) {
        self.current = name.to_owned();
    }

    /// The current context.
    pub fn current(&self) -> &str {
        &self.current
    }

    /// Names of all contexts.
    pub fn contexts(&self) -> impl Iterator<Item = &str> {
        self.contexts.iter().map(|entry| entry.name.as_str())
    }

    /// Parses YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, PkiError> {
        // The parser's own message may quote the text, which holds secrets.
        serde_saphyr::from_str(text).map_err(|_| PkiError::malformed("kubeconfig"))
    }

    /// Reads a file and takes in the files it refers to.
    pub fn read(path: &Path) -> Result<Self, PkiError> {
        let text = std::fs::read_to_string(path).map_err(|source| PkiError::file(path, source))?;
        let mut config = Self::parse(&text)?;
        let base = path.parent().unwrap_or(Path::new("."));
        for entry in &mut config.clusters {
            inline(base, &mut entry.cluster.certificate_authority, &mut entry.cluster.certificate_authority_data)?;
        }
        for NamedUser { user, .. } in &mut config.users {
            inline(base, &mut user.client_certificate, &mut user.client_certificate_data)?;
            inline(base, &mut user.client_key, &mut user.client_key_data)?;
            if let Some(file) = user.token_file.take() {
                user.token = Some(read_file(base, &file)?.trim().to_owned());
            }
        }
        Ok(config)
    }

    /// The YAML text.
    pub fn to_yaml(&self) -> Result<String, PkiError> {
        serde_saphyr::to_string(self).map_err(|error| PkiError::malformed(format!("kubeconfig: {error}")))
    }

    /// Writes the file in one step, readable by its owner only.
    pub fn write(&self, path: &Path) -> Result<(), PkiError> {
        let text = self.to_yaml()?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|source| PkiError::file(folder, source))?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", secret::random_text(8)?));
        let draft = folder.join(name);
        let result = write_private(&draft, text.as_bytes()).and_then(|()| std::fs::rename(&draft, path));
        result.map_err(|source| {
            // Best effort: the draft holds secrets.
            let _ = std::fs::remove_file(&draft);
            PkiError::file(path, source)
        })
    }

    /// What a context, or the current one, comes down to.
    ///
    /// References to files and programs are refused: a kubeconfig may come from someone
    /// who must not choose what is read or run here.
    pub fn access(&self, context: Option<&str>) -> Result<Access, PkiError> {
        let name = context.unwrap_or(&self.current);
        let missing = |what: &str, name: &str| PkiError::malformed(format!("kubeconfig: no {what} {name:?}"));
        let context = self.contexts.iter().find(|entry| entry.name == name).ok_or_else(|| missing("context", name))?;
        let Context { cluster, user, namespace, .. } = &context.context;
        let server = self.clusters.iter().find(|entry| entry.name == *cluster);
        let server = &server.ok_or_else(|| missing("cluster", cluster))?.cluster;
        let user = self.users.iter().find(|entry| entry.name == *user).map(|entry| &entry.user);
        if server.certificate_authority.is_some() {
            return Err(PkiError::Refused("kubeconfig refers to a file: certificate-authority".to_owned()));
        }
        Ok(Access {
            server: server.server.clone(),
            ca_pem: server.certificate_authority_data.as_deref().map(decode).transpose()?,
            insecure: server.insecure_skip_tls_verify.unwrap_or_default(),
            tls_server_name: server.tls_server_name.clone(),
            auth: user.map_or(Ok(Auth::None), auth_of)?,
            namespace: namespace.clone().filter(|namespace| !namespace.is_empty()),
        })
    }
}

fn auth_of(user: &User) -> Result<Auth, PkiError> {
    for (field, used) in [
        ("client-certificate", user.client_certificate.is_some()),
        ("client-key", user.client_key.is_some()),
        ("tokenFile", user.token_file.is_some()),
        ("exec", user.rest.contains_key("exec")),
        ("auth-provider", user.rest.contains_key("auth-provider")),
    ] {
        if used {
            return Err(PkiError::Refused(format!("kubeconfig refers to a file or program: {field}")));
        }
    }
    if let Some(token) = user.token.as_ref().filter(|token| !token.is_empty()) {
        return Ok(Auth::Token(token.clone()));
    }
    match (&user.client_certificate_data, &user.client_key_data) {
        (Some(cert), Some(key)) => Ok(Auth::Certificate(PemPair { cert: decode(cert)?, key: decode(key)? })),
        _ => Ok(Auth::None),
    }
}

fn decode(text: &str) -> Result<String, PkiError> {
    let bytes = STANDARD.decode(text.trim()).map_err(|_| PkiError::malformed("kubeconfig: base64"))?;
    String::from_utf8(bytes).map_err(|_| PkiError::malformed("kubeconfig: PEM"))
}

fn inline(base: &Path, file: &mut Option<String>, data: &mut Option<String>) -> Result<(), PkiError> {
    if let Some(file) = file.take()
        && data.is_none()
    {
        *data = Some(STANDARD.encode(read_file(base, &file)?));
    }
    Ok(())
}

fn read_file(base: &Path, file: &str) -> Result<String, PkiError> {
    let path: PathBuf = base.join(file);
    std::fs::read_to_string(&path).map_err(|source| PkiError::file(&path, source))
}

fn write_private(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    file.write_all(text)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn access(server: &str) -> Access {
        Access {
            server: server.to_owned(),
            ca_pem: Some("-----BEGIN CERTIFICATE-----\n".to_owned()),
            insecure: false,
            tls_server_name: None,
            auth: Auth::Token("1e3".to_owned()),
            namespace: Some("on".to_owned()),
        }
    }

    #[test]
    fn contexts_are_added_replaced_and_read_back() {
        let mut config = Kubeconfig::new();
        config.add("hub", &access("https://a:6443"));
        config.add("hub", &access("https://b:6443"));
        config.add(
            "team/x",
            &Access {
                auth: Auth::Certificate(PemPair { cert: "c".into(), key: "k".into() }),
                ..access("https://b:6443/x")
            },
        );
        let again = Kubeconfig::parse(&config.to_yaml().unwrap()).unwrap();
        assert_eq!(again.contexts().collect::<Vec<_>>(), ["hub", "team/x"]);
        let hub = again.access(None).unwrap();
        assert_eq!(
            (hub.server.as_str(), hub.auth, hub.namespace.as_deref()),
            ("https://b:6443", Auth::Token("1e3".into()), Some("on"))
        );
        let team = again.access(Some("team/x")).unwrap();
        assert_eq!(team.auth, Auth::Certificate(PemPair { cert: "c".into(), key: "k".into() }));
        assert!(again.access(Some("none")).is_err());
    }

    #[test]
    fn what_is_not_understood_is_kept() {
        let text = "apiVersion: v1\nkind: Config\npreferences: {colors: true}\nclusters:\n- name: a\n  cluster: {server: x, proxy-url: \'http://p\'}\n";
        let yaml = Kubeconfig::parse(text).unwrap().to_yaml().unwrap();
        let tree: Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(tree["preferences"]["colors"], true);
        assert_eq!(tree["clusters"][0]["cluster"]["proxy-url"], "http://p");
    }

    #[test]
    fn files_and_programs_are_never_touched_for_a_strangers_kubeconfig() {
        for user in ["tokenFile: /etc/passwd", "client-key: /k", "exec: {command: sh}"] {
            let text = format!(
                "contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\nclusters: [{{name: a, cluster: {{server: x}}}}]\nusers: [{{name: a, user: {{{user}}}}}]\n"
            );
            assert!(matches!(Kubeconfig::parse(&text).unwrap().access(Some("a")), Err(PkiError::Refused(_))), "{user}");
        }
    }

    #[test]
    fn a_file_is_private_and_its_references_are_taken_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/config");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(folder.path().join("deep/token"), "secret\n").unwrap();
        let text = "contexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: x}}]\nusers: [{name: a, user: {tokenFile: token}}]\n";
        Kubeconfig::parse(text).unwrap().write(&path).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let config = Kubeconfig::read(&path).unwrap();
        assert_eq!(config.access(Some("a")).unwrap().auth, Auth::Token("secret".to_owned()));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 2);
    }
}
