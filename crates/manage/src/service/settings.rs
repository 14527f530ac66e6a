//! Settings of an instance: failover, descheduler, metrics adapter.
//!
//! Failover is what the annotations of the Instance say that its propagation goes by, and a ClusterTaintPolicy that
//! makes clusters which are not ready be left. The other two have nothing here that could be switched on.

use atoll_meta::Status;
use atoll_runtime::Patch;
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::context::Ctx;
use crate::kinds::INSTANCE;
use crate::transcode::status::unimplemented;

/// The switches of propagation that failover needs.
const SWITCHES: [&str; 2] = ["fleet.atoll.io/failover", "fleet.atoll.io/no-execute-taint-eviction"];
/// Without it no ClusterTaintPolicy may make clusters be left.
const ALLOWED: &str = "fleet.atoll.io/allow-no-execute-taint-policy";
/// Times that can be set: their names here, the settings of propagation, and their usual values in seconds.
const TIMES: [(&str, &str, i64); 3] = [
    ("clusterMonitorGracePeriod", "fleet.atoll.io/cluster-lease-grace-seconds", 40),
    ("gracefulEvictionTimeout", "fleet.atoll.io/graceful-eviction-timeout-seconds", 600),
    ("clusterFailureThreshold", "fleet.atoll.io/cluster-failure-threshold-seconds", 30),
];
/// Times that nothing goes by: clusters are left as soon as they are not ready, and are asked all the time.
const WITHOUT_EFFECT: [&str; 4] =
    ["failoverEvictionTimeout", "clusterMonitorPeriod", "clusterStartupGracePeriod", "clusterSuccessThreshold"];
/// The policy that makes clusters be left.
const TAINT_POLICY: &str = "atoll-failover";

/// Reads or replaces a setting.
pub async fn call(ctx: &Ctx, method: &str, input: &Value) -> Result<Value, Status> {
    let unknown = || unimplemented(&format!("{method} is not served"));
    let (write, name) = match (method.strip_prefix("GetInstance"), method.strip_prefix("UpdateInstance")) {
        (Some(name), _) => (false, name),
        (_, Some(name)) => (true, name),
        _ => return Err(unknown()),
    };
    let absent = match name {
        "Failover" => None,
        "Descheduler" => Some("there is no descheduler; a WorkloadRebalancer asks for new decisions"),
        "MetricsAdapter" => Some("there is no metrics adapter"),
        _ => return Err(unknown()),
    };
    let instance = Ask(input).segment("instance")?;
    let object = ctx.root().get(&INSTANCE.gvr(), None, instance).await?;
    match (absent, write) {
        (None, false) => Ok(read(&object["metadata"]["annotations"])),
        (None, true) => replace(ctx, instance, input).await.map(|()| json!({})),
        (Some(why), true) => Err(unimplemented(why)),
        (Some(_), false) => Ok(json!({"enabled": false})),
    }
}

/// Failover as annotations say.
fn read(annotations: &Value) -> Value {
    let times = TIMES.map(|(name, setting, usual)| {
        let stored = annotations[setting].as_str().and_then(|text| text.parse().ok());
        // As JSON writes numbers of 64 bits in messages.
        (name.to_owned(), Value::from(stored.unwrap_or(usual).to_string()))
    });
    let enabled = SWITCHES.iter().all(|switch| annotations[switch] == "true");
    json!({"enabled": enabled, "timeout": serde_json::Map::from_iter(times)})
}

/// What annotations are to say, or what is wrong with what is asked for.
fn wanted(input: &Value) -> Result<Value, Status> {
    let enabled = input["enabled"] == true;
    let mut annotations = json!({});
    for switch in SWITCHES {
        annotations[switch] = enabled.to_string().into();
    }
    if enabled {
        annotations[ALLOWED] = "true".into();
    }
    let number = |name: &str| {
        let given = &input["timeout"][name];
        given.as_i64().or_else(|| given.as_str()?.parse().ok()).filter(|seconds| *seconds != 0)
    };
    for (name, setting, _) in TIMES {
        if let Some(seconds) = number(name) {
            if seconds < 0 {
                return Err(Status::bad_request(format!("timeout.{name}: {seconds} is not a number of seconds")));
            }
            annotations[setting] = seconds.to_string().into();
        }
    }
    match WITHOUT_EFFECT.iter().find(|name| number(name).is_some()) {
        Some(name) => Err(Status::bad_request(format!("timeout.{name} cannot be set: nothing goes by it"))),
        None => Ok(annotations),
    }
}

/// Writes the settings with the rights of the caller; whoever may do that says what propagation does.
async fn replace(ctx: &Ctx, instance: &str, input: &Value) -> Result<(), Status> {
    let annotations = wanted(input)?;
    let change = json!({"metadata": {"annotations": annotations}});
    ctx.root().patch(&INSTANCE.gvr(), None, instance, "", Patch::Merge, &change).await?;
    if input["enabled"] == true && ctx.core.hub.instance(instance).is_some() {
        // It stays when failover is switched off: it also takes back the taints of clusters that are ready again.
        let policies = atoll_meta::Gvr::new("policy.karmada.io", "v1alpha1", "clustertaintpolicies");
        ctx.core.own_endpoint(instance).ensure(&policies, None, &taint_policy()).await?;
    }
    Ok(())
}

fn taint_policy() -> Value {
    let ready = |operator: &str| json!([{"conditionType": "Ready", "operator": operator, "statusValues": ["True"]}]);
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterTaintPolicy", "metadata": {"name": TAINT_POLICY},
        "spec": {"addOnConditions": ready("NotIn"), "removeOnConditions": ready("In"),
                 "taints": [{"key": "cluster.karmada.io/not-ready", "effect": "NoExecute"}]}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() -> Result<(), Status> {
        assert_eq!(read(&Value::Null)["enabled"], false);
        let asked =
            json!({"enabled": true, "timeout": {"gracefulEvictionTimeout": "120", "clusterFailureThreshold": 0}});
        let seen = read(&wanted(&asked)?);
        assert_eq!((&seen["enabled"], &seen["timeout"]["gracefulEvictionTimeout"]), (&json!(true), &json!("120")));
        assert_eq!(seen["timeout"]["clusterFailureThreshold"], "30", "zero is what a message without a value says");
        assert_eq!(read(&wanted(&json!({"enabled": false}))?)["enabled"], false);
        Ok(())
    }

    #[test]
    fn times_that_nothing_goes_by_are_refused() {
        for name in WITHOUT_EFFECT {
            assert!(wanted(&json!({"enabled": true, "timeout": {name: "5"}})).is_err(), "{name}");
        }
        assert!(wanted(&json!({"enabled": true, "timeout": {"gracefulEvictionTimeout": -1}})).is_err());
    }
}
