//! Commands of the tiny shell that ask others over the network.

use std::time::Duration;

use super::text::seconds;
use super::{Flow, Shell};

/// What a simulated container reaches.
pub trait Network: Sync {
    /// Opens a connection; `protocol` is `TCP`, `UDP` or `SCTP`.
    fn connect(&self, host: &str, port: u16, protocol: &str) -> Result<(), Refusal>;
    /// Asks a server by HTTP.
    fn request(&self, host: &str, port: u16, method: &str, path: &str) -> Result<Answer, Refusal>;
    /// Sends one word in a packet; returns what comes back.
    fn say(&self, host: &str, port: u16, word: &str) -> Result<String, Refusal>;
    /// Addresses of a name.
    fn resolve(&self, host: &str) -> Vec<String>;
}

/// What a server says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// Status.
    pub code: u16,
    /// Text.
    pub body: String,
}

/// Why there is no answer.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// The name is not known.
    Name,
    /// Nobody listens there.
    Refused,
    /// Nobody has the address.
    Silent,
}

/// A request as a command line says it.
#[derive(Debug, Default, Eq, PartialEq)]
struct Wish {
    host: String,
    port: u16,
    path: String,
    method: String,
    silent: bool,
    fails_by_code: bool,
    head_only: bool,
    patience: Option<Duration>,
    target: Option<String>,
    format: String,
}

/// Options of curl and wget that take a word.
const WITH_WORD: [&str; 19] = [
    "-m",
    "--max-time",
    "--connect-timeout",
    "-o",
    "--output",
    "-O",
    "-T",
    "-X",
    "--request",
    "-d",
    "--data",
    "-H",
    "--header",
    "-w",
    "--write-out",
    "--retry",
    "--interface",
    "--post-data",
    "-A",
];

impl Wish {
    fn read(command: &str, words: &[String]) -> Option<Self> {
        let mut wish = Self { method: "GET".into(), ..Self::default() };
        let mut url = None;
        let mut rest = words.iter().map(String::as_str);
        while let Some(word) = rest.next() {
            let (name, joined) = word.split_once('=').filter(|_| word.starts_with("--")).unwrap_or((word, ""));
            // wget writes its target together with other letters, as in -qO-.
            let attached = word.find('O').filter(|_| command == "wget" && word.starts_with('-') && word.len() > 2);
            if let Some(at) = attached {
                wish.silent |= word.contains('q');
                let target = &word[at + 1..];
                wish.target = Some(if target.is_empty() { rest.next()?.to_owned() } else { target.to_owned() });
            } else if WITH_WORD.contains(&name) && !(command == "curl" && name == "-O") {
                let value = if joined.is_empty() { rest.next()? } else { joined };
                wish.set(name, value);
            } else if let Some(letters) = word.strip_prefix('-') {
                wish.silent |= letters == "silent" || !letters.starts_with('-') && letters.contains(['s', 'q']);
                wish.fails_by_code |= letters == "-fail" || !letters.starts_with('-') && letters.contains('f');
                wish.head_only |= letters == "-head" || letters == "I";
            } else {
                url = Some(word);
            }
        }
        wish.aim(url?)?;
        Some(wish)
    }

    fn set(&mut self, name: &str, value: &str) {
        match name {
            "-m" | "--max-time" | "--connect-timeout" | "-T" => {
                let time = seconds(value).ok().flatten();
                self.patience = self.patience.into_iter().chain(time).min();
            }
            "-o" | "--output" | "-O" => self.target = Some(value.to_owned()),
            "-X" | "--request" => self.method = value.to_owned(),
            "-d" | "--data" | "--post-data" => self.method = "POST".to_owned(),
            "-w" | "--write-out" => self.format = value.to_owned(),
            _ => {}
        }
    }

    /// Takes an address apart: `http://host:port/path`, of which only the host must be there.
    fn aim(&mut self, url: &str) -> Option<()> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (place, path) = rest.split_at(at);
        let usual = if scheme == "https" { 443 } else { 80 };
        let (host, port) = place_of(place);
        self.host = host;
        self.port = if port.is_empty() { usual } else { port.parse().ok()? };
        self.path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Some(())
    }
}

/// Host and port of `host:port`, `[host]:port` or `host`.
fn place_of(place: &str) -> (String, String) {
    if let Some((host, rest)) = place.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        return (host.to_owned(), rest.trim_start_matches(':').to_owned());
    }
    let (host, port) = place.split_once(':').unwrap_or((place, ""));
    (host.to_owned(), port.to_owned())
}

impl Shell<'_> {
    /// `curl` and `wget`.
    pub(super) fn fetch(&mut self, command: &str, arguments: &[String]) -> Flow {
        let Some(wish) = Wish::read(command, arguments) else {
            self.error(&format!("{command}: no address was given"));
            return Ok(2);
        };
        let Some(network) = self.network else {
            self.line(&format!("simulated answer of {}:{}{}", wish.host, wish.port, wish.path));
            return Ok(0);
        };
        match network.request(&wish.host, wish.port, &wish.method, &wish.path) {
            Ok(answer) => self.fetched(command, &wish, &answer),
            Err(refusal) => self.not_fetched(command, &wish, refusal),
        }
    }

    fn fetched(&mut self, command: &str, wish: &Wish, answer: &Answer) -> Flow {
        if answer.code >= 400 && (command == "wget" || wish.fails_by_code) {
            let (line, code) = match command {
                "wget" => (format!("wget: server returned error: HTTP/1.1 {}", answer.code), 1),
                _ => (format!("curl: (22) The requested URL returned error: {}", answer.code), 22),
            };
            if !wish.silent || command == "wget" {
                self.error(&line);
            }
            return Ok(code);
        }
        let body = if wish.head_only { format!("HTTP/1.1 {}\r\n", answer.code) } else { answer.body.clone() };
        let name = wish.path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("index.html");
        let target = match (command, wish.target.as_deref()) {
            (_, Some("-")) | ("curl", None) => None,
            (_, Some(file)) => Some(file),
            (_, None) => Some(name),
        };
        match target.map(|file| self.absolute(file)) {
            Some(path) => self.files.write(&path, body.as_bytes(), false),
            None => self.out(body.as_bytes()),
        }
        if !wish.format.is_empty() {
            let code = answer.code.to_string();
            let text = wish.format.replace("%{http_code}", &code).replace("%{response_code}", &code);
            self.out(super::text::unescape(&text).as_bytes());
        }
        Ok(0)
    }

    fn not_fetched(&mut self, command: &str, wish: &Wish, refusal: Refusal) -> Flow {
        let Wish { host, port, .. } = wish;
        let patience = wish.patience.unwrap_or(Duration::from_secs(120));
        if refusal == Refusal::Silent {
            self.elapsed += patience;
        }
        let (line, code) = match (command, refusal) {
            ("wget", Refusal::Name) => (format!("wget: bad address '{host}'"), 1),
            ("wget", Refusal::Refused) => {
                (format!("wget: can't connect to remote host ({host}): Connection refused"), 1)
            }
            ("wget", Refusal::Silent) => ("wget: download timed out".to_owned(), 1),
            (_, Refusal::Name) => (format!("curl: (6) Could not resolve host: {host}"), 6),
            (_, Refusal::Refused) => (
                format!("curl: (7) Failed to connect to {host} port {port} after 0 ms: Could not connect to server"),
                7,
            ),
            (_, Refusal::Silent) => {
                (format!("curl: (28) Connection timed out after {} milliseconds", patience.as_millis()), 28)
            }
        };
        if !wish.silent || command == "wget" {
            self.error(&line);
        }
        Ok(code)
    }

    /// `nc [-zvtu] [-w SECONDS] HOST PORT`.
    pub(super) fn netcat(&mut self, arguments: &[String]) -> Flow {
        let (mut udp, mut verbose, mut scan, mut patience) = (false, false, false, Duration::from_secs(10));
        let mut place = Vec::new();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.strip_prefix('-') {
                Some("w") => patience = words.next().and_then(|text| seconds(text).ok().flatten()).unwrap_or(patience),
                Some(letters) => {
                    udp |= letters.contains('u');
                    verbose |= letters.contains('v');
                    scan |= letters.contains('z');
                }
                None => place.push(word.as_str()),
            }
        }
        let (Some(network), [host, port]) = (self.network, place.as_slice()) else { return self.unknown("nc") };
        let port: u16 = port.parse().unwrap_or_default();
        let protocol = if udp { "udp" } else { "tcp" };
        let sent = String::from_utf8_lossy(&std::mem::take(&mut self.input)).trim().to_owned();
        let reached = network.connect(host, port, &protocol.to_uppercase());
        if let Err(refusal) = reached {
            if refusal == Refusal::Silent {
                self.elapsed += patience;
            }
            let why = match refusal {
                Refusal::Name => "Name does not resolve",
                Refusal::Refused => "Connection refused",
                Refusal::Silent => "Operation timed out",
            };
            self.error(&format!("nc: connect to {host} port {port} ({protocol}) failed: {why}"));
            return Ok(1);
        }
        if verbose {
            self.error(&format!("Connection to {host} {port} port [{protocol}/*] succeeded!"));
        }
        if !scan && !sent.is_empty() {
            // A server of pages does not understand anything else.
            let other = || {
                "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request".to_owned()
            };
            let back = if udp { network.say(host, port, &sent).unwrap_or_default() } else { other() };
            self.out(back.as_bytes());
        }
        Ok(0)
    }

    /// `agnhost connect [--timeout TIME] [--protocol NAME] HOST:PORT`, of Kubernetes' test image.
    pub(super) fn agnhost(&mut self, arguments: &[String]) -> Flow {
        let (Some(network), Some("connect")) = (self.network, arguments.first().map(String::as_str)) else {
            return Err(super::Stop::Forever);
        };
        let (mut protocol, mut patience, mut place) = ("TCP".to_owned(), Duration::from_secs(1), "");
        let mut words = arguments[1..].iter();
        while let Some(word) = words.next() {
            let (name, joined) = word.split_once('=').unwrap_or((word, ""));
            let mut value =
                || if joined.is_empty() { words.next().cloned().unwrap_or_default() } else { joined.into() };
            match name {
                "--protocol" => protocol = value().to_uppercase(),
                "--timeout" => patience = seconds(&value()).ok().flatten().unwrap_or(patience),
                _ => place = word,
            }
        }
        let (host, port) = place_of(place);
        let (word, silent) = match network.connect(&host, port.parse().unwrap_or_default(), &protocol) {
            Ok(()) => return Ok(0),
            Err(Refusal::Name) => ("DNS: no such host", false),
            Err(Refusal::Refused) => ("REFUSED", false),
            Err(Refusal::Silent) => ("TIMEOUT", true),
        };
        if silent {
            self.elapsed += patience;
        }
        self.error(word);
        Ok(1)
    }

    /// `nslookup NAME`.
    pub(super) fn look_up(&mut self, arguments: &[String]) -> Flow {
        let (Some(network), Some(name)) = (self.network, arguments.iter().find(|word| !word.starts_with('-'))) else {
            return self.unknown("nslookup");
        };
        self.line("Server:\t\t10.96.0.10\nAddress:\t10.96.0.10:53\n");
        let found = network.resolve(name);
        if found.is_empty() {
            self.line(&format!("** server can't find {name}: NXDOMAIN"));
            return Ok(1);
        }
        for address in found {
            self.line(&format!("Name:\t{name}\nAddress: {address}"));
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::{Ending, Files};

    /// One server: `web:80` answers, `web:81` does not, `10.9.9.9` is nowhere.
    struct One;

    impl Network for One {
        fn connect(&self, host: &str, port: u16, _protocol: &str) -> Result<(), Refusal> {
            match (host, port) {
                ("web", 80) => Ok(()),
                ("web", _) => Err(Refusal::Refused),
                ("10.9.9.9", _) => Err(Refusal::Silent),
                _ => Err(Refusal::Name),
            }
        }

        fn request(&self, host: &str, port: u16, method: &str, path: &str) -> Result<Answer, Refusal> {
            self.connect(host, port, "TCP")?;
            let code = if path == "/missing" { 404 } else { 200 };
            Ok(Answer { code, body: format!("{method} {path}") })
        }

        fn say(&self, _host: &str, _port: u16, word: &str) -> Result<String, Refusal> {
            Ok(word.to_owned())
        }

        fn resolve(&self, host: &str) -> Vec<String> {
            if host == "web" { vec!["10.96.0.5".into()] } else { Vec::new() }
        }
    }

    #[test]
    fn commands_ask_over_the_network() {
        let table = [
            ("curl -q -s --max-time 30 web:80/hostname", "GET /hostname", 0, 0),
            ("curl -s -X PUT http://web/a?b=c", "PUT /a?b=c", 0, 0),
            ("curl -sf web/missing", "", 22, 0),
            ("curl -s -o /dev/null -w '%{http_code}' web/missing", "404", 0, 0),
            ("wget -qO- http://web/", "GET /", 0, 0),
            ("wget -q -O - web; echo", "GET /\n", 0, 0),
            ("wget -q http://web/file && cat file", "GET /file", 0, 0),
            (
                "curl web:81",
                "curl: (7) Failed to connect to web port 81 after 0 ms: Could not connect to server\n",
                7,
                0,
            ),
            ("curl -s --connect-timeout 2 10.9.9.9", "", 28, 2),
            ("wget -T 3 -O- http://nosuch", "wget: bad address 'nosuch'\n", 1, 0),
            ("nc -vz -w 2 web 80", "Connection to web 80 port [tcp/*] succeeded!\n", 0, 0),
            ("echo hi | nc -u -w 2 web 80", "hi", 0, 0),
            ("nc -z -w 2 web 82", "nc: connect to web port 82 (tcp) failed: Connection refused\n", 1, 0),
            ("/agnhost connect --timeout=3s web:80", "", 0, 0),
            ("/agnhost connect --timeout=3s 10.9.9.9:80", "TIMEOUT\n", 1, 3),
        ];
        for (script, said, code, time) in table {
            let mut files = Files::default();
            let words = ["sh", "-c", script].map(ToOwned::to_owned);
            let (pieces, ending) =
                Shell::new(&[], &mut files, jiff::Timestamp::UNIX_EPOCH).with(&One).run(&words, Vec::new());
            let all: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.bytes).collect();
            assert_eq!(String::from_utf8_lossy(&all), said, "{script}");
            assert_eq!(ending, Ending::Exit(Duration::from_secs(time), code), "{script}");
        }
    }
}
