//! Amounts of resources that pods ask for and nodes have.

use std::collections::BTreeMap;

use atoll_meta::Quantity;
use serde::Deserialize;

/// Amounts by resource name, as objects write them.
pub type Named = BTreeMap<String, Amount>;

/// A quantity as text or number; what cannot be read counts as nothing.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    /// As objects usually write it.
    Text(String),
    /// As some people write it.
    Number(f64),
}

impl Amount {
    /// In units of the resource: thousandths of processors, bytes, pieces.
    fn units(&self, name: &str) -> i64 {
        match self {
            Self::Text(text) => match Quantity::parse(text) {
                Ok(quantity) if name == "cpu" => quantity.milli_value(),
                Ok(quantity) => quantity.value(),
                Err(_) => 0,
            },
            Self::Number(number) if name == "cpu" => (number * 1000.0) as i64,
            Self::Number(number) => *number as i64,
        }
    }
}

/// Amounts of resources.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Resources {
    /// Thousandths of processors.
    pub cpu: i64,
    /// Bytes of memory.
    pub memory: i64,
    /// Everything else, sorted by name.
    pub other: Vec<(Box<str>, i64)>,
}

impl Resources {
    /// From the amounts an object names.
    pub fn of(named: &Named) -> Self {
        let mut all = Self::default();
        for (name, amount) in named {
            let units = amount.units(name);
            match name.as_str() {
                "cpu" => all.cpu = units,
                "memory" => all.memory = units,
                _ => all.other.push((name.as_str().into(), units)),
            }
        }
        all
    }

    /// The amount of one resource.
    pub fn get(&self, name: &str) -> i64 {
        match name {
            "cpu" => self.cpu,
            "memory" => self.memory,
            _ => self.other.iter().find(|(own, _)| **own == *name).map_or(0, |(_, units)| *units),
        }
    }

    fn slot(&mut self, name: &str) -> &mut i64 {
        let at = match self.other.binary_search_by(|(own, _)| (**own).cmp(name)) {
            Ok(at) => at,
            Err(at) => {
                self.other.insert(at, (name.into(), 0));
                at
            }
        };
        &mut self.other[at].1
    }

    /// Adds amounts.
    pub fn add(&mut self, more: &Self) {
        self.cpu += more.cpu;
        self.memory += more.memory;
        for (name, units) in &more.other {
            *self.slot(name) += units;
        }
    }

    /// Takes amounts away.
    pub fn subtract(&mut self, less: &Self) {
        self.cpu -= less.cpu;
        self.memory -= less.memory;
        for (name, units) in &less.other {
            *self.slot(name) -= units;
        }
    }

    /// Raises every amount to at least another one.
    pub fn at_least(&mut self, floor: &Self) {
        self.cpu = self.cpu.max(floor.cpu);
        self.memory = self.memory.max(floor.memory);
        for (name, units) in &floor.other {
            let slot = self.slot(name);
            *slot = (*slot).max(*units);
        }
    }

    /// All amounts that are not zero, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        let basic = [("cpu", self.cpu), ("memory", self.memory)].into_iter();
        basic.chain(self.other.iter().map(|(name, units)| (&**name, *units))).filter(|(_, units)| *units != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: serde_json::Value) -> Resources {
        Resources::of(&serde_json::from_value(value).expect("a map of amounts"))
    }

    #[test]
    fn amounts_add_up_and_go_away_again() {
        let mut sum = of(json!({"cpu": "100m", "memory": "1Ki", "example.com/gpu": "2"}));
        let more = of(json!({"cpu": 1, "ephemeral-storage": "1k"}));
        sum.add(&more);
        assert_eq!(
            (sum.cpu, sum.memory, sum.get("example.com/gpu"), sum.get("ephemeral-storage")),
            (1100, 1024, 2, 1000)
        );
        sum.subtract(&more);
        assert_eq!(sum.iter().collect::<Vec<_>>(), [("cpu", 100), ("memory", 1024), ("example.com/gpu", 2)]);
        sum.at_least(&of(json!({"cpu": "50m", "memory": "2Ki"})));
        assert_eq!((sum.cpu, sum.memory), (100, 2048));
    }
}
