//! Time as the API writes it: RFC 3339 in UTC, Go durations and the ages `kubectl get` shows.

use jiff::{SignedDuration, Timestamp};

/// Formats to whole seconds: `2026-01-02T03:04:05Z`.
pub fn format(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Formats with microseconds, as leases and events do: `2026-01-02T03:04:05.000006Z`.
pub fn format_micro(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Parses RFC 3339 with any offset and any fraction.
pub fn parse(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    // The parser below takes more of ISO 8601 than the API does.
    let shape = bytes.len() >= 20
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && bytes[10] == b'T'
        && bytes[13] == b':'
        && bytes[16] == b':';
    let zone = text.ends_with('Z') || matches!(text.get(text.len().checked_sub(6)?..)?.as_bytes(), [b'+' | b'-', ..]);
    if !shape || !zone || text.contains('[') {
        return None;
    }
    text.parse().ok()
}

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a Go duration such as `1h30m` or `500ms`.
pub fn parse_duration(text: &str) -> Result<SignedDuration, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(invalid());
        }
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
        let scale = scale.ok_or_else(|| format!("time: unknown unit {unit:?} in duration {text:?}"))?;
        let part = scaled(whole, fraction, scale).ok_or_else(invalid)?;
        total = total.checked_add(part).filter(|sum| *sum <= i128::from(i64::MAX)).ok_or_else(invalid)?;
        rest = tail;
    }
    let nanos = i64::try_from(total).map_err(|_| invalid())?;
    Ok(SignedDuration::from_nanos(if negative { -nanos } else { nanos }))
}

/// `whole.fraction` times `scale`, rounded down.
fn scaled(whole: &str, fraction: &str, scale: i128) -> Option<i128> {
    let units = if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()?.checked_mul(scale)? };
    // More digits than these are below a nanosecond in every unit.
    let fraction = &fraction[..fraction.len().min(18)];
    let parts = if fraction.is_empty() { 0 } else { fraction.parse::<i128>().ok()? };
    units.checked_add(parts * scale / 10i128.pow(fraction.len() as u32))
}

/// Formats as Go does: `1h30m0s`, `1.5s`, `500ms`, `0s`.
pub fn format_duration(duration: SignedDuration) -> String {
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let text = match nanos {
        0..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(nanos, 1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(nanos, 1_000_000)),
        _ => {
            let seconds = decimal(nanos % 60_000_000_000, 1_000_000_000);
            let minutes = nanos / 60_000_000_000;
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

/// `value / unit` as a decimal without trailing zeros; `unit` is a power of ten.
fn decimal(value: u128, unit: u128) -> String {
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    format!("{whole}.{}", format!("{rest:0width$}").trim_end_matches('0'))
}

/// How `kubectl get` shows an age: `90s`, `5m3s`, `3h`, `12d`, `2y30d`.
pub fn age(elapsed: SignedDuration) -> String {
    let seconds = elapsed.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let pair = |big: i64, big_unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{big}{big_unit}"),
        _ => format!("{big}{big_unit}{small}{small_unit}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 24 * 8 => pair(hours / 24, "d", hours % 24, "h"),
        _ if hours < 24 * 365 * 2 => format!("{}d", hours / 24),
        _ if hours < 24 * 365 * 8 => pair(hours / 24 / 365, "y", hours / 24 % 365, "d"),
        _ => format!("{}y", hours / 24 / 365),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        let at = parse("2026-01-02T05:04:05.000006+02:00").unwrap();
        assert_eq!(format(at), "2026-01-02T03:04:05Z");
        assert_eq!(format_micro(at), "2026-01-02T03:04:05.000006Z");
        for bad in ["", "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z", "now", "2026-01-02 03:04:05Z"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn durations_are_read_and_written_as_go_does() {
        for (text, nanos, canonical) in [
            ("1h30m", 5_400_000_000_000, "1h30m0s"),
            ("500ms", 500_000_000, "500ms"),
            ("1.5h", 5_400_000_000_000, "1h30m0s"),
            ("0.1s", 100_000_000, "100ms"),
            ("-2m", -120_000_000_000, "-2m0s"),
            ("0", 0, "0s"),
            ("1s500ms", 1_500_000_000, "1.5s"),
            ("15us", 15_000, "15µs"),
            (".5s", 500_000_000, "500ms"),
        ] {
            let duration = parse_duration(text).unwrap();
            assert_eq!(duration.as_nanos(), nanos, "{text}");
            assert_eq!(format_duration(duration), canonical);
        }
        for bad in ["", "1", "h", "1x", "1.2.3s", ".s", "-", "1h-1m", "99999999999999h"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_duration("3").unwrap_err(), "time: missing unit in duration \"3\"");
    }

    #[test]
    fn ages_get_coarser_as_they_grow() {
        let minute = 60;
        let hour = 60 * minute;
        let day = 24 * hour;
        for (seconds, shown) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (5 * minute + 3, "5m3s"),
            (5 * minute, "5m"),
            (179 * minute, "179m"),
            (3 * hour + minute, "3h1m"),
            (47 * hour, "47h"),
            (3 * day + hour, "3d1h"),
            (100 * day, "100d"),
            (3 * 365 * day + 2 * day, "3y2d"),
            (9 * 365 * day, "9y"),
        ] {
            assert_eq!(age(SignedDuration::from_secs(seconds)), shown);
        }
    }

    proptest! {
        #[test]
        fn a_written_duration_reads_back(nanos in any::<i64>().prop_filter("Go has no such value", |n| *n != i64::MIN)) {
            let duration = SignedDuration::from_nanos(nanos);
            prop_assert_eq!(parse_duration(&format_duration(duration)).unwrap(), duration);
        }

        #[test]
        fn no_text_makes_parsing_fail_hard(text in ".*") {
            let _ = parse_duration(&text);
            let _ = parse(&text);
        }
    }
}
