//! A tiny file beside the data file that remembers how far the data file had come.
//!
//! redb takes a damaged newest commit for one that was cut off by a crash and goes back to the
//! one before; and it takes an empty file for a new one. Both would be silent loss of acknowledged
//! writes. So after each commit its number is noted here, and a data file that is behind the note
//! is refused. The note is not synced: after a loss of power it may be old, never too new.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::checksum::Checksum;

const MAGIC: &[u8; 8] = b"ATOLLMRK";
const LENGTH: usize = 20;

/// The open note.
#[derive(Debug)]
pub(super) struct Mark {
    path: PathBuf,
    file: Option<File>,
}

impl Mark {
    /// The note that belongs to a data file.
    pub fn of(data: &Path) -> Self {
        let mut name = data.as_os_str().to_owned();
        name.push(".mark");
        Self { path: name.into(), file: None }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it was ever written.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// The number noted last; `None` when there is none or it is unreadable.
    pub fn read(&self) -> Option<u64> {
        let mut bytes = Vec::new();
        File::open(&self.path).ok()?.take(LENGTH as u64).read_to_end(&mut bytes).ok()?;
        let (content, sum) = bytes.split_at_checked(LENGTH - 4)?;
        let (magic, number) = content.split_at(MAGIC.len());
        let whole = magic == MAGIC && sum == Checksum::of(content).to_le_bytes();
        if whole { number.try_into().ok().map(u64::from_le_bytes) } else { None }
    }

    /// Notes a number.
    pub fn write(&mut self, number: u64) -> io::Result<()> {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        let sum = Checksum::of(&bytes[..16]);
        bytes[16..].copy_from_slice(&sum.to_le_bytes());
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(OpenOptions::new().create(true).truncate(false).write(true).open(&self.path)?),
        };
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&bytes)
    }
}
