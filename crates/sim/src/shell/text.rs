//! Small ways with text that commands share.

/// Text with `\n`, `\t` and the like carried out.
pub fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('\\') | None => out.push('\\'),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
        }
    }
    out
}

/// `printf`: `%s`, `%d` and `%%`, repeated while arguments are left.
pub fn format(pattern: &str, arguments: &[String]) -> String {
    let pattern = unescape(pattern);
    let mut out = String::new();
    let mut rest = arguments.iter();
    loop {
        let before = rest.len();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            match chars.next() {
                Some('%') | None => out.push('%'),
                Some('d') => out.push_str(rest.next().map_or("0", String::as_str)),
                Some(_) => out.push_str(rest.next().map_or("", String::as_str)),
            }
        }
        if rest.len() == 0 || rest.len() == before {
            return out;
        }
    }
}

/// `date`: a moment by a pattern of `%Y-%m-%d` and the like.
pub fn date(at: jiff::Timestamp, pattern: Option<&str>) -> String {
    let zoned = at.to_zoned(jiff::tz::TimeZone::UTC);
    match pattern {
        Some(pattern) => jiff::fmt::strtime::format(pattern, &zoned).unwrap_or_else(|_| pattern.to_owned()),
        None => zoned.strftime("%a %b %e %H:%M:%S UTC %Y").to_string(),
    }
}

/// How long `5`, `1.5`, `2m` or `infinity` is; `None` if endless.
pub fn seconds(text: &str) -> Result<Option<std::time::Duration>, ()> {
    if matches!(text, "infinity" | "inf") {
        return Ok(None);
    }
    let (number, factor) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        Some((at, 'd')) => (&text[..at], 86400.0),
        _ => (text, 1.0),
    };
    let value: f64 = number.parse().map_err(drop)?;
    std::time::Duration::try_from_secs_f64(value * factor).map(Some).map_err(drop)
}
