//! The library `os`, of which scripts get the time and nothing else.

use std::time::{SystemTime, UNIX_EPOCH};

use mlua::{Error, Lua, LuaString, MultiValue, Result, Table, Value};

const DAY: i64 = 86_400;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Makes the library.
pub fn module(lua: &Lua) -> Result<Table> {
    let os = lua.create_table()?;
    os.raw_set("time", lua.create_function(time)?)?;
    os.raw_set("date", lua.create_function(date)?)?;
    Ok(os)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Seconds since 1970, now or at a moment that a table says.
fn time(_: &Lua, args: MultiValue) -> Result<f64> {
    let table = match args.front() {
        None => return Ok(now() as f64),
        Some(Value::Table(table)) => table,
        Some(other) => return Err(Error::runtime(format!("table expected, got {}", other.type_name()))),
    };
    let field = |name: &str, missing: i64| -> Result<i64> {
        // Bounded, so that nothing overflows.
        Ok(match table.raw_get::<Value>(name)? {
            Value::Integer(number) => number.clamp(-1_000_000_000, 1_000_000_000),
            Value::Number(number) => number.clamp(-1e9, 1e9) as i64,
            _ => missing,
        })
    };
    let days = days_before(field("year", -1)?, field("month", -1)?) + field("day", -1)? - 1;
    Ok((days * DAY + field("hour", 12)? * 3600 + field("min", 0)? * 60 + field("sec", 0)?) as f64)
}

/// The days from 1970 to the first of a month; months beyond the twelfth are those of later years.
fn days_before(year: i64, month: i64) -> i64 {
    // Years that begin in March end with the day that is sometimes there.
    let months = year * 12 + month - 3;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12));
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leaps + (153 * month + 2) / 5 - 719_468
}

/// The year and the month of a day since 1970; the other way of [`days_before`].
fn month_of(days: i64) -> (i64, i64) {
    // From the first of March of the year 0; four centuries are always as long.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let months = (era * 400 + year) * 12 + month + 2;
    (months.div_euclid(12), months.rem_euclid(12) + 1)
}

/// A moment of the calendar.
struct Moment {
    year: i64,
    month: i64,
    day: i64,
    /// Since Sunday.
    weekday: i64,
    /// Since the first of January, from 1.
    yearday: i64,
    hour: i64,
    minute: i64,
    second: i64,
}

impl Moment {
    fn at(seconds: i64) -> Self {
        let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let (year, month) = month_of(days);
        Moment {
            year,
            month,
            day: days - days_before(year, month) + 1,
            weekday: (days + 4).rem_euclid(7),
            yearday: days - days_before(year, 1) + 1,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }

    fn name(list: &'static [&'static str], at: i64) -> &'static str {
        usize::try_from(at).ok().and_then(|at| list.get(at)).copied().unwrap_or_default()
    }

    /// What a letter after a percent sign stands for.
    fn letter(&self, letter: char) -> Option<String> {
        let Moment { year, month, day, weekday, hour, minute, second, .. } = self;
        let (month_name, day_name) = (Self::name(&MONTHS, month - 1), Self::name(&DAYS, *weekday));
        let half = if *hour < 12 { ["AM", "am"] } else { ["PM", "pm"] };
        let short = year.rem_euclid(100);
        Some(match letter {
            'a' => day_name[..3].to_owned(),
            'A' => day_name.to_owned(),
            'b' => month_name[..3].to_owned(),
            'B' => month_name.to_owned(),
            'c' => format!("{day:02} {} {short:02} {hour:02}:{minute:02} UTC", &month_name[..3]),
            'd' => format!("{day:02}"),
            'F' => format!("{year:04}-{month:02}-{day:02}"),
            'H' => format!("{hour:02}"),
            'I' => format!("{:02}", (hour + 11) % 12 + 1),
            'm' => format!("{month:02}"),
            'M' => format!("{minute:02}"),
            'p' => half[0].to_owned(),
            'P' => half[1].to_owned(),
            'S' => format!("{second:02}"),
            'w' => weekday.to_string(),
            'X' => format!("{hour:02}:{minute:02}:{second:02}"),
            'y' => format!("{short:02}"),
            'Y' => format!("{year:04}"),
            'z' => "+0000".to_owned(),
            'Z' => "UTC".to_owned(),
            '%' => "%".to_owned(),
            _ => return None,
        })
    }

    fn format(&self, format: &str) -> String {
        let mut text = String::new();
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                text.push(letter);
                continue;
            }
            let Some(letter) = letters.next() else { break };
            match self.letter(letter) {
                Some(part) => text.push_str(&part),
                None => text.extend(['%', letter]),
            }
        }
        text
    }

    fn table(&self, lua: &Lua) -> Result<Table> {
        let table = lua.create_table()?;
        let fields = [
            ("year", self.year),
            ("month", self.month),
            ("day", self.day),
            ("hour", self.hour),
            ("min", self.minute),
            ("sec", self.second),
            ("wday", self.weekday + 1),
            ("yday", self.yearday),
        ];
        for (name, value) in fields {
            table.raw_set(name, value as f64)?;
        }
        table.raw_set("isdst", false)?;
        Ok(table)
    }
}

/// A moment as text or table, always in UTC: an answer must not depend on where it is given.
fn date(lua: &Lua, (format, at): (Option<LuaString>, Option<f64>)) -> Result<Value> {
    let format = format.map_or_else(|| "%c".to_owned(), |format| format.to_string_lossy());
    let format = format.trim_start_matches('!');
    // Some thousand years in either direction.
    let moment = Moment::at(at.map_or_else(now, |at| at.clamp(-1e11, 1e11) as i64));
    match format.starts_with("*t") {
        true => moment.table(lua).map(Value::Table),
        false => Ok(Value::String(lua.create_string(moment.format(format))?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 4 001"),
            (-1, "1969-12-31 23:59:59 3 365"),
            (-365 * DAY, "1969-01-01 00:00:00 3 001"),
            (-366 * DAY, "1968-12-31 00:00:00 2 366"),
            (-671 * DAY, "1968-03-01 00:00:00 5 061"),
            (-672 * DAY, "1968-02-29 00:00:00 4 060"),
            (-731 * DAY, "1968-01-01 00:00:00 1 001"),
            (-732 * DAY, "1967-12-31 00:00:00 0 365"),
            (-25_509 * DAY, "1900-02-28 00:00:00 3 059"),
            (-25_508 * DAY, "1900-03-01 00:00:00 4 060"),
            (-62_135_596_800, "0001-01-01 00:00:00 1 001"),
            (951_782_400, "2000-02-29 00:00:00 2 060"),
            (1_700_000_000, "2023-11-14 22:13:20 2 318"),
            (4_102_444_799, "2099-12-31 23:59:59 4 365"),
        ] {
            let moment = Moment::at(seconds);
            assert_eq!(format!("{} {:03}", moment.format("%F %X %w"), moment.yearday), text);
        }
    }

    #[test]
    fn one_day_follows_the_other() {
        // Counted by hand from the first of the year -2000 to the last of the year 3999.
        let (mut days, mut weekday) = (-1_450_013, 6);
        for year in -2000..4000 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            let mut yearday = 1;
            for (month, length) in (1..).zip(lengths) {
                for day in 1..=length {
                    let found = Moment::at(days * DAY);
                    let found = (found.year, found.month, found.day, found.weekday, found.yearday);
                    assert_eq!(found, (year, month, day, weekday, yearday), "day {days}");
                    (days, weekday, yearday) = (days + 1, (weekday + 1) % 7, yearday + 1);
                }
            }
        }
        assert_eq!(days, days_before(4000, 1));
    }
}
