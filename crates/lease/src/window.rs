//! Times of day on some days of the week, in a time zone.

use atoll_api::kubeocean::TimeWindow;
use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _, Zoned};

/// How far ahead edges are looked for: a week, and a day for windows over midnight.
const AHEAD_DAYS: i32 = 9;

/// Why a window cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum WindowError {
    /// A time is not HH:MM.
    #[error("invalid {field} time {text:?}: expected HH:MM between 00:00 and 23:59")]
    Time {
        /// `start` or `end`.
        field: &'static str,
        /// What was given.
        text: String,
    },
    /// A day is not an English name.
    #[error("invalid day {0:?}: expected Monday, Tuesday, Wednesday, Thursday, Friday, Saturday or Sunday")]
    Day(String),
    /// The zone is unknown.
    #[error("unknown time zone {0:?}")]
    Zone(String),
}

/// A window that was understood: from the start minute through the end minute.
#[derive(Clone, Debug)]
pub struct Window {
    start: Time,
    end: Time,
    /// The days it begins on; all when empty.
    days: Vec<Weekday>,
    zone: TimeZone,
}

impl Window {
    /// Reads a window; `zone` is that of windows that name none.
    pub fn read(window: &TimeWindow, zone: &TimeZone) -> Result<Self, WindowError> {
        let start = time("start", &window.start)?;
        let end = time("end", &window.end)?;
        let days = window.days.iter().map(|text| day(text)).collect::<Result<_, _>>()?;
        let zone = if window.time_zone.is_empty() {
            zone.clone()
        } else {
            TimeZone::get(&window.time_zone).map_err(|_| WindowError::Zone(window.time_zone.clone()))?
        };
        Ok(Self { start, end, days, zone })
    }

    /// When the window that begins on this date opens and closes.
    ///
    /// The end minute belongs to the window; an end before the start is on the next day, and
    /// the day of the week is that of the start.
    fn on(&self, date: Date) -> Option<(Timestamp, Timestamp)> {
        if !self.days.is_empty() && !self.days.contains(&date.weekday()) {
            return None;
        }
        let last = if self.end < self.start { date.tomorrow().ok()? } else { date };
        let opens = zoned(date, self.start, &self.zone)?.timestamp();
        let end = last.to_datetime(self.end).checked_add(1.minute()).ok()?;
        let closes = self.zone.to_zoned(end).ok()?.timestamp();
        Some((opens, closes))
    }

    fn today(&self, now: Timestamp) -> Date {
        now.to_zoned(self.zone.clone()).date()
    }

    /// Whether it is open.
    pub fn is_open(&self, now: Timestamp) -> bool {
        let today = self.today(now);
        let dates = [today.yesterday().ok(), Some(today)];
        dates.into_iter().flatten().filter_map(|date| self.on(date)).any(|(opens, closes)| opens <= now && now < closes)
    }

    /// Its edges after `now`, in no order.
    fn edges(&self, now: Timestamp) -> Vec<Timestamp> {
        let today = self.today(now);
        let dates = (-1..=AHEAD_DAYS).filter_map(|offset| today.checked_add(offset.days()).ok());
        dates
            .filter_map(|date| self.on(date))
            .flat_map(|(opens, closes)| [opens, closes])
            .filter(|edge| *edge > now)
            .collect()
    }
}

fn zoned(date: Date, time: Time, zone: &TimeZone) -> Option<Zoned> {
    zone.to_zoned(date.to_datetime(time)).ok()
}

/// Whether any window is open; no windows at all means always.
pub fn is_open(windows: &[Window], now: Timestamp) -> bool {
    windows.is_empty() || windows.iter().any(|window| window.is_open(now))
}

/// When the windows next open or close as a whole; `None` if that never happens.
pub fn next_edge(windows: &[Window], now: Timestamp) -> Option<Timestamp> {
    let open = is_open(windows, now);
    let mut edges: Vec<Timestamp> = windows.iter().flat_map(|window| window.edges(now)).collect();
    edges.sort();
    edges.into_iter().find(|edge| is_open(windows, *edge) != open)
}

fn time(field: &'static str, text: &str) -> Result<Time, WindowError> {
    let wrong = || WindowError::Time { field, text: text.to_owned() };
    let bytes = text.as_bytes();
    if bytes.len() != 5 || bytes[2] != b':' {
        return Err(wrong());
    }
    let number = |high: u8, low: u8| {
        (high.is_ascii_digit() && low.is_ascii_digit()).then(|| ((high - b'0') * 10 + low - b'0') as i8)
    };
    let hour = number(bytes[0], bytes[1]).ok_or_else(wrong)?;
    let minute = number(bytes[3], bytes[4]).ok_or_else(wrong)?;
    Time::new(hour, minute, 0, 0).map_err(|_| wrong())
}

fn day(text: &str) -> Result<Weekday, WindowError> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "monday" => Weekday::Monday,
        "tuesday" => Weekday::Tuesday,
        "wednesday" => Weekday::Wednesday,
        "thursday" => Weekday::Thursday,
        "friday" => Weekday::Friday,
        "saturday" => Weekday::Saturday,
        "sunday" => Weekday::Sunday,
        _ => return Err(WindowError::Day(text.to_owned())),
    })
}

/// How long from `now` until `then`, never negative.
pub(crate) fn until(now: Timestamp, then: Timestamp) -> SignedDuration {
    then.duration_since(now).max(SignedDuration::ZERO)
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
