//! Scripts reach nothing, and are stopped when they take too much.
#![allow(clippy::unwrap_used, missing_docs)]

mod customized;

use std::time::{Duration, Instant};

use atoll_interpreter::Error;
use customized::{interpreter, thing};
use serde_json::{Value, json};

fn run(body: &str) -> Result<Option<Value>, Error> {
    let script = format!("function ReflectStatus(obj) {body} end");
    interpreter(&[("statusReflection", &script)]).try_reflect(&thing(json!({"status": {"list": [1, 2, 3]}})))
}

#[test]
fn what_runs_too_long_is_stopped() {
    let endless = [
        "while true do end",
        "local function f() while true do end end while true do pcall(f) end",
        "while true do xpcall(function() while true do end end, function() end) end",
        "local s = string.rep('a', 100000) return { at = s:find('.-.-.-.-.-b') }",
        "local s = string.rep('a', 1000000) while true do s:find(string.rep('a', 1000) .. 'b', 1, true) end",
        "table.insert({ 1 }, 1, 2) for i = 1, 1e12 do end",
        "local t = {} for w in function() return 1 end do end",
        "string.gsub(string.rep('a', 100000), 'a', function() while true do end end)",
    ];
    for body in endless {
        let start = Instant::now();
        assert_eq!(run(body), Err(Error::Time("ReflectStatus")), "{body}");
        assert!(start.elapsed() < Duration::from_secs(5), "{body} took {:?}", start.elapsed());
    }
    assert_eq!(
        Error::Time("ReflectStatus").to_string(),
        "script stopped in ReflectStatus: it ran longer than the time limit"
    );
}

#[test]
fn what_takes_too_much_memory_is_stopped() {
    let hungry = [
        "local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 100000) .. i end",
        "local s = 'x' while true do s = s .. s end",
        "local t, n = {}, 0 while true do n = n + 1 t = { t, string.rep('x', 100000) .. n } end",
    ];
    for body in hungry {
        assert_eq!(run(body), Err(Error::Memory("ReflectStatus")), "{body}");
    }
}

#[test]
fn answers_without_end_are_refused() {
    let cases = [
        ("local t = {} t.t = t return t", "answer nests too deep, or contains itself"),
        ("local t = { 1 } for i = 1, 60 do t = { t, t } end return { t = t }", "answer is too large"),
        ("return { [1] = 1, [3] = 3 }", "answer has a list with gaps"),
        ("return { 1, a = 2 }", "answer has a table that is both list and object"),
        ("return { f = print }", "answer contains a function"),
        ("return { n = 1 / 0 }", "answer has a number that is not finite"),
        ("return { [true] = 1 }", "answer has a table with a boolean as key"),
    ];
    for (body, why) in cases {
        let error = run(body).unwrap_err().to_string();
        assert_eq!(error, format!("script failed in ReflectStatus: {why}"), "{body}");
    }
    assert_eq!(run("return { 1, 2 }").unwrap_err().to_string(), "ReflectStatus gave a list, wanted an object");
    assert_eq!(run("return 5").unwrap_err().to_string(), "ReflectStatus gave integer, wanted a table");
}

#[test]
fn nothing_outside_can_be_reached() {
    let ways = [
        "io",
        "os.execute",
        "os.getenv",
        "os.exit",
        "os.remove",
        "debug",
        "package",
        "coroutine",
        "string.dump",
        "_G.io",
    ];
    for way in ways {
        assert_eq!(run(&format!("return {{ none = {way} == nil }}")), Ok(Some(json!({"none": true}))), "{way}");
    }
    let calls = [
        "dofile('/etc/passwd')",
        "loadfile('/etc/passwd')",
        "load(function() end)",
        "loadstring('return 1')()",
        "getfenv(0)",
        "setfenv(1, {})",
        "getmetatable('')",
        "setmetatable({}, {})",
        "rawset(_G, 'a', 1)",
        "rawget(_G, 'a')",
        "rawequal(1, 1)",
        "newproxy(true)",
        "module('x')",
        "collectgarbage()",
        "require('io')",
        "require('os')",
        "math.random()",
        "math.randomseed(1)",
    ];
    for call in calls {
        let error = run(&format!("{call} return {{}}")).unwrap_err().to_string();
        assert!(error.contains("is not available"), "{call}: {error}");
    }
    for change in ["string.rep = nil", "table.insert = 1", "math.pi = 3", "require('kube').resourceAdd = nil"] {
        let error = run(&format!("{change} return {{}}")).unwrap_err().to_string();
        assert!(error.contains("libraries cannot be changed"), "{change}: {error}");
    }
}

#[test]
fn deep_recursion_and_long_patterns_only_fail_the_script() {
    let cases = [
        "local function f() return 1 + f() end f()",
        "local function f() pcall(f) return f() + 1 end f()",
        "string.find(string.rep('a', 100000), string.rep('a?', 100000))",
        "string.find('a', string.rep('(', 100000))",
        "string.rep('x', 1e9)",
        "string.rep('x', 2 ^ 62)",
        "unpack({}, 1, 1e8)",
        "string.gsub(string.rep('a', 1000000), 'a', 'aaaa')",
        "table.insert({}, -1e9, 1)",
        "error({ code = 1 })",
        "error()",
    ];
    for body in cases {
        let error = run(body).unwrap_err();
        assert!(matches!(error, Error::Script { .. } | Error::Memory(_) | Error::Time(_)), "{body}: {error}");
    }
}

#[test]
fn an_interpreter_works_on_after_a_script_was_stopped() {
    let it = interpreter(&[(
        "statusReflection",
        "function ReflectStatus(obj) if obj.status.loop then while true do end end return { ok = true } end",
    )]);
    assert!(it.try_reflect(&thing(json!({"status": {"loop": true}}))).is_err());
    assert_eq!(it.reflect(&thing(json!({"status": {}}))), Some(json!({"ok": true})));
}

#[test]
fn everyday_functions_work() {
    let cases = [
        (
            "return { a = ('a,b'):find(',') , b = #obj.status.list, c = select('#', 1, 2), d = type(tonumber('5')) }",
            json!({"a": 2, "b": 3, "c": 2, "d": "number"}),
        ),
        (
            "local out = {} for word in string.gmatch('one two', '%a+') do table.insert(out, word) end return { out = out }",
            json!({"out": ["one", "two"]}),
        ),
        ("local s, n = string.gsub('hello', 'l', { l = 'L' }) return { s = s, n = n }", json!({"s": "heLLo", "n": 2})),
        ("return { s = string.gsub('a=1', '(%w)=(%w)', '%2=%1') }", json!({"s": "1=a"})),
        ("local ok, why = pcall(error, 'oops') return { ok = ok, why = why }", json!({"ok": false, "why": "oops"})),
        (
            "local ok, a, b = pcall(function(x) return x, 2 end, 1) return { ok = ok, a = a, b = b }",
            json!({"ok": true, "a": 1, "b": 2}),
        ),
        (
            "return { s = string.format('%s-%d', 'a', 5), m = math.max(1, 2), f = math.floor(1.5), u = ('x'):upper() }",
            json!({"s": "a-5", "m": 2, "f": 1, "u": "X"}),
        ),
        (
            "local t = { 3, 1, 2 } table.sort(t) table.remove(t, 1) table.insert(t, 1, 9) return { t = table.concat(t, ',') }",
            json!({"t": "9,2,3"}),
        ),
        (
            "for k, v in pairs(obj.status.list) do obj.status.list[k] = v * 2 end return { list = obj.status.list }",
            json!({"list": [2, 4, 6]}),
        ),
        ("obj.status.list[#obj.status.list + 1] = 4 return obj.status", json!({"list": [1, 2, 3, 4]})),
        (
            "local list = obj.status.list for i = #list, 1, -1 do list[i] = nil end return obj.status",
            json!({"list": []}),
        ),
        ("obj.status.list = nil return obj.status", json!({})),
        (
            "print('hello') assert(true) return { g = _G.string == string, n = next({}) == nil }",
            json!({"g": true, "n": true}),
        ),
    ];
    for (body, wanted) in cases {
        assert_eq!(run(body), Ok(Some(wanted)), "{body}");
    }
}
