//! Settings of an instance: failover, descheduler, metrics adapter. Kept on the Instance object.

use atoll_meta::Status;
use atoll_runtime::Patch;
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::context::Ctx;
use crate::kinds::INSTANCE;
use crate::transcode::status::unimplemented;

/// A setting: the annotation that holds it and what holds without one.
struct Setting {
    annotation: &'static str,
    default: Value,
}

fn setting(name: &str) -> Option<Setting> {
    let (annotation, default) = match name {
        "Failover" => (
            "atoll.io/failover",
            json!({"enabled": false, "timeout": {
                "failoverEvictionTimeout": "30", "clusterMonitorPeriod": "5", "clusterStartupGracePeriod": "60",
                "clusterMonitorGracePeriod": "40", "gracefulEvictionTimeout": "600", "clusterSuccessThreshold": "30", "clusterFailureThreshold": "30",
            }}),
        ),
        "Descheduler" => (
            "atoll.io/descheduler",
            json!({"enabled": false, "timeout": {"deschedulingInterval": "120", "unschedulableThreshold": "300"}}),
        ),
        "MetricsAdapter" => ("atoll.io/metrics-adapter", json!({"enabled": false})),
        _ => return None,
    };
    Some(Setting { annotation, default })
}

/// Reads or replaces a setting.
pub async fn call(ctx: &Ctx, method: &str, input: &Value) -> Result<Value, Status> {
    let unknown = || unimplemented(&format!("{method} is not served"));
    let (write, name) = match (method.strip_prefix("GetInstance"), method.strip_prefix("UpdateInstance")) {
        (Some(name), _) => (false, name),
        (_, Some(name)) => (true, name),
        _ => return Err(unknown()),
    };
    let setting = setting(name).ok_or_else(unknown)?;
    let instance = Ask(input).segment("instance")?;
    if !write {
        let object = ctx.root().get(&INSTANCE.gvr(), None, instance).await?;
        let stored = object["metadata"]["annotations"][setting.annotation]
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok());
        return Ok(stored.unwrap_or(setting.default));
    }
    let mut wanted = json!({"enabled": input["enabled"]});
    if setting.default.get("timeout").is_some() {
        wanted["timeout"] =
            if input["timeout"].is_object() { input["timeout"].clone() } else { setting.default["timeout"].clone() };
    }
    let change = json!({"metadata": {"annotations": {setting.annotation: wanted.to_string()}}});
    ctx.root().patch(&INSTANCE.gvr(), None, instance, "", Patch::Merge, &change).await?;
    Ok(json!({}))
}
