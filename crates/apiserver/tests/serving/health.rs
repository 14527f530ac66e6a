//! `/healthz`, `/livez` and `/readyz`: as a whole, verbose, one check, without some.

use std::sync::atomic::Ordering;

use crate::away::Away;
use crate::support::{TestHub, Who};

const PING: &str = "[+]ping ok\n[+]log ok\n";
const PASSED: &str = "readyz check passed";
const FAILED: &str = "readyz check failed";

#[tokio::test]
async fn every_check_tells_its_state_alone_and_together() {
    let (engine, away) = Away::new();
    let hub = TestHub::over(engine).await;
    let live = |etcd: &str, end: &str| format!("{PING}{etcd}\nlivez check {end}\n");
    let ready = |etcd: &str, end: &str| format!("{PING}{etcd}\n[+]informer-sync ok\n[+]shutdown ok\n{end}\n");
    let (good, bad, left) = ("[+]etcd ok", "[-]etcd failed: reason withheld", "[+]etcd excluded: ok");
    let odd = "warn: some health checks cannot be excluded: no matches for \"odd\"\n";
    let alone = "internal server error: etcd failed\n".to_owned();
    // Path; code and text while the store is well; the same while it is away.
    let table = [
        ("/healthz", (200, "ok".to_owned()), (500, live(bad, "failed").replace("livez", "healthz"))),
        ("/livez", (200, "ok".to_owned()), (500, live(bad, "failed"))),
        ("/livez?verbose", (200, live(good, "passed")), (500, live(bad, "failed"))),
        ("/livez?exclude=etcd", (200, "ok".to_owned()), (200, "ok".to_owned())),
        ("/livez?verbose&exclude=etcd", (200, live(left, "passed")), (200, live(left, "passed"))),
        ("/livez/ping", (200, "ok".to_owned()), (200, "ok".to_owned())),
        ("/livez/etcd", (200, "ok".to_owned()), (500, alone.clone())),
        ("/readyz", (200, "ok".to_owned()), (500, ready(bad, FAILED))),
        ("/readyz?verbose", (200, ready(good, PASSED)), (500, ready(bad, FAILED))),
        (
            "/readyz?verbose=true&exclude=odd",
            (200, ready(good, &format!("{odd}{PASSED}"))),
            (500, ready(bad, &format!("{odd}{FAILED}"))),
        ),
        ("/readyz/etcd", (200, "ok".to_owned()), (500, alone)),
        ("/readyz/shutdown", (200, "ok".to_owned()), (200, "ok".to_owned())),
        ("/readyz/none", (404, "404 page not found\n".to_owned()), (404, "404 page not found\n".to_owned())),
    ];
    for (path, well, ill) in table {
        for (is_away, expected) in [(false, well), (true, ill)] {
            away.store(is_away, Ordering::SeqCst);
            let answer = hub.get(&Who::Master, path).await;
            assert_eq!((answer.code, answer.text), expected, "{path}, away: {is_away}");
        }
    }
    away.store(false, Ordering::SeqCst);
    hub.hub.shutdown.cancel();
    assert_eq!(hub.get(&Who::Master, "/livez").await.code, 200, "it lives until it has ended");
    let answer = hub.get(&Who::Master, "/readyz").await;
    assert!(answer.code == 500 && answer.text.contains("[-]shutdown failed"), "{}", answer.text);
}

#[tokio::test]
async fn anybody_may_ask_for_the_whole_and_only_some_for_single_checks() {
    let hub = TestHub::new().await;
    hub.bind("", "system:monitoring", "prober").await;
    for (path, nobody, jane, prober) in [
        ("/healthz", 200, 200, 200),
        ("/livez", 200, 200, 200),
        ("/readyz?verbose", 200, 200, 200),
        ("/version", 200, 200, 200),
        ("/readyz/etcd", 403, 403, 200),
        ("/livez/ping", 403, 403, 200),
    ] {
        let mut codes = Vec::new();
        for who in [Who::Nobody, Who::User("jane"), Who::User("prober")] {
            codes.push(hub.get(&who, path).await.code);
        }
        assert_eq!(codes, [nobody, jane, prober], "{path}");
    }
}
