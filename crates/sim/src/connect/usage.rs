//! What containers and nodes use: believable numbers that change slowly.

use atoll_meta::Quantity;
use jiff::Timestamp;
use serde_json::Value;

use crate::kubelet::Wishes;

/// Processors in nanocores and memory in bytes.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// Nanocores.
    pub cpu: i64,
    /// Bytes.
    pub memory: i64,
}

impl Usage {
    /// Adds another one.
    pub fn add(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.memory += other.memory;
    }

    /// As the metrics API writes it.
    pub fn value(self) -> Value {
        serde_json::json!({"cpu": format!("{}n", self.cpu), "memory": format!("{}Ki", self.memory / 1024)})
    }
}

fn quantity(value: &Value) -> Option<Quantity> {
    value.as_str().and_then(|text| Quantity::parse(text).ok())
}

/// A number between 0 and 100 that stays for half a minute.
fn mood(seed: &str, now: Timestamp) -> i64 {
    let mut state: u32 = 0x811c_9dc5;
    let moment = now.as_second() / 30;
    for byte in seed.bytes().chain(moment.to_le_bytes()) {
        state = (state ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    i64::from(state % 101)
}

/// What a container uses: what its pod's annotations say, or a good part of what it asks for.
pub fn of_container(pod: &Value, container: &Value, now: Timestamp) -> Usage {
    let wishes = Wishes::of(pod);
    let seed = format!("{}{}", pod["metadata"]["uid"], container["name"]);
    let mood = mood(&seed, now);
    let asked = &container["resources"]["requests"];
    let wanted = |text: &Option<String>| text.as_deref().and_then(|text| Quantity::parse(text).ok());
    let cpu = match (wanted(&wishes.cpu), quantity(&asked["cpu"])) {
        (Some(said), _) => said.milli_value() * 1_000_000,
        (None, Some(asked)) => asked.milli_value() * (200_000 + mood * 4_000),
        (None, None) => 1_000_000 + mood * 20_000,
    };
    let memory = match (wanted(&wishes.memory), quantity(&asked["memory"])) {
        (Some(said), _) => said.value(),
        (None, Some(asked)) => asked.value() / 100 * (40 + mood / 5),
        (None, None) => (8 + mood / 20) * 1024 * 1024,
    };
    Usage { cpu, memory }
}

/// What a node uses besides its pods.
pub fn of_system(node: &str, now: Timestamp) -> Usage {
    Usage { cpu: 40_000_000 + mood(node, now) * 200_000, memory: 400 * 1024 * 1024 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn usage_is_what_was_asked_or_said() {
        let now = Timestamp::UNIX_EPOCH;
        let container = json!({"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}}});
        let used = of_container(&json!({"metadata": {"uid": "u"}}), &container, now);
        assert!((20_000_000..=60_000_000).contains(&used.cpu), "{used:?}");
        assert!((40..=60).contains(&(used.memory / 1024 / 1024)), "{used:?}");
        let said = json!({"metadata": {"annotations": {"sim.atoll.io/cpu": "250m", "sim.atoll.io/memory": "1Gi"}}});
        assert_eq!(of_container(&said, &container, now), Usage { cpu: 250_000_000, memory: 1 << 30 });
    }
}
