//! From a question to statements.

use std::sync::Arc;

use atoll_meta::Status;
use atoll_meta::selector::{FieldTerm, Operator};

use crate::field;
use crate::query::{Column, Facet, Query, Sort};
use crate::shelf::Shelf;
use crate::statement::{Dialect, Param, Statement};
use crate::token::Token;

/// What may be seen of a shelf.
pub struct Visible {
    pub shelf: Arc<Shelf>,
    /// `None`: all of it.
    pub namespaces: Option<Vec<String>>,
}

/// A requirement on a label in terms the store knows.
pub enum LabelTerm {
    Among(String, Vec<String>),
    NotAmong(String, Vec<String>),
    Present(String),
    Absent(String),
}

/// A question with everything looked up that a statement needs.
pub struct Plan<'a> {
    pub dialect: Dialect,
    pub query: &'a Query,
    pub labels: Vec<LabelTerm>,
    /// Uids one of which must own the object.
    pub owners: Option<Vec<String>>,
    pub token: Option<Token>,
}

const COLUMNS: &str = "o.shelf, o.namespace, o.name, o.uid, o.revision, o.created, o.deleting, o.body";

/// Labels whose meaning does not depend on what is stored.
pub fn plain_label(key: &str, operator: Operator, values: &[String]) -> Option<LabelTerm> {
    let (term, values) = (format!("l:{key}"), values.to_vec());
    Some(match operator {
        Operator::In | Operator::Equals | Operator::DoubleEquals => LabelTerm::Among(term, values),
        Operator::NotIn | Operator::NotEquals => LabelTerm::NotAmong(term, values),
        Operator::Exists => LabelTerm::Present(term),
        Operator::DoesNotExist => LabelTerm::Absent(term),
        Operator::GreaterThan | Operator::LessThan => return None,
    })
}

impl Plan<'_> {
    /// The label through which rows are best found.
    fn driver(&self) -> Option<usize> {
        self.labels.iter().position(|label| matches!(label, LabelTerm::Among(..)))
    }

    /// Whether rows are best found through their names, labels or owners instead of their shelf.
    fn is_driven(&self) -> bool {
        self.owners.is_some() || !self.query.names.is_empty() || self.driver().is_some()
    }

    /// A page of one shelf, in the order of namespace and name; `after` is where the last page ended.
    pub fn shelf_page(
        &self,
        visible: &Visible,
        after: Option<(&str, &str)>,
        limit: usize,
        offset: usize,
    ) -> Result<Statement, Status> {
        let mut s = Statement::new(self.dialect, "SELECT ");
        s.push(COLUMNS);
        // Parts of names are looked for in an index alone; only what is found is read whole.
        let driven = self.is_driven() || !self.query.fuzzy.is_empty();
        s.push(if driven { " FROM (SELECT o.id FROM objects o WHERE " } else { " FROM objects o WHERE " });
        self.conditions(&mut s, std::slice::from_ref(visible))?;
        if let Some((namespace, name)) = after {
            s.push(" AND (o.namespace, o.name) > (").text(namespace).push(", ").text(name).push(")");
        }
        s.push(" ORDER BY o.namespace, o.name LIMIT ").int(bound(limit)).push(" OFFSET ").int(bound(offset));
        if driven {
            s.push(") k JOIN objects o ON o.id = k.id ORDER BY o.namespace, o.name");
        }
        Ok(s)
    }

    /// A page of all shelves in the order asked for.
    pub fn sorted_page(&self, visible: &[Visible], limit: usize) -> Result<Statement, Status> {
        let mut s = Statement::new(self.dialect, "SELECT ");
        s.push(COLUMNS).push(" FROM (SELECT o.id FROM objects o JOIN shelves s ON s.id = o.shelf WHERE ");
        self.conditions(&mut s, visible)?;
        if let Some(token) = &self.token {
            s.push(" AND (");
            behind(&mut s, &self.query.sort, token);
            s.push(")");
        }
        order(&mut s, &self.query.sort);
        s.push(" LIMIT ").int(bound(limit)).push(" OFFSET ").int(bound(self.query.offset));
        s.push(") k JOIN objects o ON o.id = k.id JOIN shelves s ON s.id = o.shelf");
        order(&mut s, &self.query.sort);
        Ok(s)
    }

    /// Numbers of rows by shelf; `behind_token` counts only what follows the page.
    pub fn count(&self, visible: &[Visible], behind_token: Option<&Token>) -> Result<Statement, Status> {
        let mut s = Statement::new(
            self.dialect,
            "SELECT o.shelf, count(*) FROM objects o JOIN shelves s ON s.id = o.shelf WHERE ",
        );
        self.conditions(&mut s, visible)?;
        if let Some(token) = behind_token {
            s.push(" AND (");
            behind(&mut s, &self.query.sort, token);
            s.push(")");
        }
        s.push(" GROUP BY o.shelf");
        Ok(s)
    }

    /// The uids of all rows.
    pub fn uids(&self, visible: &[Visible]) -> Result<Statement, Status> {
        let mut s = Statement::new(self.dialect, "SELECT o.uid FROM objects o WHERE ");
        self.conditions(&mut s, visible)?;
        Ok(s)
    }

    /// Numbers of rows by value of a label, a field or the namespace.
    pub fn facet(&self, visible: &[Visible], facet: &Facet, limit: usize) -> Result<Statement, Status> {
        let key = match facet {
            Facet::Label(key) => Some(format!("l:{key}")),
            Facet::Field(path) => Some(format!("f:{path}")),
            _ => None,
        };
        let mut s = Statement::new(self.dialect, "SELECT ");
        match key {
            Some(key) => s.push("f.value, count(*) FROM terms f JOIN objects o ON o.id = f.object WHERE f.shelf = o.shelf AND f.key = ").text(key).push(" AND "),
            None => s.push("o.namespace, count(*) FROM objects o WHERE "),
        };
        self.conditions(&mut s, visible)?;
        s.push(" GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ").int(bound(limit));
        Ok(s)
    }

    fn conditions(&self, s: &mut Statement, visible: &[Visible]) -> Result<(), Status> {
        self.scope(s, visible);
        let query = self.query;
        if !query.namespaces.is_empty() {
            s.push(" AND ").among_texts("o.namespace", &query.namespaces);
        }
        if !query.names.is_empty() {
            s.push(" AND ").among_texts("o.name", &query.names);
        }
        for part in &query.fuzzy {
            s.push(" AND ").contains("o.name", &part.to_lowercase());
        }
        if let Some(since) = query.since {
            s.push(" AND o.created >= ").int(since.as_millisecond());
        }
        if let Some(before) = query.before {
            s.push(" AND o.created < ").int(before.as_millisecond());
        }
        if let Some(owners) = &self.owners {
            s.push(" AND o.id IN (SELECT w.object FROM owners w WHERE ").among_texts("w.owner", owners).push(")");
        }
        let driver = self.driver().filter(|_| self.owners.is_none());
        for (at, label) in self.labels.iter().enumerate() {
            match label {
                LabelTerm::Among(key, values) if driver == Some(at) => {
                    let ids: Vec<i64> = visible.iter().map(|visible| visible.shelf.id).collect();
                    s.push(" AND o.id IN (SELECT t.object FROM terms t WHERE ").among_ints("t.shelf", &ids);
                    s.push(" AND t.key = ").text(key.clone()).push(" AND ").among_texts("t.value", values).push(")");
                }
                LabelTerm::Among(key, values) => probe(s, true, key, Some(values)),
                LabelTerm::NotAmong(key, values) => probe(s, false, key, Some(values)),
                LabelTerm::Present(key) => probe(s, true, key, None),
                LabelTerm::Absent(key) => probe(s, false, key, None),
            }
        }
        query.fields.terms().iter().try_for_each(|term| compare(s, term))
    }

    /// Restricts to the shelves and namespaces that may be seen.
    fn scope(&self, s: &mut Statement, visible: &[Visible]) {
        // With the sign SQLite does not look for an index: names, labels or owners lead to fewer rows.
        let column = if self.is_driven() && self.dialect == Dialect::Sqlite { "+o.shelf" } else { "o.shelf" };
        if let [one] = visible {
            s.push(column).push(" = ").int(one.shelf.id);
            if let Some(namespaces) = &one.namespaces {
                s.push(" AND ").among_texts("o.namespace", namespaces);
            }
            return;
        }
        let whole: Vec<i64> = visible.iter().filter(|one| one.namespaces.is_none()).map(|one| one.shelf.id).collect();
        let parts: Vec<(i64, String)> = visible
            .iter()
            .flat_map(|one| one.namespaces.iter().flatten().map(|namespace| (one.shelf.id, namespace.clone())))
            .collect();
        s.push("(").among_ints(column, &whole);
        if !parts.is_empty() {
            s.push(" OR ").among_pairs(&parts);
        }
        s.push(")");
    }
}

fn bound(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Asks whether a row has, or has not, a term with one of some values, or any.
fn probe(s: &mut Statement, wanted: bool, key: &str, values: Option<&[String]>) {
    s.push(if wanted { " AND EXISTS (" } else { " AND NOT EXISTS (" });
    s.push("SELECT 1 FROM terms t WHERE t.shelf = o.shelf AND t.object = o.id AND t.key = ").text(key);
    if let Some(values) = values {
        s.push(" AND ").among_texts("t.value", values);
    }
    s.push(")");
}

/// Compares a field: by column, by index, or inside the object.
fn compare(s: &mut Statement, term: &FieldTerm) -> Result<(), Status> {
    let column = match term.path.as_str() {
        "metadata.name" => Some("o.name"),
        "metadata.namespace" => Some("o.namespace"),
        "metadata.uid" => Some("o.uid"),
        _ => None,
    };
    if let Some(column) = column {
        s.push(" AND ").push(column).push(if term.equal { " = " } else { " <> " }).text(term.value.clone());
        return Ok(());
    }
    if field::INDEXED.contains(&term.path.as_str()) && !term.value.is_empty() && term.value.len() <= 256 {
        probe(s, term.equal, &format!("f:{}", term.path), Some(std::slice::from_ref(&term.value)));
        return Ok(());
    }
    let steps = field::steps(&term.path)?;
    s.push(" AND ").json_at(&steps).push(if term.equal { " IN (" } else { " NOT IN (" });
    s.text(serde_json::Value::from(term.value.as_str()).to_string());
    if term.value.is_empty() {
        s.push(", 'null'");
    } else if let Ok(serde_json::Value::Number(_) | serde_json::Value::Bool(_)) = serde_json::from_str(&term.value) {
        s.push(", ").text(term.value.clone());
    }
    s.push(")");
    Ok(())
}

fn spelled(column: Column) -> &'static str {
    match column {
        Column::Source => "s.source",
        Column::Resource => "s.resource",
        Column::Namespace => "o.namespace",
        Column::Name => "o.name",
        Column::Created => "o.created",
    }
}

/// What makes every order total.
const TIE: [&str; 5] = ["s.source", "s.grp", "s.resource", "o.namespace", "o.name"];

fn order(s: &mut Statement, sort: &[Sort]) {
    s.push(" ORDER BY ");
    for sort in sort {
        s.push(spelled(sort.column)).push(if sort.descending { " DESC, " } else { ", " });
    }
    s.push("s.source, s.grp, s.resource, o.namespace, o.name");
}

/// Everything behind a token, in lexicographic order: equal so far and beyond in the next column.
fn behind(s: &mut Statement, sort: &[Sort], token: &Token) {
    let (source, group, resource) = &token.shelf;
    let ties = [source, group, resource, &token.namespace, &token.name].map(|text| Param::Text(text.clone()));
    let columns: Vec<(&'static str, bool, &Param)> = sort
        .iter()
        .zip(&token.keys)
        .map(|(sort, key)| (spelled(sort.column), sort.descending, key))
        .chain(TIE.into_iter().zip(&ties).map(|(column, value)| (column, false, value)))
        .collect();
    for at in 0..columns.len() {
        s.push(if at == 0 { "(" } else { " OR (" });
        for (column, _, value) in &columns[..at] {
            s.push(column).push(" = ").param(value).push(" AND ");
        }
        let (column, descending, value) = columns[at];
        s.push(column).push(if descending { " < " } else { " > " }).param(value).push(")");
    }
}
