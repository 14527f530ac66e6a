//! Objects as Lua sees them, and back.
//!
//! Lua knows neither null nor whether an empty table is a list or an object. Tables made here
//! are marked with what they were; for tables a script makes, the object the answer derives
//! from is asked.

use mlua::{Lua, Table, Value as LuaValue};
use serde_json::{Map, Number, Value};

/// How deep objects may nest.
const DEPTH: usize = 128;

/// How many values an answer may have. Tables that contain one another would have no end.
const VALUES: usize = 500_000;

/// How many bytes the texts of an answer may have.
const BYTES: usize = 16 << 20;

/// Metatables that say what a table was.
pub struct Marks {
    list: Table,
    object: Table,
}

impl Marks {
    pub fn new(lua: &Lua) -> mlua::Result<Self> {
        Ok(Marks { list: lua.create_table()?, object: lua.create_table()? })
    }

    /// A value for Lua.
    pub fn write(&self, lua: &Lua, value: &Value) -> mlua::Result<LuaValue> {
        self.write_at(lua, value, 0)
    }

    fn write_at(&self, lua: &Lua, value: &Value, depth: usize) -> mlua::Result<LuaValue> {
        if depth > DEPTH {
            return Err(mlua::Error::runtime("object nests too deep"));
        }
        Ok(match value {
            Value::Null => LuaValue::Nil,
            Value::Bool(value) => LuaValue::Boolean(*value),
            Value::Number(number) => LuaValue::Number(number.as_f64().unwrap_or_default()),
            Value::String(text) => LuaValue::String(lua.create_string(text)?),
            Value::Array(list) => {
                let table = lua.create_table_with_capacity(list.len(), 0)?;
                for (index, element) in list.iter().enumerate() {
                    // A gap would end the list early.
                    let element = match element {
                        Value::Null => LuaValue::NULL,
                        element => self.write_at(lua, element, depth + 1)?,
                    };
                    table.raw_set(index + 1, element)?;
                }
                table.set_metatable(Some(self.list.clone()))?;
                LuaValue::Table(table)
            }
            Value::Object(map) => {
                let table = lua.create_table_with_capacity(0, map.len())?;
                for (key, value) in map {
                    table.raw_set(key.as_str(), self.write_at(lua, value, depth + 1)?)?;
                }
                table.set_metatable(Some(self.object.clone()))?;
                LuaValue::Table(table)
            }
        })
    }

    /// A value from Lua; `None` for nil. `like` are objects it may derive from.
    pub fn read(&self, value: &LuaValue, like: &[&Value]) -> Result<Option<Value>, String> {
        let mut reader = Reader { marks: self, values: 0, bytes: 0 };
        reader.value(value, &Like::of(like), 0)
    }
}

/// The values at one place of the objects an answer may derive from.
#[derive(Copy, Clone, Default)]
struct Like<'a>([Option<&'a Value>; 2]);

impl<'a> Like<'a> {
    fn of(all: &[&'a Value]) -> Self {
        Like([all.first().copied(), all.get(1).copied()])
    }

    fn field(&self, key: &str) -> Self {
        Like(self.0.map(|value| value?.get(key)))
    }

    fn element(&self, index: usize) -> Self {
        Like(self.0.map(|value| value?.get(index)))
    }

    fn iter(&self) -> impl Iterator<Item = &'a Value> {
        self.0.into_iter().flatten()
    }
}

struct Reader<'m> {
    marks: &'m Marks,
    values: usize,
    bytes: usize,
}

impl Reader<'_> {
    fn value(&mut self, value: &LuaValue, like: &Like<'_>, depth: usize) -> Result<Option<Value>, String> {
        self.values += 1;
        if depth > DEPTH {
            return Err("answer nests too deep, or contains itself".to_owned());
        }
        if self.values > VALUES || self.bytes > BYTES {
            return Err("answer is too large".to_owned());
        }
        Ok(Some(match value {
            LuaValue::Nil => return Ok(None),
            LuaValue::Boolean(value) => Value::Bool(*value),
            LuaValue::Integer(value) => number(*value as f64, like)?,
            LuaValue::Number(value) => number(*value, like)?,
            LuaValue::String(text) => Value::String(self.text(text)),
            LuaValue::Table(table) => return self.table(table, like, depth),
            value if *value == LuaValue::NULL => Value::Null,
            other => return Err(format!("answer contains a {}", other.type_name())),
        }))
    }

    fn text(&mut self, text: &mlua::LuaString) -> String {
        let text = text.to_string_lossy();
        self.bytes += text.len();
        text
    }

    fn table(&mut self, table: &Table, like: &Like<'_>, depth: usize) -> Result<Option<Value>, String> {
        let (mut fields, mut elements) = (Vec::new(), Vec::new());
        for pair in table.pairs::<LuaValue, LuaValue>() {
            let (key, value) = pair.map_err(|error| error.to_string())?;
            match key {
                LuaValue::String(key) => fields.push((self.text(&key), value)),
                LuaValue::Integer(index) => elements.push((index as f64, value)),
                LuaValue::Number(index) => elements.push((index, value)),
                other => return Err(format!("answer has a table with a {} as key", other.type_name())),
            }
        }
        match (fields.is_empty(), elements.is_empty()) {
            (true, true) => Ok(self.empty(table, like)),
            (false, true) => self.object(fields, like, depth).map(Some),
            (true, false) => self.list(elements, like, depth).map(Some),
            (false, false) => Err("answer has a table that is both list and object".to_owned()),
        }
    }

    /// What an empty table is; one that nothing is known of is left out.
    fn empty(&self, table: &Table, like: &Like<'_>) -> Option<Value> {
        let mark = table.metatable();
        if mark.as_ref() == Some(&self.marks.list) {
            return Some(Value::Array(Vec::new()));
        }
        if mark.as_ref() == Some(&self.marks.object) {
            return Some(Value::Object(with_nulls(Map::new(), like)));
        }
        like.iter().find_map(|like| match like {
            Value::Array(_) => Some(Value::Array(Vec::new())),
            Value::Object(_) => Some(Value::Object(Map::new())),
            _ => None,
        })
    }

    fn object(&mut self, fields: Vec<(String, LuaValue)>, like: &Like<'_>, depth: usize) -> Result<Value, String> {
        let mut map = Map::new();
        for (key, value) in fields {
            if let Some(value) = self.value(&value, &like.field(&key), depth + 1)? {
                map.insert(key, value);
            }
        }
        Ok(Value::Object(with_nulls(map, like)))
    }

    fn list(&mut self, mut elements: Vec<(f64, LuaValue)>, like: &Like<'_>, depth: usize) -> Result<Value, String> {
        elements.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut list = Vec::with_capacity(elements.len());
        for (index, (key, value)) in elements.into_iter().enumerate() {
            if key != (index + 1) as f64 {
                return Err("answer has a list with gaps".to_owned());
            }
            let value = self.value(&value, &like.element(index), depth + 1)?;
            list.push(value.unwrap_or_else(|| Value::Object(Map::new())));
        }
        Ok(Value::Array(list))
    }
}

/// Puts nulls back: the script cannot have seen them, so it did not remove them either.
fn with_nulls(mut map: Map<String, Value>, like: &Like<'_>) -> Map<String, Value> {
    for (key, value) in like.0[0].and_then(Value::as_object).into_iter().flatten() {
        if value.is_null() && !map.contains_key(key) {
            map.insert(key.clone(), Value::Null);
        }
    }
    map
}

/// A number as it was written before, if it is still the same; Lua only knows floats.
fn number(value: f64, like: &Like<'_>) -> Result<Value, String> {
    if let Some(same) = like.iter().find(|like| like.as_f64() == Some(value)) {
        return Ok(same.clone());
    }
    // Beyond this floats leave out whole numbers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Ok(Value::Number((value as i64).into()));
    }
    Number::from_f64(value).map(Value::Number).ok_or_else(|| "answer has a number that is not finite".to_owned())
}
