//! A path kept on the stack while walking, turned into text only when something is to be said.

use atoll_meta::FieldPath;

/// Where a walk is, as a chain back to its start.
#[derive(Copy, Clone)]
pub(crate) enum Trail<'a> {
    /// Where the walk began.
    Start(&'a str),
    /// A named field.
    Field(&'a Trail<'a>, &'a str),
    /// A list element.
    Index(&'a Trail<'a>, usize),
    /// An entry of a map with free keys.
    Key(&'a Trail<'a>, &'a str),
}

impl Trail<'_> {
    /// `spec.list[0].name`, with map entries written like fields.
    pub(crate) fn dotted(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, false);
        out
    }

    /// `spec.list[0].labels[key]`, with map entries in brackets.
    pub(crate) fn bracketed(&self) -> FieldPath {
        let mut out = String::new();
        self.write(&mut out, true);
        FieldPath::new(&out)
    }

    fn write(&self, out: &mut String, bracket_keys: bool) {
        use std::fmt::Write as _;
        match self {
            Self::Start(text) => out.push_str(text),
            Self::Field(parent, name) => {
                parent.write(out, bracket_keys);
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
            }
            Self::Index(parent, index) => {
                parent.write(out, bracket_keys);
                // Writing to a string cannot fail.
                let _ = write!(out, "[{index}]");
            }
            Self::Key(parent, key) if bracket_keys => {
                parent.write(out, bracket_keys);
                let _ = write!(out, "[{key}]");
            }
            Self::Key(parent, key) => Trail::Field(parent, key).write(out, bracket_keys),
        }
    }
}
