//! Numbers that may be given as a share of a total.

use serde_json::Value;

/// How a fraction becomes a whole number.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Round {
    /// To the next higher one.
    Up,
    /// To the next lower one.
    Down,
}

/// A number, or a percentage of a total; `None` when it is neither.
pub fn of(value: &Value, total: i64, round: Round) -> Option<i64> {
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let percent: i64 = value.as_str()?.strip_suffix('%')?.parse().ok()?;
    let product = percent.checked_mul(total)?;
    Some(match round {
        Round::Up => product.div_euclid(100) + i64::from(product.rem_euclid(100) > 0),
        Round::Down => product.div_euclid(100),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn percentages_are_rounded_as_asked() {
        let table = [
            (json!(3), 10, Round::Up, Some(3)),
            (json!("25%"), 10, Round::Up, Some(3)),
            (json!("25%"), 10, Round::Down, Some(2)),
            (json!("100%"), 7, Round::Down, Some(7)),
            (json!("many"), 7, Round::Down, None),
            (Value::Null, 7, Round::Down, None),
        ];
        for (value, total, round, expected) in table {
            assert_eq!(of(&value, total, round), expected, "{value} of {total}");
        }
    }
}
