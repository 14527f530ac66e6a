//! The files of a simulated container, as far as somebody wrote them.

use std::collections::BTreeMap;

use bytes::Bytes;

/// Most bytes one container keeps.
const ROOM: usize = 4 * 1024 * 1024;

/// Files by absolute path; `None` is a directory.
#[derive(Clone, Debug, Default)]
pub struct Files {
    all: BTreeMap<String, Option<Bytes>>,
    protected: bool,
}

/// Directories every container has.
const DIRECTORIES: [&str; 15] = [
    "/", "/bin", "/dev", "/etc", "/home", "/lib", "/opt", "/proc", "/root", "/run", "/sbin", "/sys", "/tmp", "/usr",
    "/var",
];

/// A path without `.`, `..` and double slashes.
pub fn normalize(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

impl Files {
    /// What every container has.
    pub fn of_container(pod: &str, ip: &str) -> Self {
        let mut files = Self::default();
        files.write("/etc/hostname", format!("{pod}\n").as_bytes(), false);
        files.write("/etc/hosts", format!("127.0.0.1\tlocalhost\n{ip}\t{pod}\n").as_bytes(), false);
        files.write("/etc/os-release", b"NAME=\"Simulated Linux\"\nID=simulated\n", false);
        let dns = "search default.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n";
        files.write("/etc/resolv.conf", dns.as_bytes(), false);
        files
    }

    /// Lets nobody write but to directories that were made, which are volumes, and devices.
    pub fn protect(&mut self) {
        self.protected = true;
    }

    /// Whether a file must not be written.
    pub fn is_protected(&self, path: &str) -> bool {
        let volume = |own: &str| path.strip_prefix(own).is_some_and(|rest| rest.starts_with('/'));
        self.protected
            && !path.starts_with("/dev/")
            && !self.all.iter().any(|(own, content)| content.is_none() && volume(own))
    }

    /// A file.
    pub fn read(&self, path: &str) -> Option<Bytes> {
        if path == "/dev/null" {
            return Some(Bytes::new());
        }
        self.all.get(path).cloned().flatten()
    }

    /// Writes a file and makes its directories; beyond the room there is, nothing is kept.
    pub fn write(&mut self, path: &str, bytes: &[u8], append: bool) {
        if path == "/dev/null" || self.size() + bytes.len() > ROOM {
            return;
        }
        let mut content = if append { self.read(path).unwrap_or_default().to_vec() } else { Vec::new() };
        content.extend_from_slice(bytes);
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.make_directory(parent);
        }
        self.all.insert(path.to_owned(), Some(content.into()));
    }

    fn size(&self) -> usize {
        self.all.values().flatten().map(Bytes::len).sum()
    }

    /// Makes a directory and those above it.
    pub fn make_directory(&mut self, path: &str) {
        let mut here = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            here = format!("{here}/{part}");
            if !DIRECTORIES.contains(&here.as_str()) {
                self.all.entry(here.clone()).or_insert(None);
            }
        }
    }

    /// Whether there is such a directory.
    pub fn is_directory(&self, path: &str) -> bool {
        DIRECTORIES.contains(&path) || matches!(self.all.get(path), Some(None))
    }

    /// Whether there is such a file or directory.
    pub fn exists(&self, path: &str) -> bool {
        self.is_directory(path) || self.all.contains_key(path) || path == "/dev/null"
    }

    /// Removes a file, or a directory with everything in it.
    pub fn remove(&mut self, path: &str) -> bool {
        let below = format!("{path}/");
        let before = self.all.len();
        self.all.retain(|own, _| own != path && !own.starts_with(&below));
        self.all.len() < before
    }

    /// Names in a directory, sorted.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let prefix = if directory == "/" { "/".to_owned() } else { format!("{directory}/") };
        let known = DIRECTORIES.iter().map(|path| (*path).to_owned()).chain(self.all.keys().cloned());
        let mut names: Vec<String> = known
            .filter_map(|path| path.strip_prefix(&prefix).map(ToOwned::to_owned))
            .filter(|name| !name.is_empty() && !name.contains('/'))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// A file or a directory with everything below it, by path.
    pub fn below(&self, path: &str) -> Vec<(String, Option<Bytes>)> {
        let prefix = if path == "/" { "/".to_owned() } else { format!("{path}/") };
        let fits = |own: &str| own == path || own.starts_with(&prefix);
        self.all.iter().filter(|(own, _)| fits(own)).map(|(own, content)| (own.clone(), content.clone())).collect()
    }
}
