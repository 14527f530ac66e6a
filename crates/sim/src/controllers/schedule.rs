//! When a CronJob is due.

use std::time::Duration;

use jiff::Timestamp;

use crate::time;

/// A schedule in a time zone.
pub enum Schedule {
    /// Like a line of a crontab.
    Table(Box<cronexpr::Crontab>),
    /// Again and again after so long.
    Every(Duration),
}

/// Moments looked at before a schedule counts as long forgotten.
const MOST: usize = 100_000;

impl Schedule {
    /// Reads a schedule.
    pub fn parse(text: &str, zone: Option<&str>) -> Result<Self, String> {
        let (text, zone) = match text.strip_prefix("TZ=").or(text.strip_prefix("CRON_TZ=")) {
            Some(rest) => rest.split_once(' ').map(|(zone, rest)| (rest, Some(zone))).ok_or("missing schedule")?,
            None => (text, zone),
        };
        if let Some(length) = text.strip_prefix("@every ") {
            let length = atoll_meta::time::parse_duration(length)?;
            let length = Duration::try_from(length).map_err(|error| error.to_string())?;
            return Ok(Self::Every(length.max(Duration::from_secs(1))));
        }
        let line = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            line => line,
        };
        let line = format!("{} {}", line.replace('?', "*"), zone.unwrap_or("UTC"));
        cronexpr::parse_crontab(&line).map(|table| Self::Table(Box::new(table))).map_err(|error| error.to_string())
    }

    /// The first moment after another one.
    pub fn after(&self, at: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(length) => {
                let next = at.checked_add(*length).ok()?;
                Timestamp::from_second(next.as_second()).ok()
            }
            Self::Table(table) => table.find_next(cronexpr::MakeTimestamp(at)).ok().map(|zoned| zoned.timestamp()),
        }
    }

    /// The last moment in a span that ends now, and how many there were.
    pub fn last(&self, from: Timestamp, now: Timestamp) -> (Option<Timestamp>, usize) {
        let mut last = None;
        let mut count = 0;
        let mut at = from;
        while let Some(next) = self.after(at).filter(|next| *next <= now) {
            (last, at) = (Some(next), next);
            count += 1;
            if count >= MOST {
                break;
            }
        }
        (last, count)
    }

    /// How long until the next moment.
    pub fn wait(&self, now: Timestamp) -> Option<Duration> {
        self.after(now).map(|next| time::until(now, next) + Duration::from_millis(100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a moment")
    }

    #[test]
    fn schedules_know_their_next_moment() {
        let table = [
            ("*/5 * * * *", None, "2026-01-01T00:05:00Z"),
            ("@hourly", None, "2026-01-01T01:00:00Z"),
            ("@daily", None, "2026-01-02T00:00:00Z"),
            ("0 9 * * *", Some("Asia/Tokyo"), "2026-01-02T00:00:00Z"),
            ("TZ=Asia/Tokyo 0 10 * * *", None, "2026-01-01T01:00:00Z"),
            ("@every 90s", None, "2026-01-01T00:01:31Z"),
        ];
        for (text, zone, expected) in table {
            let schedule = Schedule::parse(text, zone).expect(text);
            assert_eq!(schedule.after(at("2026-01-01T00:00:01Z")), Some(at(expected)), "{text}");
        }
        assert!(Schedule::parse("nonsense", None).is_err());
    }

    #[test]
    fn missed_moments_are_counted() {
        let schedule = Schedule::parse("*/5 * * * *", None).expect("a schedule");
        let (last, count) = schedule.last(at("2026-01-01T00:00:00Z"), at("2026-01-01T00:16:00Z"));
        assert_eq!((last, count), (Some(at("2026-01-01T00:15:00Z")), 3));
    }
}
