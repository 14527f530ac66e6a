//! The same stories with members of this hub and with real ones.
#![allow(clippy::unwrap_used)]

mod support;

#[path = "support/real.rs"]
mod real;
#[path = "support/stories.rs"]
mod stories_of;

use atoll_testkit::peers;
use serde_json::json;
use support::{NS, World, core, map_policy, marked_map, policies};

#[tokio::test(flavor = "multi_thread")]
async fn three_members_of_this_hub_tell_all_stories() {
    let mut world = World::new(3).await;
    stories_of::all(&mut world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_real_members_tell_all_stories_and_survive_a_crash() {
    let Some((clusters, members)) = real::start(&stories_of::MEMBERS).await else { return };
    let mut world = World::with_members(members).await;
    stories_of::all(&mut world).await;

    // A real process that dies and comes back with its data.
    world.instance.create(&policies(), NS, &map_policy("crash", "crash", json!({}))).await.unwrap();
    world.instance.create(&core("configmaps"), NS, &marked_map("survivor", "crash", "1")).await.unwrap();
    let before = world.in_member("m1", &core("configmaps"), "survivor", |_| true).await;
    let script = |name: &str| {
        let mut command = std::process::Command::new(peers::checkout().join("tests/peers").join(name));
        peers::run(command.arg(clusters[0].directory())).ok();
    };
    script("down");
    world.instance.create(&core("configmaps"), NS, &marked_map("meanwhile", "crash", "1")).await.unwrap();
    world.in_member("m2", &core("configmaps"), "meanwhile", |_| true).await;
    world.readiness("m1", "False").await;
    script("up");
    world.in_member("m1", &core("configmaps"), "meanwhile", |_| true).await;
    let after = world.in_member("m1", &core("configmaps"), "survivor", |_| true).await;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    world.crash();
}
