//! Sets of indexes of a Job, written as `0-3,5,7-9`.

use std::collections::BTreeSet;

/// Reads a set; what cannot be read is left out.
pub fn parse(text: &str) -> BTreeSet<i64> {
    let mut all = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(low), Ok(high)) = (low.parse::<i64>(), high.parse::<i64>()) {
            all.extend(low..=high);
        }
    }
    all
}

/// Writes a set; runs of three and more become a range.
pub fn text(all: &BTreeSet<i64>) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut numbers = all.iter().copied().peekable();
    while let Some(first) = numbers.next() {
        let mut last = first;
        while numbers.peek() == Some(&(last + 1)) {
            last += 1;
            numbers.next();
        }
        match last - first {
            0 => parts.push(first.to_string()),
            1 => parts.push(format!("{first},{last}")),
            _ => parts.push(format!("{first}-{last}")),
        }
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_written_as_they_are_read() {
        for written in ["", "0", "0,1", "0-2", "0-3,5,7-9", "1,3,5"] {
            assert_eq!(text(&parse(written)), written);
        }
        assert_eq!(text(&parse("2,1,x,0")), "0-2");
    }
}
