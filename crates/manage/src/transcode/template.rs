//! Path templates of google.api.http: `/a/{b}/{c=d/*}/**:verb`.

/// One segment of a template.
#[derive(Clone, Debug, PartialEq)]
enum Segment {
    Literal(String),
    /// `*`: exactly one segment.
    One,
    /// `**`: any number of segments, only at the end.
    Rest,
}

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    segments: Vec<Segment>,
    /// Field path, first segment and number of segments it binds (`usize::MAX`: all the rest).
    variables: Vec<(String, usize, usize)>,
    verb: Option<String>,
}

/// How well a template fits: literal segments before variable ones, from left to right.
pub type Rank = Vec<u8>;

impl Template {
    /// Parses a template; `None` when it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('/')?;
        let (rest, verb) = match rest.rsplit_once(':') {
            Some((rest, verb)) if !verb.contains(['/', '}']) => (rest, Some(verb.to_owned())),
            _ => (rest, None),
        };
        let mut template = Self { segments: Vec::new(), variables: Vec::new(), verb };
        for part in split(rest)? {
            match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                Some(variable) => {
                    let (field, pattern) = variable.split_once('=').unwrap_or((variable, "*"));
                    let start = template.segments.len();
                    for inner in pattern.split('/') {
                        template.segments.push(segment(inner)?);
                    }
                    let open = template.segments.last() == Some(&Segment::Rest);
                    let count = if open { usize::MAX } else { template.segments.len() - start };
                    template.variables.push((field.to_owned(), start, count));
                }
                None => template.segments.push(segment(part)?),
            }
        }
        let rest_inside = template.segments.iter().rev().skip(1).any(|segment| *segment == Segment::Rest);
        (!rest_inside).then_some(template)
    }

    /// The variables of a path that fits, decoded, and how well it fits.
    pub fn fit(&self, path: &str) -> Option<(Vec<(&str, String)>, Rank)> {
        let path = path.strip_prefix('/')?;
        let path = match &self.verb {
            Some(verb) => path.strip_suffix(verb.as_str())?.strip_suffix(':')?,
            None => path,
        };
        let parts: Vec<&str> = path.split('/').collect();
        let open = self.segments.last() == Some(&Segment::Rest);
        let fixed = self.segments.len() - usize::from(open);
        if parts.len() < fixed || (!open && parts.len() != fixed) {
            return None;
        }
        let mut rank = vec![u8::from(self.verb.is_some())];
        for (segment, part) in self.segments.iter().zip(&parts) {
            match segment {
                Segment::Literal(own) if *own == decode(part)? => rank.push(2),
                Segment::Literal(_) => return None,
                Segment::One if part.is_empty() => return None,
                Segment::One => rank.push(1),
                Segment::Rest => rank.push(0),
            }
        }
        let mut found = Vec::with_capacity(self.variables.len());
        for (field, start, count) in &self.variables {
            let end = start.saturating_add(*count).min(parts.len());
            let values: Option<Vec<String>> = parts[*start..end].iter().map(|part| decode(part)).collect();
            found.push((field.as_str(), values?.join("/")));
        }
        Some((found, rank))
    }

    /// The fields that come from the path.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|(field, ..)| field.as_str())
    }
}

/// Splits at slashes that are not inside braces.
fn split(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0u32);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.checked_sub(1)?,
            '/' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    (depth == 0).then_some(parts)
}

fn segment(text: &str) -> Option<Segment> {
    match text {
        "" => None,
        "*" => Some(Segment::One),
        "**" => Some(Segment::Rest),
        _ if text.contains(['{', '}', '*']) => None,
        _ => Some(Segment::Literal(text.to_owned())),
    }
}

/// Decodes `%xx`; `None` for malformed escapes or text that is not UTF-8.
pub fn decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        if bytes[at] == b'%' {
            out.push(u8::from_str_radix(text.get(at + 1..at + 3)?, 16).ok()?);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn paths_fit_templates() {
        let table = [
            ("/a/{b}", "/a/x", Some("b=x")),
            ("/a/{b}", "/a/x/y", None),
            ("/a/{b}", "/a/", None),
            ("/a/{b}", "/a/x%2Fy", Some("b=x/y")),
            ("/a/{b}:stop", "/a/x:stop", Some("b=x")),
            ("/a/{b}:stop", "/a/x", None),
            ("/a/{b}", "/a/x:y", Some("b=x:y")),
            ("/a/{b=c/*/d}/e", "/a/c/1/d/e", Some("b=c/1/d")),
            ("/a/{b=**}", "/a/1/2/3", Some("b=1/2/3")),
            ("/a/**", "/a/1/2", Some("")),
            ("/a/{b.c}/{d}", "/a/1/2", Some("b.c=1,d=2")),
            ("/a/-/b", "/a/-/b", Some("")),
            ("/a/{b}", "/a/%zz", None),
        ];
        for (template, path, expected) in table {
            let found = Template::parse(template).unwrap();
            let found = found
                .fit(path)
                .map(|(found, _)| found.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(","));
            assert_eq!(found.as_deref(), expected, "{template} {path}");
        }
    }

    #[test]
    fn malformed_templates_are_refused() {
        for bad in ["a", "/a/{b", "/a/b}", "/a//b", "/a/{b=**}/c", "/{b=}", "/a/x*"] {
            assert_eq!(Template::parse(bad), None, "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_template_and_path_are_handled(template in "[/a-c{}=*.:%]{0,24}", path in "[/a-c%0-9:]{0,24}") {
            if let Some(template) = Template::parse(&template) {
                let _ = template.fit(&path);
            }
        }
    }
}
