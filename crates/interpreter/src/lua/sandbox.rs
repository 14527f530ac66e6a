//! A Lua machine in which scripts reach nothing but their objects.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mlua::{
    Error as LuaError, Function, HookTriggers, Lua, LuaOptions, MultiValue, Result as LuaResult, StdLib, Table,
    Value as LuaValue, VmState,
};
use serde_json::Value;

use super::clock::Clock;
use super::convert::Marks;
use super::{Script, kube, os, text};
use crate::Error;

/// How long one call may take.
const TIME: Duration = Duration::from_secs(1);

/// How much memory one machine may have.
const MEMORY: usize = 64 << 20;

/// A machine that holds more than this after a call is not kept.
const KEPT: usize = 8 << 20;

/// How many instructions run before the clock is asked.
const INSTRUCTIONS: u32 = 1000;

/// What scripts get of the basic functions.
const BASIC: [&str; 11] =
    ["assert", "error", "ipairs", "next", "pairs", "select", "tonumber", "tostring", "type", "unpack", "_VERSION"];

/// What they would need to get out, or to spoil the machine for the next call.
const FORBIDDEN: [&str; 15] = [
    "collectgarbage",
    "dofile",
    "gcinfo",
    "getfenv",
    "getmetatable",
    "load",
    "loadfile",
    "loadstring",
    "module",
    "newproxy",
    "rawequal",
    "rawget",
    "rawset",
    "setfenv",
    "setmetatable",
];

/// The library's own shifts entries without a bound.
const INSERT: &str = "
    local select, error, type = ...
    return function(list, ...)
        local count, at, value = select('#', ...), ...
        local last = #list + 1
        if count == 1 then list[last] = at return end
        if count ~= 2 or type(at) ~= 'number' or at < 1 then error('wrong arguments to insert', 2) end
        for index = last, at + 1, -1 do list[index] = list[index - 1] end
        list[at] = value
    end";

/// One machine. Each call sees fresh globals, so that no call learns of another.
pub struct Vm {
    lua: Lua,
    /// What every script finds.
    base: Table,
    marks: Arc<Marks>,
    clock: Arc<Clock>,
    /// Compiled scripts.
    chunks: HashMap<usize, Function>,
}

impl Vm {
    pub fn new() -> LuaResult<Self> {
        let lua = Lua::new_with(StdLib::TABLE | StdLib::STRING | StdLib::MATH, LuaOptions::new())?;
        let clock = Arc::new(Clock::new());
        let marks = Arc::new(Marks::new(&lua)?);
        let base = base(&lua, &marks, &clock)?;
        let own = Arc::clone(&clock);
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(INSTRUCTIONS), move |_, _| {
            if own.is_over() { Err(LuaError::runtime("time limit exceeded")) } else { Ok(VmState::Continue) }
        })?;
        lua.set_memory_limit(MEMORY)?;
        Ok(Vm { lua, base, marks, clock, chunks: HashMap::new() })
    }

    /// Whether it can serve further calls.
    pub fn is_light(&self) -> bool {
        self.lua.used_memory() < KEPT
    }

    /// Whether a text is a script.
    pub fn compile(&self, source: &str) -> Result<Function, Error> {
        // Compiled code could do anything.
        if source.as_bytes().first() == Some(&0x1b) {
            return Err(Error::Compile("it is compiled code".into()));
        }
        let chunk = self.lua.load(source).set_name("=script").set_mode(mlua::chunk::ChunkMode::Text);
        chunk.into_function().map_err(|error| Error::Compile(message(&error).into()))
    }

    /// Calls a function of a script; the answers, as many as there are.
    pub fn call(&mut self, script: &Script, function: &'static str, args: &[&Value]) -> Result<Vec<LuaValue>, Error> {
        let chunk = match self.chunks.get(&script.id) {
            Some(chunk) => chunk.clone(),
            None => {
                let chunk = self.compile(&script.source)?;
                self.chunks.insert(script.id, chunk.clone());
                chunk
            }
        };
        self.clock.begin(TIME);
        let answer = self.enter(&chunk, function, args);
        match answer {
            Ok(Some(values)) => Ok(values.into_vec()),
            Ok(None) => Err(Error::NoFunction(function)),
            Err(error) => Err(self.error(function, &error)),
        }
    }

    fn enter(&self, chunk: &Function, function: &str, args: &[&Value]) -> LuaResult<Option<MultiValue>> {
        let globals = self.lua.create_table()?;
        let behind = self.lua.create_table()?;
        behind.raw_set("__index", &self.base)?;
        globals.set_metatable(Some(behind))?;
        globals.raw_set("_G", &globals)?;
        chunk.set_environment(globals.clone())?;
        chunk.call::<()>(())?;
        let LuaValue::Function(function) = globals.raw_get::<LuaValue>(function)? else { return Ok(None) };
        let args = args.iter().map(|arg| self.marks.write(&self.lua, arg));
        function.call(MultiValue::from_vec(args.collect::<LuaResult<_>>()?)).map(Some)
    }

    /// Reads an answer; `like` are objects it may derive from.
    pub fn read(&self, function: &'static str, value: &LuaValue, like: &[&Value]) -> Result<Option<Value>, Error> {
        self.marks.read(value, like).map_err(|message| Error::Script { function, message: message.into() })
    }

    fn error(&self, function: &'static str, error: &LuaError) -> Error {
        if self.clock.is_over() {
            Error::Time(function)
        } else if is_memory(error) {
            Error::Memory(function)
        } else {
            Error::Script { function, message: message(error).into() }
        }
    }
}

fn is_memory(error: &LuaError) -> bool {
    match error {
        LuaError::MemoryError(_) => true,
        LuaError::CallbackError { cause, .. } | LuaError::WithContext { cause, .. } => is_memory(cause),
        _ => false,
    }
}

/// What a script's author needs to know: the message with its line, without the stack.
fn message(error: &LuaError) -> String {
    match error {
        LuaError::CallbackError { cause, .. } => message(cause),
        LuaError::RuntimeError(text) | LuaError::SyntaxError { message: text, .. } => {
            text.split("\nstack traceback:").next().unwrap_or_default().to_owned()
        }
        other => other.to_string(),
    }
}

/// What every script finds.
fn base(lua: &Lua, marks: &Arc<Marks>, clock: &Arc<Clock>) -> LuaResult<Table> {
    let all = lua.globals();
    let base = lua.create_table()?;
    for name in BASIC {
        base.raw_set(name, all.raw_get::<LuaValue>(name)?)?;
    }
    for name in FORBIDDEN {
        base.raw_set(name, forbidden(lua, name)?)?;
    }
    base.raw_set("print", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
    protected_calls(lua, &base, clock)?;
    let string: Table = all.raw_get("string")?;
    text::install(lua, &string, clock)?;
    let table: Table = all.raw_get("table")?;
    let basics =
        (base.raw_get::<LuaValue>("select")?, base.raw_get::<LuaValue>("error")?, base.raw_get::<LuaValue>("type")?);
    table.raw_set("insert", lua.load(INSERT).set_name("=table").call::<Function>(basics)?)?;
    let math: Table = all.raw_get("math")?;
    for name in ["random", "randomseed"] {
        math.raw_set(name, forbidden(lua, name)?)?;
    }
    for (name, library) in [("string", string), ("table", table), ("math", math), ("os", os::module(lua)?)] {
        base.raw_set(name, read_only(lua, library)?)?;
    }
    let kube = read_only(lua, kube::module(lua, marks)?)?;
    let require = lua.create_function(move |_, name: String| match name.as_str() {
        "kube" => Ok(kube.clone()),
        _ => Err(LuaError::runtime(format!("module '{name}' is not available"))),
    })?;
    base.raw_set("require", require)?;
    Ok(base)
}

fn forbidden(lua: &Lua, name: &'static str) -> LuaResult<Function> {
    lua.create_function(move |_, _: MultiValue| -> LuaResult<()> {
        Err(LuaError::runtime(format!("function '{name}' is not available")))
    })
}

/// A view of a table that cannot be changed: what one script does must not reach another.
fn read_only(lua: &Lua, table: Table) -> LuaResult<Table> {
    let refuse = lua.create_function(|_, _: MultiValue| -> LuaResult<()> {
        Err(LuaError::runtime("libraries cannot be changed"))
    })?;
    let behind = lua.create_table()?;
    behind.raw_set("__index", table)?;
    behind.raw_set("__newindex", refuse)?;
    let view = lua.create_table()?;
    view.set_metatable(Some(behind))?;
    Ok(view)
}

/// `pcall` and `xpcall`, which catch everything but the end of time.
fn protected_calls(lua: &Lua, base: &Table, clock: &Arc<Clock>) -> LuaResult<()> {
    let own = Arc::clone(clock);
    let pcall = lua.create_function(move |lua, (function, args): (LuaValue, MultiValue)| {
        Ok(match attempt(&own, function, args)? {
            Ok(values) => succeeded(values),
            Err(text) => {
                MultiValue::from_vec(vec![LuaValue::Boolean(false), LuaValue::String(lua.create_string(text)?)])
            }
        })
    })?;
    base.raw_set("pcall", pcall)?;
    let own = Arc::clone(clock);
    let xpcall = lua.create_function(move |_, (function, handler): (LuaValue, Function)| {
        Ok(match attempt(&own, function, MultiValue::new())? {
            Ok(values) => succeeded(values),
            Err(text) => {
                let mut values = handler.call::<MultiValue>(text)?;
                values.push_front(LuaValue::Boolean(false));
                values
            }
        })
    })?;
    base.raw_set("xpcall", xpcall)
}

fn succeeded(mut values: MultiValue) -> MultiValue {
    values.push_front(LuaValue::Boolean(true));
    values
}

fn attempt(clock: &Clock, function: LuaValue, args: MultiValue) -> LuaResult<Result<MultiValue, String>> {
    let LuaValue::Function(function) = function else {
        return Ok(Err(format!("attempt to call a {} value", function.type_name())));
    };
    match function.call::<MultiValue>(args) {
        Ok(values) => Ok(Ok(values)),
        Err(error) if clock.is_over() => Err(error),
        Err(error) => Ok(Err(message(&error))),
    }
}
