//! Answers questions: pages, counts, facets.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use atoll_meta::Status;
use jiff::Timestamp;
use serde_json::Value;

use crate::index::Index;
use crate::plan::{LabelTerm, Plan, Visible, plain_label};
use crate::query::{Column, Facet, OwnerOf, Query};
use crate::rights::{Place, Rights};
use crate::shelf::{Freshness, Shelf};
use crate::statement::{Cell, Param, Statement};
use crate::token::Token;

/// More owners than this are not followed into the next generation.
const MAX_OWNERS: usize = 50_000;

/// One found object.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its shelf.
    pub shelf: Arc<Shelf>,
    /// Its namespace; empty outside namespaces.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub revision: String,
    /// When it was made, in milliseconds since 1970.
    pub created: i64,
    /// Whether deletion was asked for.
    pub deleting: bool,
    /// The object as JSON.
    pub body: String,
}

impl Item {
    /// The object.
    pub fn tree(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// What was found.
    pub items: Vec<Item>,
    /// Where the next page begins; `None` at the end.
    pub token: Option<String>,
    /// How many follow, when asked for.
    pub remaining: Option<u64>,
    /// The oldest state any part of the answer is from; `None` when some part was never read whole.
    pub fresh_as_of: Option<Timestamp>,
    /// Sources whose part is not up to date, and why.
    pub stale: Vec<Freshness>,
}

impl Index {
    /// Finds objects.
    pub async fn query(&self, query: &Query, rights: &dyn Rights) -> Result<Page, Status> {
        let visible = self.visible(query, rights).await?;
        let mut page = self.freshness_of(&visible);
        page.remaining = query.remaining.then_some(0);
        let Some(plan) = self.plan(query, &visible, rights).await? else { return Ok(page) };
        let limit = query.limit.unwrap_or(usize::MAX - 1);
        // One more than asked for tells whether there is a next page.
        let mut items = if query.sort.is_empty() {
            self.in_shelf_order(&plan, &visible, limit.saturating_add(1)).await?
        } else {
            let statement = plan.sorted_page(&visible, limit.saturating_add(1))?;
            self.items(statement, &visible).await?
        };
        if items.len() > limit {
            items.truncate(limit);
            let last = items.last().map(|item| token_behind(item, query));
            if let (Some(token), true) = (&last, query.remaining) {
                let rows = self.store().select(plan.count(&visible, Some(token))?).await?;
                page.remaining = Some(rows.iter().map(|row| row[1].int().unsigned_abs()).sum());
            }
            page.token = last.map(|token| token.encode());
        }
        page.items = items;
        Ok(page)
    }

    /// Counts objects by shelf; the sum is the total.
    pub async fn count(&self, query: &Query, rights: &dyn Rights) -> Result<Vec<(Arc<Shelf>, u64)>, Status> {
        let visible = self.visible(query, rights).await?;
        let whole = Query { token: None, ..query.clone() };
        let Some(plan) = self.plan(&whole, &visible, rights).await? else { return Ok(Vec::new()) };
        let rows = self.store().select(plan.count(&visible, None)?).await?;
        let by_id: HashMap<i64, &Arc<Shelf>> = visible.iter().map(|one| (one.shelf.id, &one.shelf)).collect();
        Ok(rows
            .iter()
            .filter_map(|row| Some(((*by_id.get(&row[0].int())?).clone(), row[1].int().unsigned_abs())))
            .collect())
    }

    /// Counts objects by source, resource, namespace, label or indexed field, the most frequent first.
    pub async fn facet(
        &self,
        query: &Query,
        facet: &Facet,
        limit: usize,
        rights: &dyn Rights,
    ) -> Result<Vec<(String, u64)>, Status> {
        if let Facet::Source | Facet::Resource = facet {
            let mut sums: BTreeMap<String, u64> = BTreeMap::new();
            for (shelf, count) in self.count(query, rights).await? {
                let key = match facet {
                    Facet::Source => shelf.key.source.clone(),
                    _ if shelf.key.group.is_empty() => shelf.key.resource.clone(),
                    _ => format!("{}.{}", shelf.key.resource, shelf.key.group),
                };
                *sums.entry(key).or_default() += count;
            }
            let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
            sums.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            sums.truncate(limit);
            return Ok(sums);
        }
        let visible = self.visible(query, rights).await?;
        let whole = Query { token: None, ..query.clone() };
        let Some(plan) = self.plan(&whole, &visible, rights).await? else { return Ok(Vec::new()) };
        let rows = self.store().select(plan.facet(&visible, facet, limit)?).await?;
        Ok(rows.into_iter().map(|mut row| (row.swap_remove(0).into_text(), row[0].int().unsigned_abs())).collect())
    }

    /// The shelves of a question, as far as the caller may see them.
    pub(crate) async fn visible(&self, query: &Query, rights: &dyn Rights) -> Result<Vec<Visible>, Status> {
        let mut visible = Vec::new();
        for shelf in self.shelves().list() {
            if !query.wants(&shelf, self.shelves().is_hidden(&shelf.key.source)) {
                continue;
            }
            if sees(rights, place(&shelf, None)).await? {
                visible.push(Visible { shelf, namespaces: None });
                continue;
            }
            if !shelf.namespaced {
                continue;
            }
            let mut allowed = Vec::new();
            for namespace in self.namespaces_of(&shelf, query).await? {
                if sees(rights, place(&shelf, Some(&namespace))).await? {
                    allowed.push(namespace);
                }
            }
            if !allowed.is_empty() {
                visible.push(Visible { shelf, namespaces: Some(allowed) });
            }
        }
        Ok(visible)
    }

    async fn namespaces_of(&self, shelf: &Shelf, query: &Query) -> Result<Vec<String>, Status> {
        if !query.namespaces.is_empty() {
            return Ok(query.namespaces.clone());
        }
        let mut statement =
            Statement::new(self.store().dialect(), "SELECT DISTINCT o.namespace FROM objects o WHERE o.shelf = ");
        statement.int(shelf.id);
        let rows = self.store().select(statement).await?;
        Ok(rows.into_iter().map(|mut row| row.swap_remove(0).into_text()).collect())
    }

    fn freshness_of(&self, visible: &[Visible]) -> Page {
        let now = Timestamp::now();
        let mut page = Page { fresh_as_of: Some(now), ..Page::default() };
        for one in visible {
            let fresh = one.shelf.freshness(now);
            page.fresh_as_of = page.fresh_as_of.zip(fresh.as_of).map(|(a, b)| a.min(b));
            if fresh.as_of != Some(now) && !page.stale.iter().any(|known| known.source == fresh.source) {
                page.stale.push(fresh);
            }
        }
        page
    }

    /// Looks up what the statement needs; `None` when nothing can be found.
    async fn plan<'a>(
        &self,
        query: &'a Query,
        visible: &[Visible],
        rights: &dyn Rights,
    ) -> Result<Option<Plan<'a>>, Status> {
        let token = match &query.token {
            Some(text) => Some(checked(Token::decode(text, query.fingerprint())?, query)?),
            None => None,
        };
        if visible.is_empty() || query.labels.is_nothing() {
            return Ok(None);
        }
        let mut labels = Vec::new();
        for requirement in query.labels.requirements() {
            let (key, operator) = (requirement.key(), requirement.operator());
            labels.push(match plain_label(key, operator, requirement.values()) {
                Some(term) => term,
                None => {
                    let values = self.label_values(key, visible).await?;
                    LabelTerm::Among(
                        format!("l:{key}"),
                        values.into_iter().filter(|value| requirement.accepts(Some(value))).collect(),
                    )
                }
            });
        }
        let owners = match &query.owner {
            Some(owner) => Some(self.owners(owner, visible, rights).await?),
            None => None,
        };
        let nothing = owners.as_ref().is_some_and(Vec::is_empty)
            || labels.iter().any(|label| matches!(label, LabelTerm::Among(_, values) if values.is_empty()));
        Ok((!nothing).then_some(Plan { dialect: self.store().dialect(), query, labels, owners, token }))
    }

    async fn label_values(&self, key: &str, visible: &[Visible]) -> Result<Vec<String>, Status> {
        let ids: Vec<i64> = visible.iter().map(|one| one.shelf.id).collect();
        let mut statement =
            Statement::new(self.store().dialect(), "SELECT DISTINCT t.value FROM terms t WHERE t.key = ");
        statement.text(format!("l:{key}")).push(" AND ").among_ints("t.shelf", &ids);
        let rows = self.store().select(statement).await?;
        Ok(rows.into_iter().map(|mut row| row.swap_remove(0).into_text()).collect())
    }

    /// The uids that must own what is found.
    async fn owners(&self, owner: &OwnerOf, visible: &[Visible], rights: &dyn Rights) -> Result<Vec<String>, Status> {
        let dialect = self.store().dialect();
        let texts =
            |rows: Vec<Vec<Cell>>| rows.into_iter().map(|mut row| row.swap_remove(0).into_text()).collect::<Vec<_>>();
        let mut uids = match (&owner.uid, &owner.name) {
            (Some(uid), _) => vec![uid.clone()],
            (None, Some(name)) => {
                let mut sources: Vec<String> = visible.iter().map(|one| one.shelf.key.source.clone()).collect();
                sources.dedup();
                let (resources, names) = (owner.resource.clone().into_iter().collect(), vec![name.clone()]);
                let query = Query { sources, resources, names, ..Query::default() };
                // By name only what the caller may see: what is found would tell of an owner that is hidden.
                let seen = self.visible(&query, rights).await?;
                if seen.is_empty() {
                    return Ok(Vec::new());
                }
                let plan = Plan { dialect, query: &query, labels: Vec::new(), owners: None, token: None };
                texts(self.store().select(plan.uids(&seen)?).await?)
            }
            (None, None) => return Err(Status::bad_request("an owner needs a uid or a name")),
        };
        for _ in 0..owner.generations.min(10) {
            if uids.is_empty() {
                break;
            }
            let mut statement =
                Statement::new(dialect, "SELECT DISTINCT o.uid FROM owners w JOIN objects o ON o.id = w.object WHERE ");
            statement.among_texts("w.owner", &uids).push(" LIMIT ").int(MAX_OWNERS as i64);
            uids = texts(self.store().select(statement).await?);
        }
        Ok(uids)
    }

    /// Shelf by shelf: the first page costs as much as it is long, however much there is.
    async fn in_shelf_order(&self, plan: &Plan<'_>, visible: &[Visible], limit: usize) -> Result<Vec<Item>, Status> {
        let mut found: Vec<Item> = Vec::new();
        let mut skip = plan.query.offset;
        for one in visible {
            let key = &one.shelf.key;
            let after = match &plan.token {
                Some(token) => match (&key.source, &key.group, &key.resource).cmp(&(
                    &token.shelf.0,
                    &token.shelf.1,
                    &token.shelf.2,
                )) {
                    std::cmp::Ordering::Less => continue,
                    std::cmp::Ordering::Equal => Some((token.namespace.as_str(), token.name.as_str())),
                    std::cmp::Ordering::Greater => None,
                },
                None => None,
            };
            if skip > 0 {
                let count = self.store().select(plan.count(std::slice::from_ref(one), None)?).await?;
                let count = count.first().map_or(0, |row| usize::try_from(row[1].int()).unwrap_or_default());
                if count <= skip {
                    skip -= count;
                    continue;
                }
            }
            let statement = plan.shelf_page(one, after, limit - found.len(), std::mem::take(&mut skip))?;
            found.extend(self.items(statement, std::slice::from_ref(one)).await?);
            if found.len() >= limit {
                break;
            }
        }
        Ok(found)
    }

    async fn items(&self, statement: Statement, visible: &[Visible]) -> Result<Vec<Item>, Status> {
        let by_id: HashMap<i64, &Arc<Shelf>> = visible.iter().map(|one| (one.shelf.id, &one.shelf)).collect();
        let rows = self.store().select(statement).await?;
        Ok(rows.into_iter().filter_map(|row| item(row, &by_id)).collect())
    }
}

/// Whether a place may be seen; one whose rights cannot be known now shows nothing, and others are shown nevertheless.
async fn sees(rights: &dyn Rights, place: Place<'_>) -> Result<bool, Status> {
    match rights.may_see(place).await {
        Err(status) if status.code == 503 => Ok(false),
        answer => answer,
    }
}

fn place<'a>(shelf: &'a Shelf, namespace: Option<&'a str>) -> Place<'a> {
    let key = &shelf.key;
    Place {
        source: &key.source,
        group: &key.group,
        version: &shelf.version,
        resource: &key.resource,
        namespace,
        name: None,
    }
}

fn item(row: Vec<Cell>, shelves: &HashMap<i64, &Arc<Shelf>>) -> Option<Item> {
    let mut cells = row.into_iter();
    let mut next = || cells.next();
    Some(Item {
        shelf: (*shelves.get(&next()?.int())?).clone(),
        namespace: next()?.into_text(),
        name: next()?.into_text(),
        uid: next()?.into_text(),
        revision: next()?.into_text(),
        created: next()?.int(),
        deleting: next()?.int() != 0,
        body: next()?.into_text(),
    })
}

fn token_behind(item: &Item, query: &Query) -> Token {
    let key = &item.shelf.key;
    let value = |column: Column| match column {
        Column::Source => Param::Text(key.source.clone()),
        Column::Resource => Param::Text(key.resource.clone()),
        Column::Namespace => Param::Text(item.namespace.clone()),
        Column::Name => Param::Text(item.name.clone()),
        Column::Created => Param::Int(item.created),
    };
    Token {
        query: query.fingerprint(),
        shelf: (key.source.clone(), key.group.clone(), key.resource.clone()),
        namespace: item.namespace.clone(),
        name: item.name.clone(),
        keys: query.sort.iter().map(|sort| value(sort.column)).collect(),
    }
}

/// Refuses tokens that somebody wrote: their values must have the types of their columns.
fn checked(token: Token, query: &Query) -> Result<Token, Status> {
    let fits = token.keys.len() == query.sort.len()
        && token
            .keys
            .iter()
            .zip(&query.sort)
            .all(|(key, sort)| matches!(key, Param::Int(_)) == (sort.column == Column::Created));
    if fits { Ok(token) } else { Err(Status::bad_request("continue key is not valid")) }
}
