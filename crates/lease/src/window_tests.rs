#![allow(clippy::unwrap_used)]
use super::*;
use proptest::prelude::*;

fn window(start: &str, end: &str, days: &[&str]) -> TimeWindow {
    TimeWindow {
        start: start.into(),
        end: end.into(),
        days: days.iter().map(ToString::to_string).collect(),
        time_zone: String::new(),
    }
}

fn read(window: &TimeWindow) -> Window {
    Window::read(window, &TimeZone::UTC).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn windows_are_open_from_their_first_through_their_last_minute() {
    // 2026-01-05 is a Monday.
    for (start, end, days, now, open) in [
        ("09:00", "17:00", &[][..], "2026-01-05T12:00:00Z", true),
        ("09:00", "17:00", &[], "2026-01-05T20:00:00Z", false),
        ("10:00", "14:00", &[], "2026-01-05T10:00:00Z", true),
        ("10:00", "14:00", &[], "2026-01-05T14:00:59Z", true),
        ("10:00", "14:00", &[], "2026-01-05T14:01:00Z", false),
        ("10:00", "14:00", &[], "2026-01-05T09:00:00Z", false),
        ("10:00", "14:00", &[], "2026-01-05T15:00:00Z", false),
        ("22:00", "02:00", &[], "2026-01-05T22:00:00Z", true),
        ("22:00", "02:00", &[], "2026-01-05T23:00:00Z", true),
        ("22:00", "02:00", &[], "2026-01-05T01:00:00Z", true),
        ("22:00", "02:00", &[], "2026-01-05T02:00:00Z", true),
        ("22:00", "02:00", &[], "2026-01-05T12:00:00Z", false),
        ("08:00", "08:00", &[], "2026-01-05T08:00:30Z", true),
        ("08:00", "08:00", &[], "2026-01-05T08:01:00Z", false),
        ("08:01", "08:00", &[], "2026-01-05T03:00:00Z", true),
        ("00:00", "23:59", &["MONDAY", "tuesday"], "2026-01-05T12:00:00Z", true),
        ("00:00", "23:59", &["Monday"], "2026-01-10T12:00:00Z", false),
        // Unlike the original, the day is that on which the window begins.
        ("18:00", "08:00", &["friday"], "2026-01-10T07:00:00Z", true),
        ("18:00", "08:00", &["friday"], "2026-01-09T07:00:00Z", false),
        ("18:00", "08:00", &["friday"], "2026-01-09T18:00:00Z", true),
    ] {
        let windows = [read(&window(start, end, days))];
        assert_eq!(is_open(&windows, at(now)), open, "{start}-{end} {days:?} at {now}");
    }
    assert!(is_open(&[], at("2026-01-05T12:00:00Z")), "no windows: always");
}

#[test]
fn malformed_windows_say_what_is_wrong() {
    for text in ["10:0", "14:000", "1000", "14-00", "25:00", "14:60", "1a:00", "", "+1:00", "١٢:٠"] {
        let error = Window::read(&window(text, "12:00", &[]), &TimeZone::UTC).unwrap_err();
        assert_eq!(error, WindowError::Time { field: "start", text: text.into() });
        let error = Window::read(&window("12:00", text, &[]), &TimeZone::UTC).unwrap_err();
        assert!(error.to_string().contains("end"), "{error}");
    }
    let error = Window::read(&window("10:00", "12:00", &["Mon"]), &TimeZone::UTC).unwrap_err();
    assert!(error.to_string().contains("\"Mon\""), "{error}");
    let strange = TimeWindow { time_zone: "Moon/Base".into(), ..window("10:00", "12:00", &[]) };
    assert_eq!(Window::read(&strange, &TimeZone::UTC).unwrap_err(), WindowError::Zone("Moon/Base".into()));
}

#[test]
fn a_window_may_have_its_own_time_zone() {
    let shanghai = TimeWindow { time_zone: "Asia/Shanghai".into(), ..window("20:00", "07:59", &[]) };
    let windows = [read(&shanghai)];
    assert!(is_open(&windows, at("2026-01-05T12:00:00Z")));
    assert!(!is_open(&windows, at("2026-01-05T11:59:59Z")));
    assert_eq!(next_edge(&windows, at("2026-01-05T12:00:00Z")), Some(at("2026-01-06T00:00:00Z")));
}

#[test]
fn days_of_23_and_25_hours_have_their_windows_once() {
    let berlin = TimeWindow { time_zone: "Europe/Berlin".into(), ..window("02:30", "03:30", &[]) };
    let windows = [read(&berlin)];
    // 02:30 does not exist on 2026-03-29; the window opens when the clock has jumped.
    assert_eq!(next_edge(&windows, at("2026-03-29T00:00:00Z")), Some(at("2026-03-29T01:30:00Z")));
    // 02:30 exists twice on 2026-10-25; the window opens at the first.
    assert_eq!(next_edge(&windows, at("2026-10-25T00:00:00Z")), Some(at("2026-10-25T00:30:00Z")));
    assert_eq!(next_edge(&windows, at("2026-10-25T00:30:00Z")), Some(at("2026-10-25T02:31:00Z")));
}

#[test]
fn windows_that_touch_have_no_edge_between_them() {
    let windows = [read(&window("08:00", "11:59", &[])), read(&window("12:00", "17:00", &[]))];
    assert_eq!(next_edge(&windows, at("2026-01-05T09:00:00Z")), Some(at("2026-01-05T17:01:00Z")));
    assert_eq!(next_edge(&[read(&window("08:01", "08:00", &[]))], at("2026-01-05T09:00:00Z")), None);
    assert_eq!(next_edge(&[], at("2026-01-05T09:00:00Z")), None);
}

fn any_window() -> impl Strategy<Value = TimeWindow> {
    let zones = prop::sample::select(vec!["", "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe"]);
    let days = prop::sample::subsequence(
        vec!["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
        0..=7,
    );
    (0..24u8, 0..60u8, 0..24u8, 0..60u8, days, zones).prop_map(|(h, m, eh, em, days, zone)| TimeWindow {
        start: format!("{h:02}:{m:02}"),
        end: format!("{eh:02}:{em:02}"),
        days: days.into_iter().map(Into::into).collect(),
        time_zone: zone.into(),
    })
}

proptest! {
    #[test]
    fn nothing_changes_before_the_next_edge_and_everything_at_it(
        windows in prop::collection::vec(any_window(), 1..4),
        second in 1_760_000_000i64..1_800_000_000,
        parts in prop::collection::vec(0.0f64..1.0, 8),
    ) {
        let windows: Vec<Window> = windows.iter().map(read).collect();
        let now = Timestamp::from_second(second).unwrap();
        let open = is_open(&windows, now);
        let end = match next_edge(&windows, now) {
            Some(edge) => {
                prop_assert!(edge > now);
                prop_assert_ne!(is_open(&windows, edge), open);
                edge.as_second()
            }
            None => second + 8 * 86_400,
        };
        for part in parts {
            let between = second + ((end - second) as f64 * part) as i64;
            prop_assert_eq!(is_open(&windows, Timestamp::from_second(between.min(end - 1)).unwrap()), open);
        }
    }
}
