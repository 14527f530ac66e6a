//! Says what a start is busy with when it takes longer than anybody expects.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long nothing is said, and how often something is said then.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a start is busy with. Ends when dropped.
pub struct Progress {
    stage: watch::Sender<String>,
    task: JoinHandle<()>,
}

impl Progress {
    /// Tells on standard error.
    pub fn start() -> Self {
        Self::telling(|line| eprintln!("{line}"))
    }

    fn telling(tell: impl Fn(&str) + Send + 'static) -> Self {
        let (stage, told) = watch::channel(String::new());
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(PATIENCE).await;
                let line = told.borrow().clone();
                if !line.is_empty() {
                    tell(&line);
                }
            }
        });
        Self { stage, task }
    }

    /// Another thing has begun.
    pub fn stage(&self, text: impl Into<String>) {
        self.stage.send_replace(text.into());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_takes_long_is_told() {
        let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
        let progress = Progress::telling(move |line| drop(send.send(line.to_owned())));
        progress.stage("quick");
        tokio::time::sleep(PATIENCE / 2).await;
        progress.stage("member 1 of 9");
        assert_eq!(receive.recv().await.as_deref(), Some("member 1 of 9"));
        progress.stage("member 2 of 9");
        assert_eq!(receive.recv().await.as_deref(), Some("member 2 of 9"));
        drop(progress);
        assert_eq!(receive.recv().await, None);
    }
}
