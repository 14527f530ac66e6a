//! The same stories with members of this hub and with real ones.
#![allow(clippy::unwrap_used)]

mod support;

#[path = "support/real.rs"]
mod real;
#[path = "support/stories.rs"]
mod stories_of;

use atoll_meta::Gvr;
use atoll_testkit::peers;
use serde_json::json;
use support::{NS, World, clusters, core, map_policy, marked_map, policies, policy};

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

    an_older_member_gets_what_it_serves(&world).await;

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

/// The last member is some releases older: it says so, and what it does not serve goes to the others.
async fn an_older_member_gets_what_it_serves(world: &World) {
    let [new, old] = ["m1", "m3"].map(async |name| {
        let cluster = world.instance.get(&clusters(), None, name).await.unwrap();
        cluster["status"]["kubernetesVersion"].as_str().unwrap().to_owned()
    });
    let (new, old) = (new.await, old.await);
    assert!(new.starts_with("v1.35.") && old.starts_with("v1.30."), "{new} and {old}");
    let claims = Gvr::new("resource.k8s.io", "v1", "resourceclaimtemplates");
    let rule = policy(
        "young",
        json!({"resourceSelectors": [{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}]}),
    );
    world.instance.create(&policies(), NS, &rule).await.unwrap();
    let template = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "young", "namespace": "default"}, "spec": {"spec": {"devices": {}}}});
    world.instance.create(&claims, NS, &template).await.unwrap();
    for name in ["m1", "m2"] {
        world.in_member(name, &claims, "young", |_| true).await;
    }
    assert_eq!(world.targets("young-resourceclaimtemplate").await, ["m1", "m2"]);
}
