//! CPU and memory of processes, from `/proc`.

use std::fs;

/// Clock ticks per second; fixed by the kernel's user interface.
const TICKS: f64 = 100.0;

/// CPU seconds used by these processes since they began.
pub fn cpu(processes: &[u32]) -> f64 {
    processes.iter().map(|process| (field(*process, 11) + field(*process, 12)) / TICKS).sum()
}

/// Resident memory of these processes in MiB.
pub fn memory(processes: &[u32]) -> f64 {
    processes.iter().map(|process| field(*process, 21) * 4096.0 / 1024.0 / 1024.0).sum()
}

/// The part of it that is theirs alone: without pages of files, of which the kernel maps neighbours unasked.
pub fn own_memory(processes: &[u32]) -> f64 {
    let of = |process: &u32| {
        let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kib.unwrap_or_default() / 1024.0
    };
    processes.iter().map(of).sum()
}

/// A field of `/proc/PID/stat`, counted from the one after the name.
fn field(process: u32, at: usize) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let rest = text.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    rest.split_whitespace().nth(at).and_then(|text| text.parse().ok()).unwrap_or_default()
}
