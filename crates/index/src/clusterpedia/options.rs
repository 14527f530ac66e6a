//! Clusterpedia's query language: URL parameters and search labels.

use atoll_apiserver::Query as Params;
use atoll_meta::Status;
use atoll_meta::selector::{LabelSelector, Requirement};
use jiff::Timestamp;

use super::Names;
use crate::query::{Column, OwnerOf, Query, ResourceName, Sort};

const SEARCH: &str = "search.clusterpedia.io/";
const FUZZY: &str = "internalstorage.clusterpedia.io/fuzzy-name";

/// Both spellings of the options, parameters first.
struct Words<'a> {
    params: &'a Params,
    labels: Vec<Requirement>,
}

impl Words<'_> {
    fn list(&self, param: &str, label: &str) -> Vec<String> {
        let from_params = self.params.all(param).flat_map(|text| text.split(',')).map(str::trim).map(ToOwned::to_owned);
        let key = format!("{SEARCH}{label}");
        let from_labels = self.labels.iter().filter(|own| own.key() == key).flat_map(|own| own.values().to_vec());
        from_params.chain(from_labels).filter(|text| !text.is_empty()).collect()
    }

    fn one(&self, param: &str, label: &str) -> Option<String> {
        self.list(param, label).into_iter().next()
    }

    fn flag(&self, param: &str, label: &str) -> bool {
        self.params.flag(param) || self.one("", label).is_some_and(|text| text == "true")
    }
}

fn wrong(what: &str, text: &str) -> Status {
    Status::bad_request(format!("{what}: cannot understand {text:?}"))
}

/// The question a request asks.
pub fn query(params: &Params, names: &Names<'_>) -> Result<Query, Status> {
    let all = params.labels()?;
    let (search, plain): (Vec<Requirement>, Vec<Requirement>) = all
        .requirements()
        .iter()
        .cloned()
        .partition(|own| own.key().split('/').next().is_some_and(|domain| domain.ends_with("clusterpedia.io")));
    let words = Words { params, labels: search };
    let clusters = words.list("clusters", "clusters");
    let sources =
        if clusters.is_empty() { names.everywhere() } else { clusters.iter().map(|name| names.source(name)).collect() };
    let fuzzy = words.labels.iter().filter(|own| own.key() == FUZZY).flat_map(|own| own.values().to_vec());
    let (token, offset) = continued(&words)?;
    Ok(Query {
        sources,
        namespaces: words.list("namespaces", "namespaces"),
        names: words.list("names", "names"),
        fuzzy: fuzzy.chain(params.get("fuzzyName").map(ToOwned::to_owned)).collect(),
        labels: LabelSelector::new(plain),
        fields: params.fields()?,
        owner: owner(&words)?,
        since: time(words.one("since", "since").as_deref())?,
        before: time(words.one("before", "before").as_deref())?,
        sort: sort(&words)?,
        limit: words
            .one("limit", "limit")
            .map(|text| text.parse().map_err(|_| wrong("limit", &text)))
            .transpose()?
            .filter(|limit| *limit > 0),
        offset,
        token,
        remaining: words.flag("withRemainingCount", "with-remaining-count"),
        ..Query::default()
    })
}

/// A token of ours, or the number of objects to leave out, as Clusterpedia counts.
fn continued(words: &Words<'_>) -> Result<(Option<String>, usize), Status> {
    match words.one("continue", "offset") {
        None => Ok((None, 0)),
        Some(text) => Ok(text.parse().map_or_else(|_| (Some(text.clone()), 0), |offset| (None, offset))),
    }
}

fn owner(words: &Words<'_>) -> Result<Option<OwnerOf>, Status> {
    let (uid, name) = (words.one("ownerUID", "owner-uid"), words.one("ownerName", "owner-name"));
    if uid.is_none() && name.is_none() {
        return Ok(None);
    }
    let resource = words.one("ownerGR", "owner-gr").map(|text| match text.split_once('.') {
        Some((resource, group)) => ResourceName::new(group, resource),
        None => ResourceName::new("", &text),
    });
    let generations = match words.one("ownerSeniority", "owner-seniority") {
        None => 0,
        Some(text) => text.parse().map_err(|_| wrong("ownerSeniority", &text))?,
    };
    Ok(Some(OwnerOf { uid, name, resource, generations }))
}

fn sort(words: &Words<'_>) -> Result<Vec<Sort>, Status> {
    words
        .list("orderby", "orderby")
        .iter()
        .map(|text| {
            let (column, descending) = match text.strip_suffix(" desc").or_else(|| text.strip_suffix("_desc")) {
                Some(column) => (column, true),
                None => (text.strip_suffix(" asc").unwrap_or(text), false),
            };
            // Only known columns: nothing a caller writes becomes part of a statement.
            let column = Column::parse(column.trim()).ok_or_else(|| wrong("orderby", text))?;
            Ok(Sort { column, descending })
        })
        .collect()
}

/// RFC 3339, date and time, date, or seconds or milliseconds since 1970.
fn time(text: Option<&str>) -> Result<Option<Timestamp>, Status> {
    let Some(text) = text else { return Ok(None) };
    let number = || text.parse::<i64>().ok();
    let found = match text.len() {
        10 if number().is_some() => number().and_then(|seconds| Timestamp::from_second(seconds).ok()),
        13 if number().is_some() => number().and_then(|millis| Timestamp::from_millisecond(millis).ok()),
        10 => format!("{text}T00:00:00Z").parse().ok(),
        19 => format!("{}Z", text.replacen(' ', "T", 1)).parse().ok(),
        _ => text.parse().ok(),
    };
    found.map(Some).ok_or_else(|| wrong("time", text))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn asked(text: &str) -> Query {
        query(&Params::parse(Some(text)), &Names { instance: "fleet" }).unwrap()
    }

    #[test]
    fn parameters_and_search_labels_say_the_same() {
        let by_params = asked(
            "clusters=m1,m2&namespaces=a&names=x,y&ownerUID=u&ownerSeniority=1&orderby=name%20desc,created_at&limit=5&continue=10&withRemainingCount=true&labelSelector=app%3Dweb",
        );
        let by_labels = asked(
            "labelSelector=app%3Dweb,search.clusterpedia.io/clusters%20in%20(m1,m2),search.clusterpedia.io/namespaces%3Da,search.clusterpedia.io/names%20in%20(x,y),search.clusterpedia.io/owner-uid%3Du,search.clusterpedia.io/owner-seniority%3D1,search.clusterpedia.io/orderby%20in%20(name_desc,created_at),search.clusterpedia.io/limit%3D5,search.clusterpedia.io/offset%3D10,search.clusterpedia.io/with-remaining-count%3Dtrue",
        );
        for asked in [&by_params, &by_labels] {
            assert_eq!(asked.sources, ["fleet/m1", "fleet/m2"]);
            assert_eq!(asked.names, ["x", "y"]);
            assert_eq!(asked.owner.as_ref().unwrap().generations, 1);
            assert_eq!((asked.limit, asked.offset, asked.remaining), (Some(5), 10, true));
            assert_eq!(asked.labels.to_string(), "app=web");
            assert_eq!(asked.sort.len(), 2);
        }
    }

    #[test]
    fn times_have_five_spellings() {
        let expected = "2024-05-06T00:00:00Z".parse::<Timestamp>().unwrap();
        for text in ["2024-05-06", "2024-05-06 00:00:00", "2024-05-06T00:00:00Z", "1714953600", "1714953600000"] {
            assert_eq!(time(Some(text)).unwrap(), Some(expected), "{text}");
        }
        assert!(time(Some("yesterday")).is_err());
    }

    #[test]
    fn only_known_columns_sort() {
        let bad = Params::parse(Some("orderby=name;DROP%20TABLE%20objects"));
        assert!(query(&bad, &Names { instance: "root" }).is_err());
    }
}
