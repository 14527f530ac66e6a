//! Variations of objects, the same in every run.

use serde_json::Value;

/// A source of numbers that looks random.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    /// One of a list.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// A place and what may stand there; null removes what is there.
pub type Choice = (&'static str, Vec<Value>);

/// Makes some of these choices in an object, and sometimes removes something else.
pub fn vary(object: &Value, choices: &[Choice], dice: &mut Dice) -> Value {
    let mut varied = object.clone();
    for (pointer, values) in choices {
        if dice.below(2) == 0 {
            put(&mut varied, pointer, dice.pick(values).clone());
        }
    }
    if dice.below(4) == 0 {
        let mut places = Vec::new();
        walk(&varied, String::new(), &mut places);
        places.retain(|place| {
            !matches!(place.as_str(), "/apiVersion" | "/kind" | "/metadata" | "/metadata/name" | "/metadata/namespace")
        });
        if !places.is_empty() {
            let place = dice.pick(&places).clone();
            put(&mut varied, &place, Value::Null);
        }
    }
    varied
}

/// Puts something of another type somewhere.
pub fn spoil(object: &Value, dice: &mut Dice) -> Value {
    let mut spoilt = object.clone();
    let mut places = Vec::new();
    walk(&spoilt, String::new(), &mut places);
    places.retain(|place| place.starts_with("/spec") || place.starts_with("/status"));
    if places.is_empty() {
        return spoilt;
    }
    let place = dice.pick(&places).clone();
    let other = match spoilt.pointer(&place) {
        Some(Value::String(_)) => Value::from(5),
        Some(Value::Number(_)) => Value::from("many"),
        _ => Value::from(true),
    };
    put(&mut spoilt, &place, other);
    spoilt
}

/// All places inside objects; elements of lists stay.
fn walk(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let place = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                places.push(place.clone());
                walk(inner, place, places);
            }
        }
        Value::Array(list) => {
            for (index, inner) in list.iter().enumerate() {
                walk(inner, format!("{at}/{index}"), places);
            }
        }
        _ => {}
    }
}

/// Sets what is at a place, as far as the way there exists; null removes it.
pub fn put(object: &mut Value, pointer: &str, value: Value) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    let key = key.replace("~1", "/").replace("~0", "~");
    let Some(map) = object.pointer_mut(parent).and_then(Value::as_object_mut) else { return };
    if value.is_null() {
        map.remove(&key);
    } else {
        map.insert(key, value);
    }
}
