//! Stand-in until the schema crate has its own.
use std::sync::Arc;
use atoll_meta::{FieldError, FieldPath};
use atoll_schema::Schema;
use serde_json::Value;
/// A compiled schema.
pub struct Compiled { schema: Schema }
impl Compiled {
    /// Its schema.
    pub fn schema(&self) -> &Schema { &self.schema }
    /// Validates.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
        atoll_schema::validate(new, &self.schema, old, &FieldPath::root())
    }
}
/// Shares schemas.
#[derive(Default)]
pub struct Interner;
impl Interner {
    /// Compiles.
    pub fn get(&self, json: &Value) -> Result<Arc<Compiled>, Vec<FieldError>> {
        let schema = Schema::from_json(json).map_err(|why| vec![FieldError::invalid(FieldPath::root(), Value::Null, why.to_string())])?;
        Ok(Arc::new(Compiled { schema }))
    }
}
