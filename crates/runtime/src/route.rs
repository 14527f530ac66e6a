//! Ways that others describe: where they may lead, and through which proxies.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};

use atoll_meta::Status;
use futures::future::BoxFuture;
use http::{HeaderMap, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use kube::client::ConfigExt as _;
use tokio::net::TcpStream;
use tower::Service;

use crate::{Endpoint, RemoteTransport};

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
            return Ok(Self { networks: Arc::new([]) });
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
pub fn guarded_client(config: kube::Config, denied: &Denied, proxy_headers: HeaderMap) -> Result<kube::Client, Status> {
    for uri in [Some(&config.cluster_url), config.proxy_url.as_ref()].into_iter().flatten() {
        denied.check(uri).map_err(Status::unavailable)?;
    }
    let mut tcp = HttpConnector::new_with_resolver(Resolver(denied.clone()));
    tcp.enforce_http(false);
    let guard = Guard { denied: denied.clone(), tcp };
    crate::client::prepare();
    let made = match config.proxy_url.clone() {
        None => crate::client::over(config, guard),
        Some(proxy) if proxy.scheme_str() == Some("socks5") => crate::client::over(config, SocksV5::new(proxy, guard)),
        Some(proxy) => config
            .rustls_https_connector_with_connector(guard)
            .and_then(|secured| crate::client::over(config, Tunnel::new(proxy, secured).with_headers(proxy_headers))),
    };
    made.map_err(|error| Status::unavailable(error.to_string()))
}

impl Endpoint {
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
}
