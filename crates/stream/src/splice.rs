//! Joining two connections.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

const BUFFER: usize = 16 * 1024;

/// Copies both ways until both sides are done, or until nothing moved for `idle`.
///
/// When one side ends its sending, the other is told so and may still send. Returns
/// the bytes copied from `a` to `b` and from `b` to `a`.
pub async fn splice<A, B>(a: A, b: B, idle: Option<Duration>) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite,
    B: AsyncRead + AsyncWrite,
{
    let (a_read, a_write) = tokio::io::split(a);
    let (b_read, b_write) = tokio::io::split(b);
    let moved = Arc::new(AtomicU64::new(0));
    let both = async { tokio::try_join!(copy(a_read, b_write, &moved), copy(b_read, a_write, &moved)) };
    tokio::select! {
        result = both => result,
        () = quiet(&moved, idle) => Err(io::ErrorKind::TimedOut.into()),
    }
}

async fn copy(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, moved: &AtomicU64) -> io::Result<u64> {
    let mut buffer = vec![0; BUFFER];
    let mut total = 0;
    loop {
        let len = from.read(&mut buffer).await?;
        if len == 0 {
            to.shutdown().await?;
            return Ok(total);
        }
        to.write_all(&buffer[..len]).await?;
        to.flush().await?;
        total += len as u64;
        moved.fetch_add(len as u64, Ordering::Relaxed);
    }
}

/// Ends when nothing moved for a whole period.
async fn quiet(moved: &AtomicU64, idle: Option<Duration>) {
    let Some(idle) = idle else { return std::future::pending().await };
    let mut seen = moved.load(Ordering::Relaxed);
    loop {
        tokio::time::sleep(idle).await;
        let now = moved.load(Ordering::Relaxed);
        if now == seen {
            return;
        }
        seen = now;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_half_closed_side_can_still_be_answered() {
        let (mut left, a) = tokio::io::duplex(8);
        let (mut right, b) = tokio::io::duplex(8);
        let joined = tokio::spawn(splice(a, b, None));
        let caller = tokio::spawn(async move {
            left.write_all(b"a long question").await.unwrap();
            left.shutdown().await.unwrap();
            let mut answer = String::new();
            left.read_to_string(&mut answer).await.unwrap();
            answer
        });
        let mut question = String::new();
        right.read_to_string(&mut question).await.unwrap();
        assert_eq!(question, "a long question");
        right.write_all(b"an answer").await.unwrap();
        drop(right);
        assert_eq!(caller.await.unwrap(), "an answer");
        assert_eq!(joined.await.unwrap().unwrap(), (15, 9));
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_are_given_up() {
        let (_left, a) = tokio::io::duplex(8);
        let (_right, b) = tokio::io::duplex(8);
        let error = splice(a, b, Some(Duration::from_secs(60))).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
