//! Reading cron schedules: five fields or a word such as `@daily`.

/// The bounds of a field and the names its numbers have.
struct Bounds {
    low: u32,
    high: u32,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [Bounds; 5] = [
    Bounds { low: 0, high: 59, names: &[] },
    Bounds { low: 0, high: 23, names: &[] },
    Bounds { low: 1, high: 31, names: &[] },
    Bounds { low: 1, high: 12, names: MONTHS },
    Bounds { low: 0, high: 6, names: DAYS },
];

/// Says what is wrong with a schedule.
pub(super) fn parse(schedule: &str) -> Result<(), String> {
    let mut rest = schedule.trim();
    if rest.starts_with("TZ=") || rest.starts_with("CRON_TZ=") {
        rest = rest.split_once(' ').map_or("", |(_, rest)| rest.trim());
    }
    if rest.is_empty() {
        return Err("empty spec string".to_owned());
    }
    if rest.starts_with('@') {
        return word(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    for (text, bounds) in fields.iter().zip(&FIELDS) {
        for part in text.split(',').filter(|part| !part.is_empty()) {
            range(part, bounds)?;
        }
    }
    Ok(())
}

fn word(text: &str) -> Result<(), String> {
    match text {
        "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly" => Ok(()),
        _ => match text.strip_prefix("@every ") {
            Some(every) => match atoll_meta::time::parse_duration(every) {
                Ok(_) => Ok(()),
                Err(fault) => Err(format!("failed to parse duration {text}: {fault}")),
            },
            None => Err(format!("unrecognized descriptor: {text}")),
        },
    }
}

/// `number | number "-" number [ "/" number ]`, or `*`.
fn range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let steps: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = steps[0].split('-').collect();
    let (start, mut end) = if matches!(ends[0], "*" | "?") {
        (bounds.low, bounds.high)
    } else {
        let start = number(ends[0], bounds.names, bounds.low)?;
        match ends.as_slice() {
            [_] => (start, start),
            [_, end] => (start, number(end, bounds.names, bounds.low)?),
            _ => return Err(format!("too many hyphens: {text}")),
        }
    };
    let step = match steps.as_slice() {
        [_] => 1,
        [_, step] => {
            if ends.len() == 1 {
                end = bounds.high;
            }
            number(step, &[], 0)?
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < bounds.low {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", bounds.low));
    }
    if end > bounds.high {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", bounds.high));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn number(text: &str, names: &[&str], first: u32) -> Result<u32, String> {
    if let Some(index) = names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        return Ok(first + u32::try_from(index).unwrap_or(0));
    }
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        Err(_) => Err(format!("failed to parse int from {text}: strconv.Atoi: parsing \"{text}\": invalid syntax")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_told_good_from_bad() {
        for good in ["* * * * *", "*/5 0-6 1,15 jan-mar MON", "@daily", "@every 1h30m", "0 0 ? * 0"] {
            assert_eq!(parse(good), Ok(()), "{good}");
        }
        let bad = [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("@often", "unrecognized descriptor: @often"),
        ];
        for (schedule, fault) in bad {
            assert_eq!(parse(schedule), Err(fault.to_owned()));
        }
    }
}
