//! Pods get the number of their priority class.

use atoll_meta::{Key, Status};
use serde_json::Value;

use super::{Operation, Review, pod};

const GROUP: &str = "scheduling.k8s.io";

/// Computes the priority of pods, and keeps at most one default class.
pub async fn mutate(review: &Review<'_>, object: &mut Value) -> Result<(), Status> {
    if review.is(GROUP, "priorityclasses") {
        return one_default(review, object).await;
    }
    if pod::is_created(review) {
        return set(review, object).await;
    }
    if review.is("", "pods")
        && review.operation == Operation::Update
        && let Some(old) = review.old
    {
        for field in ["priority", "preemptionPolicy"] {
            // Clients that know nothing of these fields send the pod back without them.
            if object["spec"][field].is_null() && !old["spec"][field].is_null() {
                object["spec"][field] = old["spec"][field].clone();
            }
        }
    }
    Ok(())
}

async fn one_default(review: &Review<'_>, object: &Value) -> Result<(), Status> {
    if review.operation == Operation::Delete || object["globalDefault"] != true {
        return Ok(());
    }
    let classes = defaults(review).await?;
    match classes.iter().find(|class| class["metadata"]["name"] != *review.name) {
        None => Ok(()),
        Some(other) => {
            let name = other["metadata"]["name"].as_str().unwrap_or_default();
            let why = format!("PriorityClass {name} is already marked as default. Only one default can exist");
            Err(Status::forbidden(GROUP, "priorityclasses", &review.name, why))
        }
    }
}

/// Classes marked as default.
async fn defaults(review: &Review<'_>) -> Result<Vec<Value>, Status> {
    let snapshot = review.call.hub.snapshot(&review.call.instance).await?;
    let prefix = format!("priorityclasses.{GROUP}/");
    let classes = snapshot.range(&prefix, None).map(|(_, entry)| entry.object.tree(entry.modified));
    Ok(classes.filter(|class| class["globalDefault"] == true).collect())
}

async fn set(review: &Review<'_>, object: &mut Value) -> Result<(), Status> {
    let name = object["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let class = if name.is_empty() {
        // Of several defaults, which only a race can make, the lowest counts.
        defaults(review).await?.into_iter().min_by_key(|class| class["value"].as_i64().unwrap_or_default())
    } else {
        let key = Key::new(GROUP, "priorityclasses", "", &name);
        let entry = review.call.hub.read(&review.call.instance, key.as_str()).await?;
        let entry = entry.ok_or_else(|| refuse(review, &format!("no PriorityClass with name {name} was found")))?;
        Some(entry.object.tree(entry.modified))
    };
    let value = class.as_ref().and_then(|class| class["value"].as_i64()).unwrap_or_default();
    let policy = class.as_ref().and_then(|class| class["preemptionPolicy"].as_str()).unwrap_or("PreemptLowerPriority");
    if let Some(given) = object["spec"]["priority"].as_i64().filter(|given| *given != value) {
        return Err(refuse(
            review,
            &format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
            ),
        ));
    }
    if let Some(given) = object["spec"]["preemptionPolicy"].as_str().filter(|given| *given != policy) {
        return Err(refuse(
            review,
            &format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
            ),
        ));
    }
    if let (true, Some(class)) = (name.is_empty(), &class) {
        object["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
    }
    object["spec"]["priority"] = value.into();
    object["spec"]["preemptionPolicy"] = policy.into();
    Ok(())
}

fn refuse(review: &Review<'_>, why: &str) -> Status {
    Status::forbidden("", "pods", &review.name, why)
}
