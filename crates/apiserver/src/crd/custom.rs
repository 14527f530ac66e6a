//! What a custom kind knows: its schema, columns, selectable fields and scale.

use std::sync::Arc;

use atoll_meta::path::JsonPath;
use atoll_meta::{Conversion, FieldError, Revision, time};
use atoll_schema::{Compiled, Schema, Typed, Types};
use serde_json::{Value, json};

/// A column of `kubectl get`.
pub struct Column {
    name: String,
    ty: String,
    format: String,
    description: String,
    priority: i64,
    path: JsonPath,
    /// What stands where there is no value.
    missing: Value,
}

/// Where a kind keeps its replicas.
pub struct ScalePaths {
    /// Desired number.
    pub spec: String,
    /// Present number.
    pub status: String,
    /// Selector of pods as text.
    pub selector: Option<String>,
}

/// One version of a custom kind.
pub struct Custom {
    compiled: Option<Arc<Compiled>>,
    /// The schema of the version objects are stored in, if that is another one.
    stored: Option<Arc<Compiled>>,
    /// How objects come from and get to that version, if by more than dropping what one of both does not know.
    conversion: Option<Conversion>,
    columns: Vec<Column>,
    selectable: Vec<(String, JsonPath)>,
    scale: Option<ScalePaths>,
    /// What to warn users of an old version with.
    pub deprecation: Option<String>,
    /// Whether the definition is being deleted: no new objects.
    pub terminating: bool,
    /// Name of the definition.
    pub definition: String,
    /// Objects older than this definition may lack its defaults.
    since: Revision,
}

impl Custom {
    /// From one entry of `spec.versions`.
    pub fn new(definition: &Value, version: &Value, compiled: Option<Arc<Compiled>>, since: Revision) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = text(&definition["spec"]["names"]["kind"]);
        let group = text(&definition["spec"]["group"]);
        let deprecation = (version["deprecated"] == true).then(|| match version["deprecationWarning"].as_str() {
            Some(own) => own.to_owned(),
            None => {
                let better = better_version(definition, version);
                let better = better.map(|name| format!("; use {group}/{name} {kind}")).unwrap_or_default();
                format!("{group}/{} {kind} is deprecated{better}", text(&version["name"]))
            }
        });
        let scale = &version["subresources"]["scale"];
        Self {
            compiled,
            stored: None,
            conversion: None,
            columns: columns(version),
            selectable: selectable(version),
            scale: scale.is_object().then(|| ScalePaths {
                spec: text(&scale["specReplicasPath"]),
                status: text(&scale["statusReplicasPath"]),
                selector: scale["labelSelectorPath"].as_str().map(ToOwned::to_owned),
            }),
            deprecation,
            terminating: !definition["metadata"]["deletionTimestamp"].is_null(),
            definition: text(&definition["metadata"]["name"]),
            since,
        }
    }

    /// With the schema of the version objects are stored in, whose defaults they get too.
    #[must_use]
    pub fn stored_as(mut self, stored: Option<Arc<Compiled>>) -> Self {
        self.stored = stored;
        self
    }

    /// With the way to and from the version objects are stored in.
    #[must_use]
    pub fn converted_by(mut self, conversion: Option<Conversion>) -> Self {
        self.conversion = conversion;
        self
    }

    /// Whether objects are converted to and from the version they are stored in.
    pub fn converts(&self) -> bool {
        self.conversion.is_some()
    }

    /// Brings a stored object into this version.
    pub fn show(&self, object: &mut Value) {
        if let Some(conversion) = self.conversion {
            (conversion.show)(object);
            self.prune(object);
        }
    }

    /// Brings an object of this version into that in which it is stored.
    pub fn store(&self, object: &mut Value) {
        if let Some(conversion) = self.conversion {
            (conversion.store)(object);
        }
    }

    /// The walker over its schema.
    pub fn typed(&self) -> Option<Typed<'_>> {
        static NO_TYPES: std::sync::LazyLock<Types> = std::sync::LazyLock::new(Types::default);
        Some(Typed::new(&NO_TYPES, self.compiled.as_ref()?.schema()))
    }

    /// Its schema.
    pub fn schema(&self) -> Option<&Schema> {
        self.compiled.as_ref().map(|compiled| compiled.schema())
    }

    /// Removes fields the schema does not know and returns their paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        self.schema().map(|schema| atoll_schema::prune(object, schema, true)).unwrap_or_default()
    }

    /// Whether an object stored at this revision was written under an older definition.
    pub fn outdates(&self, modified: Revision) -> bool {
        modified < self.since
    }

    /// Fills in defaults.
    pub fn default(&self, object: &mut Value) {
        if let Some(schema) = self.schema() {
            atoll_schema::apply_defaults(object, schema);
        }
    }

    /// Fills in the defaults of the version objects are stored in; nobody owns what only they set.
    pub fn default_stored(&self, object: &mut Value) {
        if let Some(stored) = &self.stored {
            atoll_schema::prune(object, stored.schema(), true);
            atoll_schema::apply_defaults(object, stored.schema());
        }
    }

    /// Whether objects are stored in another version than this one.
    pub fn is_stored_elsewhere(&self) -> bool {
        self.stored.is_some()
    }

    /// Checks an object against schema and rules; `warn` is told of rules broken by what did not change.
    pub fn validate(&self, new: &Value, old: Option<&Value>, warn: impl Fn(String)) -> Vec<FieldError> {
        let forgiven = |error: &FieldError| warn(error.to_string());
        let mut errors = self.compiled.as_ref().map(|own| own.check(new, old, forgiven)).unwrap_or_default();
        if let Some(error) = self.scale.as_ref().and_then(|scale| replicas_error(new, &scale.spec)) {
            // Before the note that rules were not looked at.
            let skipped = errors.last().is_some_and(|last| last.path.as_str().is_empty());
            errors.insert(errors.len() - usize::from(skipped), error);
        }
        errors
    }

    /// Whether a field selector may use this field.
    pub fn selectable(&self, path: &str) -> bool {
        self.selectable.iter().any(|(own, _)| own == path)
    }

    /// The text of a selectable field.
    pub fn field(&self, object: &Value, path: &str) -> Option<String> {
        let (_, json_path) = self.selectable.iter().find(|(own, _)| own == path)?;
        Some(match json_path.first(object) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        })
    }

    /// Where replicas are.
    pub fn scale(&self) -> Option<&ScalePaths> {
        self.scale.as_ref()
    }

    /// Column definitions of a table.
    pub fn columns(&self) -> Value {
        let mut all = vec![json!({
            "name": "Name", "type": "string", "format": "name", "priority": 0,
            "description": "Name of the object, unique within its namespace.",
        })];
        all.extend(self.columns.iter().map(|column| {
            json!({"name": column.name, "type": column.ty, "format": column.format,
                   "description": column.description, "priority": column.priority})
        }));
        if self.columns.is_empty() {
            all.push(json!({"name": "Age", "type": "date", "format": "", "priority": 0,
                            "description": "Time since the object was created."}));
        }
        Value::Array(all)
    }

    /// Cells of a row.
    pub fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        let mut cells = vec![object["metadata"]["name"].clone()];
        cells.extend(self.columns.iter().map(|column| cell(column, object, now)));
        if self.columns.is_empty() {
            cells.push(age(&object["metadata"]["creationTimestamp"], now));
        }
        cells
    }
}

/// What is wrong with the number of replicas that the scale subresource shows.
fn replicas_error(object: &Value, path: &str) -> Option<FieldError> {
    let parts: Vec<&str> = path.split('.').filter(|part| !part.is_empty()).collect();
    let fault = |value: i64, why: String| Some(FieldError::invalid(atoll_meta::FieldPath::new(path), value, why));
    let kind = |value: &Value| match value {
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        Value::Null => "<nil>",
    };
    let mut value = object;
    for (at, part) in parts.iter().enumerate() {
        let Value::Object(map) = value else {
            let here = parts[..=at].iter().map(|part| format!(".{part}")).collect::<String>();
            let (shown, kind) = (text(value), kind(value));
            let why =
                format!("{here} accessor error: {shown} is of the type {kind}, expected map[string]interface{{}}");
            return fault(0, why);
        };
        value = map.get(*part)?;
    }
    match value.as_i64() {
        Some(number) if number < 0 => fault(number, "should be a non-negative integer".to_owned()),
        Some(_) => None,
        None => {
            let why = format!("{path} accessor error: {} is of the type {}, expected int64", text(value), kind(value));
            fault(0, why)
        }
    }
}

/// The best version that is served and not deprecated, if it is newer.
fn better_version<'a>(definition: &'a Value, version: &Value) -> Option<&'a str> {
    let rank = |version: &Value| crate::discovery::priority(version["name"].as_str().unwrap_or_default());
    let all = definition["spec"]["versions"].as_array()?.iter();
    let good =
        all.filter(|other| other["served"] == true && other["deprecated"] != true && rank(other) > rank(version));
    good.max_by_key(|other| rank(other)).and_then(|other| other["name"].as_str())
}

fn cell(column: &Column, object: &Value, now: i64) -> Value {
    let found = column.path.find(object);
    let shown = |first: &&&Value| column.missing.is_null() || ***first != "";
    let Some(first) = found.first().filter(shown) else { return column.missing.clone() };
    match column.ty.as_str() {
        "integer" => first.as_i64().map_or(Value::Null, Value::from),
        "number" => first.as_f64().map_or(Value::Null, Value::from),
        "boolean" => first.as_bool().map_or(Value::Null, Value::from),
        "date" => age(first, now),
        _ => {
            let texts: Vec<String> = found.iter().map(|value| text(value)).collect();
            texts.join(",").into()
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn age(value: &Value, now: i64) -> Value {
    match value.as_str().and_then(time::parse) {
        Some(then) => time::age(jiff::SignedDuration::from_secs(now - then.as_second())).into(),
        None => "<unknown>".into(),
    }
}

fn columns(version: &Value) -> Vec<Column> {
    let list = version["additionalPrinterColumns"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    list.iter()
        .filter_map(|column| {
            Some(Column {
                name: text(&column["name"]),
                ty: text(&column["type"]),
                format: text(&column["format"]),
                description: match text(&column["description"]) {
                    none if none.is_empty() => {
                        format!("Custom resource definition column (in JSONPath format): {}", text(&column["jsonPath"]))
                    }
                    own => own,
                },
                priority: column["priority"].as_i64().unwrap_or_default(),
                path: JsonPath::parse(column["jsonPath"].as_str()?).ok()?,
                missing: column["missing"].clone(),
            })
        })
        .collect()
}

fn selectable(version: &Value) -> Vec<(String, JsonPath)> {
    let list = version["selectableFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(|field| {
            let text = field["jsonPath"].as_str()?;
            Some((text.trim_start_matches('.').to_owned(), JsonPath::parse(text).ok()?))
        })
        .collect()
}
