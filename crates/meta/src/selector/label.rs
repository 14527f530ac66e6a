//! Label selectors: requirements on labels, all of which must hold.

use std::fmt;

use serde_json::{Map, Value};

use super::{SelectorError, lexer};
use crate::{FieldError, FieldPath, Head, name};

/// How a requirement compares.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Hash)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values, or no such label.
    NotIn,
    /// Equal, written `=`.
    Equals,
    /// Equal, written `==`.
    DoubleEquals,
    /// Different, or no such label.
    NotEquals,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
    /// An integer greater than the value.
    GreaterThan,
    /// An integer less than the value.
    LessThan,
}

/// One requirement on one label.
#[derive(Clone, Debug, Eq, PartialEq, Hash)]
pub struct Requirement {
    key: String,
    operator: Operator,
    /// Sorted and without duplicates.
    values: Vec<String>,
}

impl Requirement {
    /// Checks and makes a requirement.
    pub fn new(key: &str, operator: Operator, mut values: Vec<String>) -> Result<Self, SelectorError> {
        values.sort_unstable();
        values.dedup();
        let mut faults: Vec<FieldError> = check_key(key, FieldPath::new("key")).into_iter().collect();
        let path = FieldPath::new("values");
        let shown = || Value::from(values.clone());
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => faults.push(FieldError::invalid(
                path.clone(),
                shown(),
                "for 'in', 'notin' operators, values set can't be empty",
            )),
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => faults.push(
                FieldError::invalid(path.clone(), shown(), "exact-match compatibility requires one single value"),
            ),
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => faults.push(FieldError::invalid(
                path.clone(),
                shown(),
                "values set must be empty for exists and does not exist",
            )),
            Operator::GreaterThan | Operator::LessThan => faults.extend(check_number(&path, &values)),
            _ => {}
        }
        for (at, value) in values.iter().enumerate() {
            let wrong = name::is_label_value(value);
            if !wrong.is_empty() {
                faults.push(FieldError::invalid(path.index(at).key(key), value.as_str(), wrong.join("; ")));
            }
        }
        if faults.is_empty() {
            return Ok(Self { key: key.to_owned(), operator, values });
        }
        let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Err(SelectorError(if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) }))
    }

    /// The label it is about.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How it compares.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// What it compares with, sorted.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether a label value, or its absence, satisfies the requirement.
    pub fn accepts(&self, label: Option<&str>) -> bool {
        let among = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => label.is_some_and(among),
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(among),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let number = |text: &str| text.parse::<i64>().ok();
                let (Some(label), Some(bound)) = (label.and_then(number), self.values.first().and_then(|v| number(v)))
                else {
                    return false;
                };
                if self.operator == Operator::GreaterThan { label > bound } else { label < bound }
            }
        }
    }
}

fn check_number(path: &FieldPath, values: &[String]) -> Option<FieldError> {
    match values {
        [value] if value.parse::<i64>().is_ok() => None,
        [value] => Some(FieldError::invalid(
            path.index(0),
            value.as_str(),
            "for 'Gt', 'Lt' operators, the value must be an integer",
        )),
        _ => Some(FieldError::invalid(
            path.clone(),
            Value::from(values.to_vec()),
            "for 'Gt', 'Lt' operators, exactly one value is required",
        )),
    }
}

/// What is wrong with a label key.
pub(super) fn check_key(key: &str, path: FieldPath) -> Option<FieldError> {
    let wrong = name::is_qualified_name(key);
    if wrong.is_empty() { None } else { Some(FieldError::invalid(path, key, wrong.join("; "))) }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// A label selector; the empty one selects everything.
#[derive(Clone, Debug, Eq, PartialEq, Hash, Default)]
pub struct LabelSelector {
    nothing: bool,
    /// Sorted by key.
    requirements: Vec<Requirement>,
}

impl LabelSelector {
    /// Selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects nothing.
    pub fn nothing() -> Self {
        Self { nothing: true, requirements: Vec::new() }
    }

    /// Selects what satisfies all requirements.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { nothing: false, requirements }
    }

    /// Parses the form used in query strings: `a=b,c in (d,e),!f`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        lexer::parse(text).map(Self::new)
    }

    /// Reads a `LabelSelector` as it stands in objects; null selects nothing, `{}` everything.
    pub fn from_value(value: &Value) -> Result<Self, SelectorError> {
        if value.is_null() {
            return Ok(Self::nothing());
        }
        let map = value.as_object().ok_or_else(|| SelectorError::new("label selector must be an object"))?;
        let mut requirements = Vec::new();
        if let Some(labels) = present(map, "matchLabels") {
            let labels = labels.as_object().ok_or_else(|| SelectorError::new("matchLabels must be an object"))?;
            for (key, value) in labels {
                let value = value.as_str().ok_or_else(|| SelectorError::new("matchLabels values must be strings"))?;
                requirements.push(Requirement::new(key, Operator::Equals, vec![value.to_owned()])?);
            }
        }
        if let Some(list) = present(map, "matchExpressions") {
            let list = list.as_array().ok_or_else(|| SelectorError::new("matchExpressions must be a list"))?;
            for expression in list {
                requirements.push(expression_requirement(expression)?);
            }
        }
        Ok(Self::new(requirements))
    }

    /// Selects objects that carry all these labels, as a Service's selector does.
    pub fn from_labels(labels: &Map<String, Value>) -> Result<Self, SelectorError> {
        let requirement = |(key, value): (&String, &Value)| {
            Requirement::new(key, Operator::Equals, vec![value.as_str().unwrap_or_default().to_owned()])
        };
        Ok(Self::new(labels.iter().map(requirement).collect::<Result<_, _>>()?))
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether every object is selected, so that nobody needs to look at labels.
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Whether no object is selected.
    pub fn is_nothing(&self) -> bool {
        self.nothing
    }

    /// Whether labels, looked up by key, are selected.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.accepts(get(&requirement.key)))
    }

    /// Whether an object with this head is selected.
    pub fn matches_head(&self, head: &Head) -> bool {
        self.matches(|key| head.label(key))
    }

    /// Whether a map of labels is selected.
    pub fn matches_map(&self, labels: &Map<String, Value>) -> bool {
        self.matches(|key| labels.get(key).and_then(Value::as_str))
    }

    /// Whether an object tree is selected by its `metadata.labels`.
    pub fn matches_tree(&self, tree: &Value) -> bool {
        let labels = &tree["metadata"]["labels"];
        self.matches(|key| labels.get(key).and_then(Value::as_str))
    }
}

fn present<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    map.get(key).filter(|value| !value.is_null())
}

fn expression_requirement(expression: &Value) -> Result<Requirement, SelectorError> {
    let text = |key: &str| expression.get(key).and_then(Value::as_str).unwrap_or_default();
    let operator = match text("operator") {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        other => return Err(SelectorError(format!("{other:?} is not a valid label selector operator"))),
    };
    let values = match expression.get("values") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| SelectorError::new("values must be strings"))?,
        Some(_) => return Err(SelectorError::new("values must be a list")),
    };
    Requirement::new(text("key"), operator, values)
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            write!(f, "{}{requirement}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn selects(selector: &LabelSelector, labels: &Value) -> bool {
        selector.matches_map(labels.as_object().unwrap())
    }

    #[test]
    fn every_operator_selects_what_it_says() {
        let labels = json!({"app": "web", "tier": "front", "n": "5", "empty": ""});
        for (text, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier=front", true),
            ("app=web,tier=back", false),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (web, db)", true),
            ("app notin (web, db)", false),
            ("other notin (x)", true),
            ("app", true),
            ("!app", false),
            ("!other", true),
            ("n>4", true),
            ("n<5", false),
            ("app>4", false),
            ("empty=", true),
            ("empty in (,x)", true),
            ("in in (in)", false),
            ("empty=,app", true),
        ] {
            assert_eq!(selects(&LabelSelector::parse(text).unwrap(), &labels), expected, "{text}");
        }
    }

    #[test]
    fn selectors_are_written_canonically() {
        for (text, canonical) in [
            (" z = 1 , a in ( c,b,b ) ", "a in (b,c),z=1"),
            ("!x,y", "!x,y"),
            ("a notin (,)", "a notin ()"),
            ("a==b", "a==b"),
            ("a>1,b<2", "a>1,b<2"),
            ("x=", "x="),
        ] {
            assert_eq!(LabelSelector::parse(text).unwrap().to_string(), canonical);
        }
    }

    #[test]
    fn faults_are_told_in_the_known_wording() {
        for (text, message) in [
            ("a=b,", "found '', expected: identifier after ','"),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a in x", "unable to parse requirement: found 'x' expected: '('"),
            (
                "a in ()",
                "unable to parse requirement: values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
            ),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("=a", "found '=', expected: !, identifier, or 'end of string'"),
            (
                "a>b",
                "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ] {
            assert_eq!(LabelSelector::parse(text).unwrap_err().0, message, "{text}");
        }
        let wrong = LabelSelector::parse("a=-b").unwrap_err().0;
        assert!(wrong.starts_with("unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label"));
        let wrong = LabelSelector::parse("-a=b").unwrap_err().0;
        assert!(wrong.starts_with("unable to parse requirement: <nil>: Invalid value: \"-a\": name part must"));
    }

    #[test]
    fn a_selector_of_an_object_joins_labels_and_expressions() {
        let selector = LabelSelector::from_value(&json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}, {"key": "x", "operator": "DoesNotExist"}]
        }))
        .unwrap();
        assert_eq!(selector.to_string(), "app=web,tier in (a,b),!x");
        assert!(selects(&selector, &json!({"app": "web", "tier": "a"})));
        assert!(LabelSelector::from_value(&json!({})).unwrap().is_everything());
        assert!(LabelSelector::from_value(&Value::Null).unwrap().is_nothing());
        assert!(!selects(&LabelSelector::nothing(), &json!({})));
        let wrong = json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]});
        assert_eq!(LabelSelector::from_value(&wrong).unwrap_err().0, "\"Gt\" is not a valid label selector operator");
    }

    #[test]
    fn huge_selectors_are_refused() {
        assert!(LabelSelector::parse(&"a,".repeat(40_000)).is_err());
        assert!(LabelSelector::parse(&vec!["a"; 1001].join(",")).is_err());
    }

    proptest! {
        #[test]
        fn the_canonical_form_reads_back(text in "(!?[a-c]|[a-c](=|==|!=)[x-z]|[a-c] (in|notin) \\([x-z],[x-z]?\\))(,[d-f](=|!=)[x-z]){0,3}") {
            let selector = LabelSelector::parse(&text).unwrap();
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()).unwrap(), selector);
        }

        #[test]
        fn no_text_makes_parsing_fail_hard(text in "[a-c!=<>(), \\n]{0,40}|.*") {
            let _ = LabelSelector::parse(&text);
        }
    }
}
