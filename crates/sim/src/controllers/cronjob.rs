//! CronJobs: Jobs at set times.

use std::time::Duration;

use atoll_meta::Status;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::completion::is_finished;
use super::schedule::Schedule;
use super::{Again, parent, split, tell, write_status};
use crate::child::controller_ref;
use crate::condition;
use crate::kind::Kind;
use crate::time;
use crate::world::{Work, World};
use crate::write;

/// What is to be done for a CronJob.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// The moment to make a Job for.
    pub start: Option<Timestamp>,
    /// Names and uids of Jobs to delete.
    pub delete: Vec<(String, String)>,
    /// Its new status.
    pub status: Value,
    /// When it is due next.
    pub again: Option<Duration>,
    /// What to tell: type, reason, message.
    pub events: Vec<(&'static str, &'static str, String)>,
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

fn key(job: &Value) -> (String, String) {
    (text(job, "name").to_owned(), text(job, "uid").to_owned())
}

/// Decides what a CronJob needs.
pub fn decide(cron: &Value, jobs: &[Value], now: Timestamp) -> Plan {
    let mut plan = Plan { status: status(cron, jobs), events: completed(cron, jobs), ..Plan::default() };
    plan.delete = old_jobs(cron, jobs);
    if !cron["metadata"]["deletionTimestamp"].is_null() || cron["spec"]["suspend"] == true {
        return plan;
    }
    let line = cron["spec"]["schedule"].as_str().unwrap_or_default();
    let schedule = match Schedule::parse(line, cron["spec"]["timeZone"].as_str()) {
        Ok(schedule) => schedule,
        Err(why) => {
            plan.events.push(("Warning", "UnparseableSchedule", format!("unparseable schedule: {line} : {why}")));
            return plan;
        }
    };
    plan.again = schedule.wait(now);
    let Some(due) = due(cron, &schedule, now, &mut plan) else { return plan };
    let active: Vec<&Value> = jobs.iter().filter(|job| !is_finished(job)).collect();
    match cron["spec"]["concurrencyPolicy"].as_str() {
        Some("Forbid") if !active.is_empty() => {
            plan.events.push((
                "Normal",
                "JobAlreadyActive",
                "Not starting job because prior execution is running and concurrency policy is Forbid".into(),
            ));
        }
        Some("Replace") => {
            plan.delete.extend(active.iter().map(|job| key(job)));
            plan.start = Some(due);
        }
        _ => plan.start = Some(due),
    }
    plan
}

/// The moment a Job must be made for, if there is one that was not served.
fn due(cron: &Value, schedule: &Schedule, now: Timestamp, plan: &mut Plan) -> Option<Timestamp> {
    let last =
        time::read(&cron["status"]["lastScheduleTime"]).or(time::read(&cron["metadata"]["creationTimestamp"]))?;
    let deadline = cron["spec"]["startingDeadlineSeconds"].as_i64();
    let from = deadline.map_or(last, |seconds| last.max(time::plus(now, -seconds)));
    let (due, missed) = schedule.last(from, now);
    if missed > 100 {
        let message = format!(
            "too many missed start times: {missed}. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        );
        plan.events.push(("Warning", "TooManyMissedTimes", message));
    }
    let due = due?;
    if deadline.is_some_and(|seconds| time::plus(due, seconds) < now) {
        plan.events.push((
            "Warning",
            "MissSchedule",
            format!("Missed scheduled time to start a job: {}", time::text(due)),
        ));
        return None;
    }
    Some(due)
}

/// Jobs that were still active at the last look are told as completed.
fn completed(cron: &Value, jobs: &[Value]) -> Vec<(&'static str, &'static str, String)> {
    let known: Vec<&Value> = cron["status"]["active"].as_array().into_iter().flatten().map(|one| &one["uid"]).collect();
    let ended = jobs.iter().filter(|job| is_finished(job) && known.contains(&&job["metadata"]["uid"]));
    let told = ended.map(|job| {
        let well = condition::is_true(&job["status"]["conditions"], "Complete");
        let how = if well { "Complete" } else { "Failed" };
        ("Normal", "SawCompletedJob", format!("Saw completed job: {}, condition: {how}", text(job, "name")))
    });
    told.collect()
}

fn status(cron: &Value, jobs: &[Value]) -> Value {
    let mut status = cron["status"].clone();
    let active: Vec<Value> = jobs.iter().filter(|job| !is_finished(job)).map(reference).collect();
    let successes = jobs.iter().filter(|job| condition::is_true(&job["status"]["conditions"], "Complete"));
    let last = successes.filter_map(|job| job["status"]["completionTime"].as_str()).max();
    if let Some(last) = last
        && status["lastSuccessfulTime"].as_str().is_none_or(|known| known < last)
    {
        status["lastSuccessfulTime"] = last.into();
    }
    if active.is_empty() {
        if let Some(map) = status.as_object_mut() {
            map.remove("active");
        }
    } else {
        status["active"] = active.into();
    }
    status
}

fn reference(job: &Value) -> Value {
    let meta = &job["metadata"];
    json!({"kind": "Job", "apiVersion": "batch/v1", "namespace": meta["namespace"], "name": meta["name"],
           "uid": meta["uid"], "resourceVersion": meta["resourceVersion"]})
}

/// Finished Jobs beyond the number to be kept, oldest first.
fn old_jobs(cron: &Value, jobs: &[Value]) -> Vec<(String, String)> {
    let mut gone = Vec::new();
    for (kind, field, kept) in [("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1)]
    {
        let mut ended: Vec<&Value> =
            jobs.iter().filter(|job| condition::is_true(&job["status"]["conditions"], kind)).collect();
        ended.sort_by_key(|job| job["status"]["startTime"].as_str().unwrap_or_default().to_owned());
        let limit = usize::try_from(cron["spec"][field].as_u64().unwrap_or(kept)).unwrap_or(usize::MAX);
        gone.extend(ended.iter().take(ended.len().saturating_sub(limit)).map(|job| key(job)));
    }
    gone
}

/// Looks after one CronJob.
pub async fn reconcile(world: &World, work: &Work) -> Again {
    let Some(cron) = parent(world, Kind::CronJob, work) else { return Ok(None) };
    let (namespace, _) = split(&work.key);
    let uid = text(&cron, "uid");
    let jobs: Vec<Value> = world.cache(Kind::Job).owned_by(uid).iter().map(atoll_runtime::Item::tree).collect();
    let mut plan = decide(&cron, &jobs, world.now());
    for (name, uid) in &plan.delete {
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background", "preconditions": {"uid": uid}});
        let written = write::delete_with(&world.manager, Kind::Job, (namespace, name), &options).await?;
        world.expect(work, written.revision());
        tell(world, &cron, "Normal", "SuccessfulDelete", &format!("Deleted job {name}")).await;
    }
    if let Some(at) = plan.start {
        start(world, work, &cron, at, &mut plan).await?;
    }
    for (kind, reason, message) in &plan.events {
        tell(world, &cron, kind, reason, message).await;
    }
    write_status(world, work, Kind::CronJob, &cron, &plan.status).await?;
    Ok(plan.again)
}

async fn start(world: &World, work: &Work, cron: &Value, at: Timestamp, plan: &mut Plan) -> Result<(), Status> {
    let (namespace, _) = split(&work.key);
    let job = job(cron, at);
    match write::create(&world.manager, Kind::Job, namespace, &job).await {
        Ok(written) => {
            world.expect(work, written.revision());
            tell(world, cron, "Normal", "SuccessfulCreate", &format!("Created job {}", written.name())).await;
        }
        // Made before a restart.
        Err(status) if status.code == 409 => {}
        Err(status) => return Err(status),
    }
    plan.status["lastScheduleTime"] = time::text(at).into();
    Ok(())
}

/// The Job of a moment; its name makes sure there is only one.
fn job(cron: &Value, at: Timestamp) -> Value {
    let template = &cron["spec"]["jobTemplate"];
    let mut meta = json!({"name": format!("{}-{}", text(cron, "name"), at.as_second() / 60), "ownerReferences": [controller_ref(Kind::CronJob, cron)]});
    for field in ["labels", "annotations"] {
        if let Some(value) = template["metadata"].get(field) {
            meta[field] = value.clone();
        }
    }
    meta["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"] = time::text(at).into();
    json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": meta, "spec": template["spec"]})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cron(spec: Value) -> Value {
        let mut tree = json!({"metadata": {"name": "c", "namespace": "d", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
                              "spec": {"schedule": "*/5 * * * *"}, "status": {}});
        for (key, value) in spec.as_object().into_iter().flatten() {
            tree["spec"][key] = value.clone();
        }
        tree
    }

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a moment")
    }

    fn job_of(name: &str, ended: Option<&str>) -> Value {
        let conditions: Vec<Value> = ended.into_iter().map(|kind| json!({"type": kind, "status": "True"})).collect();
        json!({"metadata": {"name": name, "uid": name}, "status": {"conditions": conditions, "startTime": name}})
    }

    #[test]
    fn a_job_is_made_when_due() {
        let plan = decide(&cron(json!({})), &[], at("2026-01-01T00:04:00Z"));
        assert_eq!(plan.start, None);
        assert!(plan.again.is_some_and(|wait| wait.as_secs() == 60));
        let plan = decide(&cron(json!({})), &[], at("2026-01-01T00:11:00Z"));
        assert_eq!(plan.start, Some(at("2026-01-01T00:10:00Z")));
        let late = cron(json!({"startingDeadlineSeconds": 30}));
        assert_eq!(decide(&late, &[], at("2026-01-01T00:11:00Z")).start, None);
        assert_eq!(decide(&cron(json!({"suspend": true})), &[], at("2026-01-01T00:11:00Z")).start, None);
        assert_eq!(job(&cron(json!({})), at("2026-01-01T00:10:00Z"))["metadata"]["name"], "c-29453770");
    }

    #[test]
    fn jobs_do_not_overlap_unless_they_may() {
        let now = at("2026-01-01T00:11:00Z");
        let running = [job_of("x", None)];
        assert!(decide(&cron(json!({})), &running, now).start.is_some());
        assert!(decide(&cron(json!({"concurrencyPolicy": "Forbid"})), &running, now).start.is_none());
        let plan = decide(&cron(json!({"concurrencyPolicy": "Replace"})), &running, now);
        assert_eq!((plan.start.is_some(), plan.delete.len()), (true, 1));
    }

    #[test]
    fn a_job_that_ended_is_told_once() {
        let mut known = cron(json!({}));
        known["status"]["active"] = json!([{"uid": "x"}]);
        let plan = decide(&known, &[job_of("x", Some("Failed"))], at("2026-01-01T00:01:00Z"));
        assert_eq!(plan.events, [("Normal", "SawCompletedJob", "Saw completed job: x, condition: Failed".to_owned())]);
        assert_eq!(plan.status.get("active"), None);
        assert_eq!(decide(&cron(json!({})), &[job_of("x", Some("Failed"))], at("2026-01-01T00:01:00Z")).events, []);
    }

    #[test]
    fn old_jobs_go() {
        let jobs: Vec<Value> = (1..=5).map(|n| job_of(&format!("j{n}"), Some("Complete"))).collect();
        let plan = decide(&cron(json!({})), &jobs, at("2026-01-01T00:01:00Z"));
        assert_eq!(plan.delete.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["j1", "j2"]);
    }
}
