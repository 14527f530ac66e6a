//! Where the hub is reached: for kubeconfigs, invitations and its certificate.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Where others reach the hub: a name or an address, and the port unless it is that of the hub itself.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Advertised {
    host: String,
    port: Option<u16>,
}

impl FromStr for Advertised {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self { host: address.ip().to_string(), port: Some(address.port()) });
        }
        if let Ok(ip) = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            return Ok(Self { host: ip.to_string(), port: None });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| format!("{port:?} is not a port"))?)),
            None => (text, None),
        };
        match atoll_meta::name::is_dns1123_subdomain(host).first() {
            None => Ok(Self { host: host.to_owned(), port }),
            Some(fault) => Err(format!("{host:?} is neither an IP address nor a host name: {fault}")),
        }
    }
}

/// The URL of the hub, without a slash at the end.
pub fn url(listen: SocketAddr, advertised: Option<&Advertised>) -> String {
    let Some(Advertised { host, port }) = advertised else { return format!("https://{}", here(listen)) };
    let port = port.unwrap_or(listen.port());
    // Addresses of IPv6 have colons of their own.
    if host.contains(':') { format!("https://[{host}]:{port}") } else { format!("https://{host}:{port}") }
}

/// The address under which this machine itself reaches what listens there.
fn here(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// The names in the hub's certificate.
pub fn names(listen: SocketAddr, advertised: Option<&Advertised>, domain: &str) -> Vec<String> {
    let usual = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
    let mut names: Vec<String> = usual.map(ToOwned::to_owned).to_vec();
    names.extend([domain.to_owned(), format!("*.{domain}"), here(listen).ip().to_string()]);
    names.extend(advertised.map(|advertised| advertised.host.clone()));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Advertised> {
        text.parse().ok()
    }

    #[test]
    fn the_url_is_what_is_advertised_or_leads_to_this_machine() {
        let any: SocketAddr = "0.0.0.0:7443".parse().expect("an address");
        for (advertised, expected) in [
            (None, "https://127.0.0.1:7443"),
            (read("hub.example.com"), "https://hub.example.com:7443"),
            (read("hub.example.com:443"), "https://hub.example.com:443"),
            (read("192.0.2.7"), "https://192.0.2.7:7443"),
            (read("2001:db8::7"), "https://[2001:db8::7]:7443"),
            (read("[2001:db8::7]:443"), "https://[2001:db8::7]:443"),
        ] {
            assert_eq!(url(any, advertised.as_ref()), expected);
        }
        assert_eq!(url("[::]:1".parse().expect("an address"), None), "https://[::1]:1");
        assert_eq!(url("192.0.2.1:1".parse().expect("an address"), None), "https://192.0.2.1:1");
    }

    #[test]
    fn the_certificate_is_for_what_is_advertised() {
        let listen = "0.0.0.0:7443".parse().expect("an address");
        let all = names(listen, read("hub.example.com:443").as_ref(), "atoll.localhost");
        assert!(all.contains(&"hub.example.com".to_owned()) && all.contains(&"*.atoll.localhost".to_owned()));
        assert!(!all.contains(&"0.0.0.0".to_owned()), "nobody connects to that");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "https://hub", "hub:x", "hub:99999", "a b", "hub/path"] {
            assert!(text.parse::<Advertised>().is_err(), "{text}");
        }
    }
}
