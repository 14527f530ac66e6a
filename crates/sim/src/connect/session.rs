//! Playing a run of the tiny shell to somebody, and talking with them.

use std::time::Duration;

use atoll_stream::{ExecSession, Outcome, Resizes, TerminalSize};
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;

use crate::shell::{Ending, Piece, Shell, Stream};

/// Sends output where it belongs; with a terminal all goes one way and lines end as there.
async fn send(exec: &mut ExecSession, stream: Stream, bytes: &[u8], tty: bool) {
    let text = if tty { String::from_utf8_lossy(bytes).replace('\n', "\r\n").into_bytes() } else { bytes.to_vec() };
    let target = match stream {
        Stream::Err if !tty => exec.stderr.as_mut().or(exec.stdout.as_mut()),
        _ => exec.stdout.as_mut(),
    };
    if let Some(target) = target {
        // Whoever listened is gone then; the session ends by itself.
        let _ = target.write_all(&text).await;
        let _ = target.flush().await;
    }
}

async fn play_pieces(exec: &mut ExecSession, pieces: &[Piece], start: Instant, tty: bool) {
    for piece in pieces {
        tokio::time::sleep_until(start + piece.at).await;
        send(exec, piece.stream, &piece.bytes, tty).await;
    }
}

/// Plays a run in its own time; returns how it ended.
pub async fn play(exec: &mut ExecSession, pieces: Vec<Piece>, ending: Ending, tty: bool) -> Outcome {
    let start = Instant::now();
    play_pieces(exec, &pieces, start, tty).await;
    match ending {
        Ending::Exit(at, code) => {
            tokio::time::sleep_until(start + at).await;
            Outcome::of_exit_code(code)
        }
        Ending::Forever => std::future::pending().await,
        Ending::Round(round, length) => {
            let mut base = start + pieces.last().map_or(Duration::ZERO, |piece| piece.at);
            loop {
                play_pieces(exec, &round, base, tty).await;
                base += length;
                tokio::time::sleep_until(base).await;
            }
        }
        Ending::Unknown(name) => {
            let why = format!(
                "failed to exec in container: failed to start exec: OCI runtime exec failed: exec failed: unable to start container process: exec: {name:?}: executable file not found in $PATH: unknown"
            );
            Outcome::Failed(why)
        }
    }
}

/// What came in from a terminal.
enum Key {
    Line(String),
    Size(TerminalSize),
    Interrupt,
    End,
}

/// The next size of the terminal; never, if there is none.
async fn next_size(resizes: &mut Option<Resizes>) -> TerminalSize {
    if let Some(list) = resizes
        && let Some(size) = list.next().await
    {
        return size;
    }
    *resizes = None;
    std::future::pending().await
}

/// Reads lines, and on a terminal shows what is typed.
struct Reader {
    line: Vec<u8>,
    waiting: std::collections::VecDeque<u8>,
}

impl Reader {
    async fn next(&mut self, exec: &mut ExecSession, tty: bool) -> Key {
        loop {
            while let Some(byte) = self.waiting.pop_front() {
                if let Some(key) = self.take(exec, byte, tty).await {
                    return key;
                }
            }
            let Some(stdin) = exec.stdin.as_mut() else { return Key::End };
            let piece = tokio::select! {
                size = next_size(&mut exec.resize) => return Key::Size(size),
                piece = stdin.next() => piece,
            };
            match piece {
                Some(bytes) => self.waiting.extend(bytes),
                None if self.line.is_empty() => return Key::End,
                None => return Key::Line(String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned()),
            }
        }
    }

    async fn take(&mut self, exec: &mut ExecSession, byte: u8, tty: bool) -> Option<Key> {
        match byte {
            b'\r' | b'\n' => {
                if tty {
                    send(exec, Stream::Out, b"\n", true).await;
                }
                return Some(Key::Line(String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned()));
            }
            3 if tty => {
                self.line.clear();
                send(exec, Stream::Out, b"^C\n", true).await;
                return Some(Key::Interrupt);
            }
            4 if tty && self.line.is_empty() => return Some(Key::End),
            8 | 127 if tty => {
                if self.line.pop().is_some() {
                    send(exec, Stream::Out, b"\x08 \x08", false).await;
                }
            }
            byte => {
                self.line.push(byte);
                if tty {
                    send(exec, Stream::Out, &[byte], false).await;
                }
            }
        }
        None
    }
}

/// Runs line after line until the end of the input or `exit`; returns the exit code.
pub async fn interact(exec: &mut ExecSession, shell: &mut Shell<'_>, tty: bool) -> i32 {
    let mut reader = Reader { line: Vec::new(), waiting: std::collections::VecDeque::new() };
    let mut code = 0;
    let mut resized = false;
    loop {
        if tty && !std::mem::take(&mut resized) {
            let prompt = format!("{} # ", shell.directory);
            send(exec, Stream::Out, prompt.as_bytes(), true).await;
        }
        let line = match reader.next(exec, tty).await {
            Key::Line(line) => line,
            Key::Interrupt => continue,
            Key::Size(size) => {
                shell.variables.insert("LINES".into(), size.height.to_string());
                shell.variables.insert("COLUMNS".into(), size.width.to_string());
                resized = true;
                continue;
            }
            Key::End => return code,
        };
        let leaves = line.trim().starts_with("exit");
        let (pieces, ending) = shell.run_line(&line);
        if let Ending::Exit(_, result) = ending {
            code = result;
        }
        match play(exec, pieces, ending, tty).await {
            Outcome::Failed(_) => {
                let name = line.split_whitespace().next().unwrap_or_default();
                send(exec, Stream::Err, format!("sh: {name}: not found\n").as_bytes(), tty).await;
                code = 127;
            }
            _ if leaves => return code,
            _ => {}
        }
    }
}
