//! Ways that others describe: where they may lead, and through which proxies.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};

use atoll_meta::Status;
use futures::future::BoxFuture;
use http::header::PROXY_AUTHORIZATION;
use http::{HeaderMap, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use kube::client::ConfigExt as _;
use tokio::net::TcpStream;
use tower::Service;

use crate::{Endpoint, RemoteTransport};

/// What one reaches without the proxy of the environment, as `kubectl` does.
const NEAR: &str = "localhost,127.0.0.0/8,::1";

/// Networks to which no connection is made for others. What is usual are the addresses under which machines of clouds
/// learn their own credentials: link-local ones, and those few that some clouds have chosen elsewhere.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Denied {
    networks: Arc<[Network]>,
}

impl Denied {
    /// The usual ones.
    pub const USUAL: &str = "169.254.0.0/16,100.100.100.200,168.63.129.16,fe80::/10,fd00:ec2::254,fd20:ce::254,\
                             fd00:c1::a9fe:a9fe";

    /// None, for ways of one's own.
    pub fn nothing() -> Self {
        Self { networks: Arc::new([]) }
    }

    /// Whether an address lies in one of them.
    pub fn covers(&self, address: IpAddr) -> bool {
        self.names(address) || translated(address).is_some_and(|inner| self.names(inner))
    }

    fn names(&self, address: IpAddr) -> bool {
        let address = match address.to_canonical() {
            // To connect to "no address" is to connect to oneself.
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
            other => other,
        };
        self.networks.iter().any(|network| network.holds(address))
    }

    /// Refuses a URL that names a denied address. Names are looked at when they are resolved.
    fn check(&self, uri: &Uri) -> Result<(), String> {
        let host = uri.host().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match literal {
            Ok(address) if self.covers(address) => Err(refusal(host, address)),
            _ => Ok(()),
        }
    }
}

impl Default for Denied {
    fn default() -> Self {
        Self::USUAL.parse().expect("the usual networks are well formed")
    }
}

impl FromStr for Denied {
    type Err = String;

    /// Networks and addresses with commas between them, or `none`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "none" {
            return Ok(Self::nothing());
        }
        let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        if parts.is_empty() {
            return Err("no network is named; `none` denies nothing".to_owned());
        }
        Ok(Self { networks: parts.into_iter().map(str::parse).collect::<Result<_, String>>()? })
    }
}

/// The IPv4 address that an IPv6 address leads to through a translator (`64:ff9b::/96`).
fn translated(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(six) = address else { return None };
    let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = six.segments() else { return None };
    Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into())
}

fn refusal(host: &str, address: IpAddr) -> String {
    format!("{host} leads to {address}, which lies in a network that is denied to members (--deny-member-networks)")
}

#[derive(Copy, Clone, Debug, Eq, PartialEq)]
struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    fn holds(&self, other: IpAddr) -> bool {
        let same = |a: u128, b: u128, width: u32| {
            let rest = width - self.prefix;
            a.checked_shr(rest) == b.checked_shr(rest)
        };
        match (self.address, other) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(u32::from(a).into(), u32::from(b).into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.into(), b.into(), 128),
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no network such as 10.0.0.0/8");
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix: u32 =
            prefix.map_or(Ok(width), str::parse).ok().filter(|prefix| *prefix <= width).ok_or_else(wrong)?;
        // Such addresses are looked at as IPv4; so must be the network.
        match address.to_canonical() {
            IpAddr::V4(four) if address.is_ipv6() => {
                let prefix = prefix.checked_sub(96).ok_or_else(wrong)?;
                Ok(Self { address: four.into(), prefix })
            }
            _ => Ok(Self { address, prefix }),
        }
    }
}

/// A client whose connections, also those to its proxy, lead to no denied network. `proxy_headers` are for the proxy.
pub fn guarded_client(
    mut config: kube::Config,
    denied: &Denied,
    mut proxy_headers: HeaderMap,
) -> Result<kube::Client, Status> {
    spare(&mut config, "");
    let proxy = proxy(&config)?;
    for uri in [Some(&config.cluster_url), proxy.as_ref().map(Intercept::uri)].into_iter().flatten() {
        denied.check(uri).map_err(Status::unavailable)?;
    }
    let mut tcp = HttpConnector::new_with_resolver(Resolver(denied.clone()));
    tcp.enforce_http(false);
    let guard = Guard { denied: denied.clone(), tcp };
    crate::client::prepare();
    let made = match proxy {
        None => crate::client::over(config, guard),
        Some(proxy) if proxy.uri().scheme_str() == Some("socks5") => {
            let way = SocksV5::new(proxy.uri().clone(), guard);
            let way = match proxy.raw_auth() {
                Some((user, password)) => way.with_auth(user.to_owned(), password.to_owned()),
                None => way,
            };
            crate::client::over(config, way)
        }
        Some(proxy) => {
            if let Some(credentials) = proxy.basic_auth() {
                proxy_headers.entry(PROXY_AUTHORIZATION).or_insert_with(|| credentials.clone());
            }
            let tunnel = |secured| Tunnel::new(proxy.uri().clone(), secured).with_headers(proxy_headers);
            let secured = config.rustls_https_connector_with_connector(guard);
            secured.and_then(|secured| crate::client::over(config, tunnel(secured)))
        }
    };
    made.map_err(|error| Status::unavailable(error.to_string()))
}

/// The proxy on the way, with what it wants to know of who comes.
fn proxy(config: &kube::Config) -> Result<Option<Intercept>, Status> {
    let Some(url) = &config.proxy_url else { return Ok(None) };
    let found = Matcher::builder().all(url.to_string()).build().intercept(&config.cluster_url);
    let known = found.filter(|proxy| matches!(proxy.uri().scheme_str(), Some("http" | "https" | "socks5")));
    // The URL may hold a password.
    let wrong = || Status::unavailable(format!("the proxy {:?} cannot be used", url.host().unwrap_or_default()));
    known.map(Some).ok_or_else(wrong)
}

/// Takes the proxy of the environment away from servers that are excepted. `kube` knows that proxy, but no exceptions.
fn spare(config: &mut kube::Config, also: &str) {
    let variable =
        |names: [&str; 2]| names.iter().find_map(|name| std::env::var(name).ok().filter(|text| !text.is_empty()));
    let general = variable(["HTTPS_PROXY", "https_proxy"]).and_then(|text| text.parse::<Uri>().ok());
    let exceptions = variable(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    if general.is_some()
        && config.proxy_url == general
        && is_spared(&config.cluster_url, &[&exceptions, also].join(","))
    {
        config.proxy_url = None;
    }
}

/// Whether a server is on a list as in `NO_PROXY`.
fn is_spared(server: &Uri, exceptions: &str) -> bool {
    let matcher = Matcher::builder().all("http://proxy").no(exceptions).build();
    exceptions.split(',').any(|one| one.trim() == "*") || matcher.intercept(server).is_none()
}

impl Endpoint {
    /// Over HTTPS. A request is sent once: whoever asked decides what a refusal means, and when to try again.
    pub fn remote(name: &str, mut config: kube::Config, agent: &str) -> Result<Self, Status> {
        spare(&mut config, NEAR);
        // Certificates that a program hands out and renews are left to `kube`.
        if config.auth_info.exec.is_none() {
            return Self::guarded(name, config, &Denied::nothing(), agent);
        }
        config.default_retry = false;
        let client = kube::Client::try_from(config).map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(Self::new(name, Arc::new(RemoteTransport::new(client)), agent))
    }

    /// Over HTTPS, where others have described the way: nothing leads to a denied network.
    pub fn guarded(name: &str, config: kube::Config, denied: &Denied, agent: &str) -> Result<Self, Status> {
        let client = guarded_client(config, denied, HeaderMap::new())?;
        Ok(Self::new(name, Arc::new(RemoteTransport::new(client)), agent))
    }
}

/// Finds addresses of names; a name that leads to a denied network is not resolved at all.
#[derive(Clone)]
struct Resolver(Denied);

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let denied = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            match found.iter().find(|address| denied.covers(address.ip())) {
                Some(address) => Err(io::Error::other(refusal(name.as_str(), address.ip()))),
                None => Ok(found.into_iter()),
            }
        })
    }
}

/// Makes connections that lead to no denied network.
#[derive(Clone)]
struct Guard {
    denied: Denied,
    tcp: HttpConnector<Resolver>,
}

impl Service<Uri> for Guard {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp.poll_ready(context).map_err(io::Error::other)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        if let Err(why) = self.denied.check(&uri) {
            return Box::pin(std::future::ready(Err(io::Error::other(why))));
        }
        let connecting = self.tcp.call(uri);
        Box::pin(async move { connecting.await.map_err(io::Error::other) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn networks_cover_their_addresses_in_every_spelling() {
        for (networks, address, covered) in [
            (Denied::USUAL, "169.254.169.254", true),
            (Denied::USUAL, "::ffff:169.254.169.254", true),
            (Denied::USUAL, "fe80::1", true),
            (Denied::USUAL, "fd00:ec2::254", true),
            (Denied::USUAL, "fd00:ec2::253", false),
            (Denied::USUAL, "127.0.0.1", false),
            (Denied::USUAL, "10.1.2.3", false),
            ("10.0.0.0/8, 192.168.1.7", "10.255.0.1", true),
            ("10.0.0.0/8, 192.168.1.7", "192.168.1.7", true),
            ("10.0.0.0/8, 192.168.1.7", "192.168.1.8", false),
            ("127.0.0.0/8", "0.0.0.0", true),
            ("::1", "::", true),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "2001:db8::1", true),
            ("none", "169.254.169.254", false),
            (Denied::USUAL, "100.100.100.200", true),
            (Denied::USUAL, "100.100.100.201", false),
            (Denied::USUAL, "168.63.129.16", true),
            (Denied::USUAL, "fd20:ce::254", true),
            (Denied::USUAL, "fd00:c1::a9fe:a9fe", true),
            (Denied::USUAL, "64:ff9b::a9fe:a9fe", true),
            (Denied::USUAL, "64:ff9b::8.8.8.8", false),
            (Denied::USUAL, "64:ff9b:1::a9fe:a9fe", false),
            ("::ffff:169.254.0.0/112", "169.254.169.254", true),
            ("::ffff:169.254.0.0/112", "169.255.0.1", false),
            ("64:ff9b::/96", "64:ff9b::10.1.2.3", true),
            ("64:ff9b::/96", "10.1.2.3", false),
            ("127.0.0.0/8", "64:ff9b::", true),
        ] {
            let denied: Denied = networks.parse().unwrap();
            assert_eq!(denied.covers(address.parse().unwrap()), covered, "{networks} {address}");
        }
        for wrong in [
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "here",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "",
            " , ",
            "none,10.0.0.0/8",
            "::ffff:10.0.0.0/95",
        ] {
            assert!(wrong.parse::<Denied>().is_err(), "{wrong}");
        }
    }

    async fn ask(server: &str, proxy: Option<&str>, denied: &str) -> Result<(), Status> {
        let mut config = kube::Config::new(server.parse().unwrap());
        config.proxy_url = proxy.map(|proxy| proxy.parse().unwrap());
        let mut headers = HeaderMap::new();
        headers.insert("x-tenant", "blue".parse().unwrap());
        let client = guarded_client(config, &denied.parse().unwrap(), headers)?;
        let way = Endpoint::new("member", Arc::new(RemoteTransport::new(client)), "test");
        way.get_path("/version").await.map(drop)
    }

    /// Reads to the end of the headers of a request.
    async fn request(stream: &mut TcpStream) -> String {
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).await.unwrap();
            read.push(byte[0]);
        }
        String::from_utf8(read).unwrap()
    }

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

    #[tokio::test]
    async fn no_connection_leads_to_a_denied_network_by_address_name_or_proxy() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (here, named) = (format!("http://127.0.0.1:{port}"), format!("http://localhost:{port}"));
        for (server, proxy) in [
            (here.as_str(), None),
            (named.as_str(), None),
            ("http://192.0.2.1", Some(here.as_str())),
            ("http://192.0.2.1", Some(named.as_str())),
            (here.as_str(), Some("http://192.0.2.1:3128")),
        ] {
            let refused = ask(server, proxy, "127.0.0.0/8,::1").await.unwrap_err();
            assert!(refused.message.contains("--deny-member-networks"), "{server} {proxy:?}: {}", refused.message);
        }
        let served = tokio::spawn(async move {
            // Those that were refused have left no trace: the first to come is the one that is allowed.
            let (mut stream, _) = listener.accept().await.unwrap();
            let asked = request(&mut stream).await;
            stream.write_all(ANSWER).await.unwrap();
            asked
        });
        ask(&here, None, Denied::USUAL).await.unwrap();
        assert!(served.await.unwrap().starts_with("GET /version"));
    }

    #[tokio::test]
    async fn a_proxy_carries_requests_and_gets_its_headers() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("http://{}", listener.local_addr().unwrap());
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let asked = request(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let inner = request(&mut stream).await;
            stream.write_all(ANSWER).await.unwrap();
            (asked, inner)
        });
        ask("http://member.invalid:6443", Some(&proxy), Denied::USUAL).await.unwrap();
        let (asked, inner) = served.await.unwrap();
        assert!(asked.starts_with("CONNECT member.invalid:6443 ") && asked.contains("x-tenant: blue"), "{asked}");
        assert!(inner.starts_with("GET /version"), "{inner}");
    }

    /// Speaks as a SOCKS proxy does until the way is open; the name that was asked for.
    async fn socks(stream: &mut TcpStream) -> String {
        let mut methods = [0; 3];
        stream.read_exact(&mut methods).await.unwrap();
        assert_eq!(methods, [5, 1, 0]);
        stream.write_all(&[5, 0]).await.unwrap();
        let mut head = [0; 5];
        stream.read_exact(&mut head).await.unwrap();
        let mut name = vec![0; usize::from(head[4]) + 2];
        stream.read_exact(&mut name).await.unwrap();
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        String::from_utf8_lossy(&name[..name.len() - 2]).into_owned()
    }

    #[tokio::test]
    async fn a_way_of_ones_own_leads_through_proxies_too() {
        for (scheme, user) in [("http", ""), ("http", "jane:p%40ss@"), ("socks5", "")] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut config = kube::Config::new("http://member.invalid:6443".parse().unwrap());
            let proxy = format!("{scheme}://{user}{}", listener.local_addr().unwrap());
            config.proxy_url = Some(proxy.parse().unwrap());
            let served = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let asked = match scheme {
                    "socks5" => socks(&mut stream).await,
                    _ => {
                        let asked = request(&mut stream).await;
                        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                        asked
                    }
                };
                let inner = request(&mut stream).await;
                stream.write_all(ANSWER).await.unwrap();
                (asked, inner)
            });
            let way = Endpoint::remote("member", config, "test").unwrap();
            way.get_path("/version").await.unwrap();
            let (asked, inner) = served.await.unwrap();
            assert!(asked.contains("member.invalid"), "{proxy}: {asked}");
            // jane:p@ss
            assert_eq!(asked.contains("proxy-authorization: Basic amFuZTpwQHNz"), !user.is_empty(), "{proxy}: {asked}");
            assert!(inner.starts_with("GET /version"), "{proxy}: {inner}");
        }
        let mut config = kube::Config::new("https://member.invalid".parse().unwrap());
        config.proxy_url = Some("gopher://jane:canary@proxy".parse().unwrap());
        let refused = Endpoint::remote("member", config, "test").map(drop).unwrap_err().message;
        assert_eq!(refused, "the proxy \"proxy\" cannot be used");
    }

    #[test]
    fn the_proxy_of_the_environment_is_not_for_what_is_near_or_excepted() {
        for (server, exceptions, spared) in [
            ("https://127.0.0.1:6443", NEAR, true),
            ("https://localhost:6443", NEAR, true),
            ("https://[::1]:6443", NEAR, true),
            ("https://127.0.0.1:6443", "", false),
            ("https://member.example.com", "", false),
            ("https://member.example.com", "other.com, example.com", true),
            ("https://member.example.com", ".example.com", true),
            ("https://notexample.com", "example.com", false),
            ("https://10.1.2.3:6443", "10.0.0.0/8", true),
            ("https://11.1.2.3:6443", "10.0.0.0/8", false),
            ("https://member.example.com", "*", true),
            ("https://10.1.2.3", "*", true),
        ] {
            assert_eq!(is_spared(&server.parse().unwrap(), exceptions), spared, "{server} {exceptions}");
        }
    }
}
