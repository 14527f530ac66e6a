//! Reclaiming while pods keep coming.

use serde_json::json;

use crate::chaos::{Dice, kubelets};
use crate::stage::*;

#[tokio::test(start_paused = true)]
async fn a_node_taken_back_by_force_stays_empty_whatever_comes() {
    let (stage, _manager) = Stage::play().await;
    make_node(&stage.w1, "n1", "4", "8Gi").await;
    let tide = json!({"timeWindows": [{"start": "11:00", "end": "12:01"}], "forceReclaim": true, "gracefulReclaimPeriodSeconds": 30});
    make_policy(&stage.w1, "p1", "w1", tide).await;
    stage.bind("w1", json!({})).await;
    until_there(&stage.compute, &nodes(), None, "vnode-w1-n1").await;
    let dice = Dice::new(7);
    // The windows close after two minutes, the grace period ends half a minute later; pods come for four minutes.
    let mut most = 0;
    for index in 0..60 {
        make_pod(&stage.compute, &pod(&format!("p{index}"), "vnode-w1-n1", "10m")).await;
        stage.pass(4).await;
        kubelets(&stage.w1, &dice).await;
        most = most.max(stage.w1.list(&pods(), Some(MOUNT), "").await.unwrap().items.len());
    }
    assert!(most > 20, "{most} of them ran while the windows were open");
    for _ in 0..60 {
        kubelets(&stage.w1, &dice).await;
        stage.pass(1).await;
    }
    for (cluster, namespace) in [(&stage.w1, MOUNT), (&stage.compute, "default")] {
        let left = cluster.list(&pods(), Some(namespace), "").await.unwrap().items;
        assert!(left.is_empty(), "{} pods stay in {}: {:#}", left.len(), cluster.name(), left[0]);
    }
}
