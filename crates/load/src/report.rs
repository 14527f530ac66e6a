//! Figures, and a table of them with ratios.

use std::fmt::Write as _;

/// What was measured, in the order it was.
#[derive(Default)]
pub struct Figures {
    list: Vec<(String, f64)>,
}

impl Figures {
    /// Adds a figure.
    pub fn note(&mut self, name: &str, value: f64) {
        eprintln!("  {name}: {}", shown(value));
        self.list.push((name.to_owned(), value));
    }

    /// Adds the middle and the tail of many times.
    pub fn times(&mut self, name: &str, mut times: Vec<f64>) {
        times.sort_by(f64::total_cmp);
        self.note(&format!("{name}, p50 ms"), at(&times, 0.5));
        self.note(&format!("{name}, p99 ms"), at(&times, 0.99));
    }

    fn get(&self, name: &str) -> Option<f64> {
        self.list.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

fn at(sorted: &[f64], part: f64) -> f64 {
    let place = ((sorted.len() as f64 * part).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

fn shown(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// A Markdown table; with two sides, a last column says how much of the second the first is.
pub fn table(sides: &[(&str, &Figures)]) -> String {
    let mut text = String::from("| |");
    for (name, _) in sides {
        let _ = write!(text, " {name} |");
    }
    let both = sides.len() == 2;
    text.push_str(if both { " ratio |\n| --- | --- | --- | --- |\n" } else { "\n| --- | --- |\n" });
    let Some((_, first)) = sides.first() else { return text };
    for (name, _) in &first.list {
        let values: Vec<Option<f64>> = sides.iter().map(|(_, figures)| figures.get(name)).collect();
        let _ = write!(text, "| {name} |");
        for value in &values {
            let _ = write!(text, " {} |", value.map_or_else(|| "–".into(), shown));
        }
        if let (true, Some(Some(one)), Some(Some(other))) = (both, values.first(), values.get(1)) {
            let _ = write!(text, " {} |", ratio(*one, *other));
        }
        text.push('\n');
    }
    text
}

/// `5.1×` when more, `1/5.1` when less.
fn ratio(one: f64, other: f64) -> String {
    if one >= other { format!("{:.1}×", one / other) } else { format!("1/{:.1}", other / one) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_two_says_how_they_compare() {
        let (mut one, mut other) = (Figures::default(), Figures::default());
        one.note("gets", 100.0);
        other.note("gets", 20.0);
        one.times("get", (1..=100).map(f64::from).collect());
        other.times("get", (1..=100).map(|time| f64::from(time) * 2.0).collect());
        let text = table(&[("atoll", &one), ("real", &other)]);
        assert!(text.contains("| gets | 100 | 20.0 | 5.0× |"), "{text}");
        assert!(text.contains("| get, p50 ms | 50.0 | 100 | 1/2.0 |"), "{text}");
        assert!(text.contains("| get, p99 ms | 99.0 | 198 | 1/2.0 |"), "{text}");
    }
}
