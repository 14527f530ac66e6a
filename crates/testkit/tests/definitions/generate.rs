//! Objects of a schema: most are right, some are wrong in one place or another.

use serde_json::{Map, Value, json};

/// Numbers that look random and are the same in every run.
pub struct Dice(u64);

impl Dice {
    /// Dice that begin with this number.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll()).unwrap_or_default() % end.max(1)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.roll() % 100 < percent
    }
}

/// Makes objects of one schema.
pub struct Maker {
    /// The dice.
    pub dice: Dice,
    /// How many places in a hundred are wrong.
    pub wrong: u64,
}

impl Maker {
    /// An object of the schema of a whole resource.
    pub fn object(&mut self, schema: &Value, api_version: &str, kind: &str, name: &str) -> Value {
        let mut object = self.properties(schema, 0);
        object.insert("apiVersion".into(), api_version.into());
        object.insert("kind".into(), kind.into());
        object.insert("metadata".into(), json!({"name": name}));
        object.into()
    }

    fn properties(&mut self, schema: &Value, depth: usize) -> Map<String, Value> {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut map = Map::new();
        for (name, own) in schema["properties"].as_object().into_iter().flatten() {
            if depth == 0 && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let needed = required.contains(&name.as_str());
            let often = if depth == 0 { 80 } else { 60 / depth as u64 };
            let there = if needed { !self.mistake() } else { self.dice.chance(often) };
            if there {
                map.insert(name.clone(), self.value(own, depth + 1));
            }
        }
        if schema["additionalProperties"].is_object() {
            for number in 0..self.dice.below(3) {
                map.insert(format!("key{number}"), self.value(&schema["additionalProperties"], depth + 1));
            }
        }
        if schema["x-kubernetes-preserve-unknown-fields"] == true || self.mistake() {
            map.insert("unknownField".into(), json!({"a": 1}));
        }
        map
    }

    fn mistake(&mut self) -> bool {
        self.dice.chance(self.wrong)
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if self.mistake() {
            let wrong =
                [Value::Null, json!("wrong"), json!(-1), json!(1.5), json!(true), json!([]), json!({}), json!("")];
            return wrong[self.dice.below(wrong.len())].clone();
        }
        if let Some(list) = schema["enum"].as_array().filter(|list| !list.is_empty()) {
            return list[self.dice.below(list.len())].clone();
        }
        if schema["x-kubernetes-int-or-string"] == true {
            return if self.dice.chance(50) { json!(self.dice.below(9)) } else { json!("10%") };
        }
        match schema["type"].as_str() {
            Some("object") => self.properties(schema, depth).into(),
            Some("array") => self.list(schema, depth),
            Some("string") => self.text(schema).into(),
            Some("integer") => json!(self.number(schema)),
            Some("number") => json!(self.number(schema) as f64 + 0.5),
            Some("boolean") => json!(self.dice.chance(50)),
            _ => json!({"free": self.dice.below(9)}),
        }
    }

    fn list(&mut self, schema: &Value, depth: usize) -> Value {
        let least = schema["minItems"].as_u64().unwrap_or_default() as usize;
        let more = if depth > 6 { 1 } else { 3 };
        let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX) as usize;
        let count = (least + self.dice.below(more)).min(most);
        let mut list: Vec<Value> = (0..count).map(|_| self.value(&schema["items"], depth + 1)).collect();
        if self.mistake() && !list.is_empty() {
            list.push(list[0].clone());
        }
        list.into()
    }

    fn number(&mut self, schema: &Value) -> i64 {
        let least = schema["minimum"].as_f64().map_or(0, |least| least as i64);
        let most = schema["maximum"].as_f64().map_or(least + 100, |most| most as i64);
        let span = usize::try_from(most.saturating_sub(least)).unwrap_or_default().min(1000);
        least + i64::try_from(self.dice.below(span + 1)).unwrap_or_default()
    }

    fn text(&mut self, schema: &Value) -> String {
        let fitting = match schema["format"].as_str() {
            Some("date-time") => ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05+01:00"],
            Some("byte") => ["aGVsbG8=", "eA=="],
            Some("duration") => ["10s", "1h0m0s"],
            Some("uri") => ["https://example.com/", "http://a.b/c"],
            _ => ["plain", "a-b.c"],
        };
        let pattern = schema["pattern"].as_str().and_then(|pattern| regex::Regex::new(pattern).ok());
        let candidates =
            ["plain", "a", "1", "10s", "5m", "example.com", "v1", "0 0 * * *", "100Mi", "A_b", "https://x", ""];
        let long = "x".repeat(schema["minLength"].as_u64().unwrap_or_default().max(1) as usize);
        match pattern {
            Some(pattern) => {
                let fits: Vec<&str> = candidates.into_iter().filter(|text| pattern.is_match(text)).collect();
                if fits.is_empty() { "plain".into() } else { fits[self.dice.below(fits.len())].to_owned() }
            }
            None if schema["minLength"].as_u64().is_some_and(|least| least > 5) => long,
            None => fitting[self.dice.below(2)].to_owned(),
        }
    }
}
