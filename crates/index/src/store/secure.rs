//! TLS to PostgreSQL: a server over a network must prove who it is.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// How to reach a database: where it is, and how it proves itself.
pub struct Way {
    /// The server and the credentials.
    pub config: tokio_postgres::Config,
    /// The connector; used unless the server is on this machine and asks for nothing else.
    pub tls: Tls,
}

impl Way {
    /// Reads a URL or a list of settings; `sslrootcert` names a file with the authority of the server.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rest, file) = root_file(text);
        let mut config: tokio_postgres::Config = rest.parse().map_err(|error| format!("{error}"))?;
        match config.get_ssl_mode() {
            _ if !is_near(&config) => {
                config.ssl_mode(SslMode::Require);
            }
            // On this machine TLS is used when asked for, and then it proves something.
            SslMode::Prefer => {
                config.ssl_mode(SslMode::Disable);
            }
            _ => {}
        }
        Ok(Self { config, tls: Tls { config: Arc::new(trust(file)?) } })
    }
}

/// Takes `sslrootcert` out of the settings: the driver does not know it.
fn root_file(text: &str) -> (String, Option<PathBuf>) {
    let Some(at) = text.find("sslrootcert=") else { return (text.to_owned(), None) };
    let value = &text[at + "sslrootcert=".len()..];
    let end = value.find(['&', ' ']).unwrap_or(value.len());
    let rest = format!("{}{}", &text[..at], value[end..].trim_start_matches(['&', ' ']));
    (rest.trim_end_matches(['?', '&', ' ']).to_owned(), Some(PathBuf::from(&value[..end])))
}

/// Whether all servers are on this machine, where nobody stands in between.
fn is_near(config: &tokio_postgres::Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

fn trust(file: Option<PathBuf>) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let Some(path) = file else {
        let builder = builder.with_platform_verifier().map_err(|error| error.to_string())?;
        return Ok(builder.with_no_client_auth());
    };
    let told = |error: &dyn std::fmt::Display| format!("sslrootcert {}: {error}", path.display());
    let pem = std::fs::read_to_string(&path).map_err(|error| told(&error))?;
    let bundle = atoll_pki::CaBundle::from_pem(&pem).map_err(|error| told(&error))?;
    Ok(builder.with_root_certificates(bundle.roots()).with_no_client_auth())
}

/// Makes TLS connections.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
}

/// Makes one TLS connection to a named server.
pub struct ToServer {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Secured<S>;
    type TlsConnect = ToServer;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<ToServer, io::Error> {
        let name = ServerName::try_from(domain.to_owned()).map_err(io::Error::other)?;
        Ok(ToServer { config: self.config.clone(), name })
    }
}

impl<S> TlsConnect<S> for ToServer
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Secured<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Secured<S>, io::Error>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let connector = tokio_rustls::TlsConnector::from(self.config);
        Box::pin(async move { connector.connect(self.name, stream).await.map(Box::new).map(Secured) })
    }
}

/// A connection whose server proved who it is.
pub struct Secured<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Secured<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Secured<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Secured<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn servers_over_a_network_must_prove_themselves() {
        let table = [
            ("postgres://u@db.example/x?sslmode=disable", SslMode::Require),
            ("postgres://u@10.0.0.7/x", SslMode::Require),
            ("host=127.0.0.1,db.example user=u sslmode=prefer", SslMode::Require),
            ("host=/run/postgresql user=u sslmode=disable", SslMode::Disable),
            ("postgres://u@127.0.0.1:5432/x", SslMode::Disable),
            ("postgres://u@localhost/x?sslmode=require", SslMode::Require),
        ];
        for (text, expected) in table {
            assert_eq!(Way::parse(text).unwrap().config.get_ssl_mode(), expected, "{text}");
        }
        assert!(
            Way::parse("postgres://u@db/x?sslrootcert=/nowhere/ca.pem").is_err(),
            "an authority that cannot be read"
        );
    }

    #[test]
    fn the_file_of_the_authority_is_taken_out() {
        let table = [
            ("postgres://u@h/x", "postgres://u@h/x", None),
            ("postgres://u@h/x?sslrootcert=/a.pem", "postgres://u@h/x", Some("/a.pem")),
            ("postgres://u@h/x?sslrootcert=/a.pem&sslmode=require", "postgres://u@h/x?sslmode=require", Some("/a.pem")),
            ("host=h sslrootcert=/a.pem user=u", "host=h user=u", Some("/a.pem")),
        ];
        for (text, rest, file) in table {
            assert_eq!(root_file(text), (rest.to_owned(), file.map(PathBuf::from)), "{text}");
        }
    }
}
