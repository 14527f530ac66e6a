//! What the query string of a streaming request asks for.

/// Which streams an exec or attach wants.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub struct ExecOptions {
    /// The caller will send input.
    pub stdin: bool,
    /// The caller wants output.
    pub stdout: bool,
    /// The caller wants error output; never together with a terminal.
    pub stderr: bool,
    /// The caller wants a terminal.
    pub tty: bool,
}

impl ExecOptions {
    /// Reads the flags from a query string.
    pub fn from_query(query: Option<&str>) -> Self {
        let flag = |name: &str| values(query, name).any(|value| matches!(value.as_str(), "true" | "1"));
        let tty = flag("tty");
        Self { stdin: flag("stdin"), stdout: flag("stdout"), stderr: flag("stderr") && !tty, tty }
    }

    /// Whether no stream is wanted at all.
    pub fn is_empty(self) -> bool {
        !(self.stdin || self.stdout || self.stderr)
    }
}

/// Reads the ports of a port-forward; only websocket channels need them up front.
pub(crate) fn ports(query: Option<&str>) -> Result<Vec<u16>, String> {
    let mut ports = Vec::new();
    for value in values(query, "ports").chain(values(query, "port")) {
        for text in value.split(',').filter(|text| !text.is_empty()) {
            let port = text.parse::<u16>().ok().filter(|port| *port > 0);
            ports.push(port.ok_or_else(|| format!("unable to parse {text:?} as a port"))?);
        }
    }
    Ok(ports)
}

fn values(query: Option<&str>, name: &str) -> impl Iterator<Item = String> {
    query.unwrap_or_default().split('&').filter_map(move |pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(key) == name).then(|| decode(value))
    })
}

fn decode(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let pair = [bytes.next(), bytes.next()];
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                match (digit(pair[0]), digit(pair[1])) {
                    (Some(high), Some(low)) => out.push((high * 16 + low) as u8),
                    _ => out.push(b'%'),
                }
            }
            _ => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_ports_are_read_from_the_query() {
        let options = ExecOptions::from_query(Some("command=a%20b&stdin=true&stdout=1&stderr=true&tty=false"));
        assert_eq!(options, ExecOptions { stdin: true, stdout: true, stderr: true, tty: false });
        assert!(!ExecOptions::from_query(Some("stderr=true&tty=true")).stderr, "a terminal has one output");
        assert!(ExecOptions::from_query(None).is_empty());
        assert_eq!(ports(Some("ports=80%2C81&ports=82")), Ok(vec![80, 81, 82]));
        assert!(ports(Some("ports=0")).is_err());
        assert!(ports(Some("ports=99999")).is_err());
    }
}
