//! The end of the process.

use std::time::Duration;

use atoll_testkit::peers;
use http_body_util::BodyExt as _;

use crate::hub::{Hub, MAPS, map};

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_watches_cleanly_and_the_process_without_loss() {
    for signal in ["-TERM", "-INT"] {
        let directory = tempfile::tempdir().unwrap();
        let mut hub = Hub::start(directory.path(), "--metrics-listen off --health-listen off");
        let watch = hub.open(Some(&hub.token), "GET", &format!("{MAPS}?watch=true"), None).await;
        assert_eq!(watch.status(), 200);
        let mut events = watch.into_body();
        assert_eq!(hub.ask("POST", MAPS, Some(&map("last", 1))).await.0, 201);
        let mut seen = String::new();
        while !seen.contains("\"last\"") {
            let piece = events.frame().await.unwrap().unwrap().into_data().unwrap();
            seen.push_str(std::str::from_utf8(&piece).unwrap());
        }
        hub.signal(signal);
        // A connection that is cut would be an error, not an end.
        events.collect().await.unwrap();
        let status = tokio::task::block_in_place(|| peers::ended(&mut hub.process, Duration::from_secs(60)));
        assert_eq!(status.code(), Some(0), "{signal}");
        let again = Hub::start(directory.path(), "--metrics-listen off --health-listen off");
        assert!(again.maps().await.contains(&"last".to_owned()), "{signal}");
    }
}
