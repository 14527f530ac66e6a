//! Questions to scripts that users write.

use atoll_interpreter::Operation;
use serde_json::{Value, json};

use crate::case::Case;
use crate::random::Dice;

/// Expressions; `o` is the object.
const EXPRESSIONS: &[&str] = &[
    // Numbers.
    "1",
    "1.0",
    "1.5",
    "-1",
    "0",
    "10 / 2",
    "10 / 4",
    "7 % 3",
    "-7 % 3",
    "7 % -3",
    "2 ^ 10",
    "1e3",
    "0x10",
    "1e15",
    "2 ^ 53",
    "0.1 + 0.2",
    "1 / 3",
    "100000000000000",
    "-0.5",
    "3 == 3.0",
    "1 < 2",
    "'a' < 'b'",
    "10 .. ''",
    "1.0 .. ''",
    "1.5 .. ''",
    "0.1 .. ''",
    "-0.5 .. ''",
    "100 .. 'x'",
    "1e15 .. ''",
    "'10' + 5",
    "'10' * '2'",
    "'0x10' + 0",
    "'a' + 1",
    "nil + 1",
    "1 .. 2",
    "tostring(1)",
    "tostring(1.5)",
    "tostring(-3)",
    "tostring(nil)",
    "tostring(true)",
    "tostring('x')",
    "tostring(1e100)",
    "tonumber('10')",
    "tonumber('1.5')",
    "tonumber(' 7 ')",
    "tonumber('x')",
    "tonumber('')",
    "tonumber('ff', 16)",
    "tonumber('101', 2)",
    "tonumber('1e2')",
    "tonumber(nil)",
    "tonumber(5)",
    "tonumber('0x1F')",
    "tonumber('-3')",
    "tonumber('3 4')",
    "tonumber(true)",
    "math.floor(1.7)",
    "math.ceil(1.2)",
    "math.floor(-1.5)",
    "math.max(1, 5, 3)",
    "math.min(4, 2)",
    "math.abs(-4)",
    "math.huge > 1",
    "math.sqrt(16)",
    "math.fmod(7, 3)",
    "math.modf(3.7)",
    "math.pow(2, 3)",
    "math.pi > 3",
    "math.floor('3.9')",
    "math.max()",
    "math.mod(7, 3)",
    "math.random() < 1",
    "math.exp(0)",
    "math.log(1)",
    "math.floor(nil)",
    "#'abc'",
    "#{1, 2, 3}",
    "# nil",
    "-'2'",
    "not nil",
    "not 0",
    // Logic.
    "nil == false",
    "nil or 'x'",
    "false and 1",
    "0 and 'zero is true'",
    "'' and 'empty is true'",
    "1 and nil or 3",
    "1 == '1'",
    "'1' == 1",
    "({} == {})",
    "1 < '2'",
    "nil < 1",
    "{} < {}",
    "'a' .. nil",
    "'a' .. true",
    "type(nil)",
    "type({})",
    "type('')",
    "type(1)",
    "type(print)",
    "type(o)",
    "type(o.none)",
    "o.none.deeper",
    "type(o.metadata.labels)",
    "o.spec.none == nil",
    // Texts.
    "string.upper('abc')",
    "('abc'):upper()",
    "string.lower('ÄBC')",
    "string.len('äb')",
    "string.sub('hello', 2, 4)",
    "string.sub('hello', -3)",
    "string.sub('hello', 0)",
    "string.sub('hello', 3, 2)",
    "string.sub('hello', 2, 100)",
    "('x'):byte()",
    "string.byte('abc', 1, -1)",
    "string.byte('abc', 10)",
    "string.char(72, 105)",
    "string.reverse('abc')",
    "string.rep('ab', 3)",
    "string.gsub('hello', 'l', 'x')",
    "string.find('hello', 'l')",
    "string.find('hello', 'xyz')",
    "string.find('hello', '')",
    "string.find('a.b', '.', 1, true)",
    "string.find('a+b', '+', 1, true)",
    "string.find('hello', 'l', 4)",
    "string.find('hello', '(l)(l)')",
    "string.find('hello', 'l', -2)",
    "string.match('hello 123', '%d+')",
    "string.match('key=value', '(%w+)=(%w+)')",
    "string.match('  trim  ', '^%s*(.-)%s*$')",
    "string.match('v1.2.3', '^v(%d+)%.(%d+)%.(%d+)$')",
    "string.match('abc', '^b')",
    "string.match('abc', 'b()')",
    "string.match('[x]', '%[(.-)%]')",
    "string.match('f(a(b)c)d', '%b()')",
    "string.match('THE (quick) fox', '%((%a+)%)')",
    "string.match('2026-01-02T03:04:05Z', '(%d+)-(%d+)-(%d+)T')",
    "string.match('hello', '.-o')",
    "string.match('aaa', 'a-')",
    "string.match('aaab', 'a*b')",
    "string.match('x', 'y?x')",
    "string.match('a-b', '[a%-]+')",
    "string.match('ab12', '[^%d]+')",
    "string.match('AbC', '%u%l%u')",
    "string.match('tab\\there', '%s')",
    "string.match('a', '[a')",
    "string.match('a', '%')",
    "string.match('50%', '%d+%%')",
    "string.match('abc', '(a)(b)(c)')",
    "string.match('ü', '%a')",
    "string.match('0x1f', '%x+')",
    "string.match('', '.*')",
    "string.match('a.b.c', '([^.]*)%.')",
    "string.match('abcabc', '(abc)%1')",
    "string.match('nginx:1.25', ':(.+)$')",
    "string.match('hello', 'l+', 4)",
    "string.format('%d', 42)",
    "string.format('%d items', 3)",
    "string.format('%s-%s', 'a', 'b')",
    "string.format('%5.2f', 3.14159)",
    "string.format('%05d', 42)",
    "string.format('%x', 255)",
    "string.format('%q', 'a')",
    "string.format('%%')",
    "string.format('%s', nil)",
    "string.format('%s', true)",
    "string.format('%s', 1)",
    "string.format('%s', 1.5)",
    "string.format('%d', 1.0)",
    "string.format('%g', 1.5)",
    "string.format('%.3f', 2)",
    "string.format('%-5s|', 'ab')",
    "string.format('%5s|', 'ab')",
    "string.format('%c', 65)",
    "string.format('%e', 1)",
    "string.format('%i', 3)",
    "string.format('%s')",
    "string.format('none')",
    "string.format('%X', 255)",
    "string.format('%o', 8)",
    "string.gfind ~= nil",
    "string.dump ~= nil",
    // Tables.
    "table.concat({'a', 'b'}, ',')",
    "table.concat({1, 2, 3})",
    "table.concat({}, ',')",
    "table.concat({'a', 'b', 'c'}, '-', 2, 3)",
    "table.concat({'a', {}})",
    "table.getn({1, 2})",
    "table.maxn({1, 2})",
    "unpack({1, 2, 3})",
    "select('#', 1, 2, 3)",
    "select(2, 'a', 'b')",
    "next({})",
    "next({5})",
    "{1, 2, 3}",
    "{a = 1, b = {c = 'd'}}",
    "{1, nil, 3}",
    "{[1] = 'a', [2] = 'b'}",
    "{[0] = 'a'}",
    "{[5] = 'a'}",
    "{1, a = 2}",
    "{[true] = 1}",
    "{[1.5] = 'x'}",
    "{['1'] = 'x'}",
    "{{}, {}}",
    "{a = {}}",
    "{print}",
    "print",
    "{a = 0/0}",
    "{a = 1/0}",
    "{''}",
    "{a = ''}",
    "{a = false}",
    "{a = 1.0, b = 1.25, c = 100}",
    "{a = 12345678901}",
    "{a = 'ünïcode ☃'}",
    "{a = '\\n\\t\\\\\"'}",
    // Objects.
    "o.spec.replicas",
    "o.spec.replicas + 1",
    "o.spec.replicas / 2",
    "o.spec.ratio * 2",
    "o.spec.list[1]",
    "o.spec.list[0]",
    "#o.spec.list",
    "o.spec.list",
    "o.metadata.name .. '-x'",
    "o.spec.map['a.b/c']",
    "o.spec.map",
    "o.spec.flag",
    "o.spec.empty",
    "o.spec.emptylist",
    "o.spec.null == nil",
    "o.spec.nested.deep.value",
    "o.kind",
    "o.apiVersion",
    // What is and is not there.
    "pcall(error, 'x')",
    "select(2, pcall(error, {code = 5}))",
    "pcall(function() return 1, 2 end)",
    "({pcall(function() error('no') end)})[1]",
    "xpcall(function() return 1 end, print)",
    "assert(1)",
    "assert(nil, 'said')",
    "assert(false)",
    "error('stop')",
    "error({code = 1})",
    "require('kube') ~= nil",
    "require('json')",
    "require('os')",
    "require('string')",
    "io == nil",
    "debug == nil",
    "coroutine == nil",
    "package ~= nil",
    "loadstring('return 1')",
    "load('return 1')",
    "setmetatable({}, {})",
    "getmetatable('')",
    "rawget({1}, 1)",
    "rawequal(1, 1)",
    "rawset({}, 1, 2)",
    "dofile('x')",
    "collectgarbage('count')",
    "_VERSION",
    "_G ~= nil",
    "_G.string ~= nil",
    "getfenv()",
    "newproxy()",
    "module('x')",
    "os == nil",
    "os.getenv == nil",
    "os.execute == nil",
    "os.exit == nil",
    "os.time() > 1700000000",
    "os.time({year = 2026, month = 1, day = 2, hour = 3, min = 4, sec = 5})",
    "os.time({year = 2026, month = 1, day = 2})",
    "os.time({year = 2024, month = 14, day = -3})",
    "os.date('!%Y-%m-%d', 0)",
    "os.date('%Y-%m-%dT%H:%M:%SZ', 1700000000)",
    "os.date('*t', 1700000000)",
    "os.date('%d/%m/%y %I %p %%', 1700000000)",
    "os.date('%A %B %b', 1700000000)",
    "os.date('%F %X', 86399)",
    "os.date('%w %j', 1700000000)",
    "#os.date() > 0",
    "os.time({})",
    "os.time('x')",
    "os.date({})",
    // kube.
    "kube.resourceAdd('1', '500m')",
    "kube.resourceAdd('1Gi', '512Mi')",
    "kube.resourceAdd('100m')",
    "kube.resourceAdd()",
    "kube.resourceAdd(nil, '1')",
    "kube.resourceAdd('1', nil, '2')",
    "kube.resourceAdd('1G', '1Gi')",
    "kube.resourceAdd('1e3', '1')",
    "kube.resourceAdd('x')",
    "kube.resourceAdd(1, 2)",
    "kube.resourceAdd({})",
    "kube.resourceAdd('0', '1Mi')",
    "kube.resourceAdd('0.5', '0.25')",
    "kube.resourceAdd('1500m', '500m')",
    "kube.resourceAdd('-1', '2')",
    "kube.resourceAdd('1.5Gi', '0.5Gi')",
    "kube.resourceAdd('100u', '1m')",
    "kube.resourceAdd('1Ki', '1')",
    "kube.resourceAdd('')",
    "kube.getResourceQuantity('1')",
    "kube.getResourceQuantity('500m')",
    "kube.getResourceQuantity('1Gi')",
    "kube.getResourceQuantity(nil)",
    "kube.getResourceQuantity('-1')",
    "kube.getResourceQuantity('x')",
    "kube.getResourceQuantity(5)",
    "kube.getResourceQuantity('1.5')",
    "kube.getResourceQuantity('1', '2')",
    "kube.getResourceQuantity()",
    "kube.getResourceQuantity('100M')",
    "kube.getResourceQuantity('1n')",
    "kube.accuratePodRequirements(o.spec.template)",
    "kube.accuratePodRequirements({})",
    "kube.accuratePodRequirements({spec = {}})",
    "kube.accuratePodRequirements(nil)",
    "kube.accuratePodRequirements('x')",
    "kube.accuratePodRequirements(o.spec.template, 1)",
    "kube.accuratePodRequirements({spec = {containers = {}}})",
    "kube.accuratePodRequirements({spec = {nodeSelector = {a = 'b'}}})",
    "kube.accuratePodRequirements({spec = {containers = {{resources = {requests = {cpu = '1', memory = '1Gi'}}}}}})",
    "kube.accuratePodRequirements({spec = {containers = {{resources = {requests = {cpu = 1}}}}}})",
    "kube.accuratePodRequirements({spec = {priorityClassName = 'high'}})",
    "kube.accuratePodRequirements({spec = {containers = 'x'}})",
    "kube.getPodDependencies(o.spec.template, 'ns')",
    "kube.getPodDependencies(o.spec.template, nil)",
    "kube.getPodDependencies({}, 'ns')",
    "kube.getPodDependencies(o.spec.template)",
    "kube.getPodDependencies(nil, 'ns')",
    "kube.getPodDependencies({spec = {serviceAccountName = 'x'}}, 'ns')",
    "kube.getPodDependencies({spec = {volumes = {{name = 'v', configMap = {name = 'c'}}}}}, 'other')",
    "kube.getPodDependencies({spec = {}}, 5)",
    "kube.getPodDependencies({spec = {}}, {})",
    "kube.nothing",
    "kube.nothing()",
];

/// Bodies of functions that give a value.
const BODIES: &[&str] = &[
    "local sum = 0 for _, v in ipairs(o.spec.list) do sum = sum + v end return sum",
    "local t = {} for k in pairs(o.spec.map) do t[#t + 1] = k end table.sort(t) return t",
    "local t = {3, 1, 2} table.sort(t) return t",
    "local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return t",
    "local t = {'b', 'a', 1} table.sort(t) return t",
    "local t = {1, 2} table.insert(t, 3) return t",
    "local t = {1, 2} table.insert(t, 1, 0) return t",
    "local t = {1, 2} table.insert(t, 2, 'x') return t",
    "local t = {1, 2} table.insert(t, 9, 'x') return #t",
    "local t = {1, 2} table.insert(t) return t",
    "local t = {1, 2, 3} table.remove(t) return t",
    "local t = {1, 2, 3} return table.remove(t, 1)",
    "local t = {1, 2, 3} table.remove(t, 1) return t",
    "local t = {} return table.remove(t)",
    "local t = {1, 2, 3} t[2] = nil return #t > 0",
    "local t = {1, 2, 3} t[#t] = nil return t",
    "local t = {} for w in string.gmatch('one two  three', '%a+') do t[#t + 1] = w end return t",
    "local t = {} for k, v in string.gmatch('a=1,b=2', '(%w+)=(%w+)') do t[k] = v end return t",
    "local t = {} for p in string.gmatch('a/b//c', '[^/]+') do table.insert(t, p) end return t",
    "local t = {} for p in string.gmatch('a,b,', '([^,]*),') do table.insert(t, p) end return t",
    "local t = {} for i = 1, 5 do t[i] = i * i end return t",
    "local t = {} for i = 10, 1, -3 do t[#t + 1] = i end return t",
    "for i = 1, 3 do if i == 2 then break end end return 1",
    "local i = 0 repeat i = i + 1 until i >= 4 return i",
    "local i = 0 while true do i = i + 1 if i > 6 then break end end return i",
    "local function f(n) if n < 2 then return n end return f(n - 1) + f(n - 2) end return f(12)",
    "local function f(...) return select('#', ...) end return f(nil, nil)",
    "local function f(...) local t = {...} return #t end return f(1, 2, 3)",
    "local function f(...) return arg and arg.n end return f(1, 2)",
    "local a, b, c = 1, 2 return c == nil",
    "local t = o.status or {} t.phase = t.phase or 'Unknown' return t",
    "local c = 0 for _, one in ipairs(o.status.conditions) do if one.status == 'True' then c = c + 1 end end return c",
    "for i, v in ipairs(nil) do end return 1",
    "for k, v in pairs(nil) do end return 1",
    "local t = {n = 1} t.t = t return t",
    "local x = {1} return {a = x, b = x}",
    "local s = '' for i = 1, 100 do s = s .. 'x' end return #s",
    "o.spec.replicas = nil return o.spec.replicas == nil",
    "o.spec.list[#o.spec.list + 1] = 9 return o.spec.list",
    "local t = {} t['a-b'] = 1 t[\"c\"] = 2 return t",
    "return string.format('%s: %d of %d', o.metadata.name, 1, o.spec.replicas)",
    "if o.metadata.labels ~= nil and o.metadata.labels.app == 'it' then return 'yes' end return 'no'",
    "local ok, why = pcall(function() local x = nil return x.y end) return ok",
    "local ok, why = pcall(error, 'said', 0) return why",
    "local s = [[long\ntext]] return s",
    "return #'\\065\\066'",
    "return '\\x'",
    "goto done ::done:: return 1",
    "return 7 // 2",
    "return 1 & 3",
    "local t = {10, 20} local s = 0 for i = #t, 1, -1 do s = s * 100 + t[i] end return s",
    "string.upper = nil return string.upper == nil",
    "x = 5 return x",
    "return undefined_function()",
    "return undefined_variable",
    "return",
    "local t = setmetatable({}, {}) return t",
    "return tostring({}) ~= nil",
    "return math.floor(o.spec.ratio * 10) % 2 == 1",
    "local a = {} a.b = {} a.b.c = {} return a",
    "return {list = {{name = 'a'}, {name = 'b'}}}",
    "local t = {} for i = 3, 1, -1 do t[i] = i end return t",
    "local t = {1, 2, 3, 4} table.remove(t, 2) return t",
    "return table.concat({1, 2.5, 'x'}, ' ')",
    "return next({}, nil) == nil",
    "local keys = 0 for _ in pairs({a = 1, b = 2, 3}) do keys = keys + 1 end return keys",
    "return (function(a, b) return b, a end)(1, 2)",
    "local t = {f = function(self, x) return x + 1 end} return t:f(2)",
    "return o.spec.list[1] == 1 and o.spec.list[2] ~= 1",
    "return tostring(o.spec.replicas) .. '/' .. tostring(o.spec.ratio)",
    "return (('a,b'):find(',', 1, true))",
    "return #table.concat({('x'):rep(3)})",
];

fn thing() -> Value {
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
        "envFrom": [{"configMapRef": {"name": "config"}}], "ports": [], "securityContext": {}});
    json!({"apiVersion": "example.io/v1", "kind": "Thing",
        "metadata": {"name": "it", "namespace": "ns", "generation": 2, "labels": {"app": "it"}, "annotations": {}, "creationTimestamp": null},
        "spec": {"replicas": 3, "ratio": 0.5, "list": [1, 2, 3], "map": {"a.b/c": "x", "d": "y"}, "flag": true,
            "empty": {}, "emptylist": [], "null": null, "nested": {"deep": {"value": "v", "empty": {}, "list": []}},
            "template": {"metadata": {"labels": {}}, "spec": {"serviceAccountName": "robot", "containers": [container],
                "volumes": [{"name": "e", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "secret"}}]}}},
        "status": {"ready": 2, "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}, {"type": "Odd", "status": "False"}], "empty": {}}})
}

fn scripted(operation: Operation, lua: &str) -> Case {
    let mut case = Case::new(operation, &thing());
    case.lua = Some(lua.to_owned());
    case.replicas = 7;
    case
}

/// A value as a field of a status.
fn expressions() -> Vec<Case> {
    let bodies =
        EXPRESSIONS.iter().map(|one| format!("return ({one})")).chain(BODIES.iter().map(|one| (*one).to_owned()));
    let script = |body: String| {
        format!(
            "local kube = require('kube')\nlocal function value(o)\n{body}\nend\nfunction ReflectStatus(o)\nlocal v = value(o)\nreturn {{v = v, t = type(v)}}\nend"
        )
    };
    bodies.map(|body| scripted(Operation::Reflect, &script(body))).collect()
}

/// What each function may give, right and wrong.
fn results() -> Vec<Case> {
    let mut cases = Vec::new();
    for value in [
        "3",
        "2.9",
        "-1",
        "'3'",
        "nil",
        "true",
        "{}",
        "3, nil",
        "3, {}",
        "3, 'x'",
        "3, {resourceRequest = {cpu = '1'}}",
        "3, {resourceRequest = {cpu = 1}}",
        "3, {resourceRequest = {memory = '1Gi', ['example.io/gpu'] = '2'}, namespace = 'ns', priorityClassName = 'p'}",
        "3, {nodeClaim = {nodeSelector = {a = 'b'}}}",
        "3, {resourceRequest = 'x'}",
        "3, {resourceRequest = {cpu = 'x'}}",
        "3, {unknown = 1}",
        "3, kube.accuratePodRequirements(o.spec.template)",
        "1e20",
        "0/0",
        "3, {nodeClaim = {tolerations = {{key = 'k', operator = 'Exists'}}}}",
        "",
    ] {
        cases.push(scripted(
            Operation::Replicas,
            &format!("local kube = require('kube')\nfunction GetReplicas(o) return {value} end"),
        ));
    }
    for value in [
        "true",
        "false",
        "nil",
        "1",
        "'true'",
        "{}",
        "o.status.ready == 2",
        "o.none == 1",
        "o.none.x",
        "o.status.phase == 'Running' and true",
        "not nil",
        "",
    ] {
        cases.push(scripted(Operation::Health, &format!("function InterpretHealth(o) return {value} end")));
    }
    for value in [
        "{}",
        "nil",
        "'x'",
        "{{name = 'a', replicas = 2}}",
        "{{name = 'a', replicas = 2, replicaRequirements = {resourceRequest = {cpu = '1'}}}}",
        "{{replicas = 1}}",
        "{{name = 'a'}}",
        "{name = 'a'}",
        "{{name = 'a', replicas = 1.5}}",
        "{{name = 'a', replicas = '2'}}",
        "{{name = 'a', replicas = 1, replicaRequirements = kube.accuratePodRequirements(o.spec.template)}}",
        "{1}",
        "{{name = 1, replicas = 1}}",
        "",
    ] {
        cases.push(scripted(
            Operation::Components,
            &format!("local kube = require('kube')\nfunction GetComponents(o) return {value} end"),
        ));
    }
    for value in [
        "{}",
        "nil",
        "'x'",
        "{{apiVersion = 'v1', kind = 'Secret', namespace = 'ns', name = 's'}}",
        "{{apiVersion = 'v1', kind = 'Secret', name = 's'}}",
        "{{kind = 'Secret', name = 's'}}",
        "{{apiVersion = 'v1', name = 's'}}",
        "{{apiVersion = 'v1', kind = 'Secret'}}",
        "{{apiVersion = 'v1', kind = 'Secret', labelSelector = {matchLabels = {a = 'b'}}}}",
        "{{apiVersion = 'v1', kind = 'Secret', labelSelector = {}}}",
        "{{apiVersion = 'v1', kind = 'Secret', name = 5}}",
        "kube.getPodDependencies(o.spec.template, o.metadata.namespace)",
        "{apiVersion = 'v1'}",
        "{{apiVersion = 'v1', kind = 'Secret', name = 's', namespace = ''}}",
        "{'x'}",
        "{{apiVersion = 'v1', kind = 'A', name = 'b'}, {apiVersion = 'v1', kind = 'A', name = 'a'}}",
        "{{apiVersion = '', kind = 'A', name = 'b'}}",
        "{{apiVersion = 'v1', kind = 'Secret', name = 's', labelSelector = {matchLabels = {a = 'b'}}}}",
        "{{apiVersion = 'v1', kind = 'A', labelSelector = {matchExpressions = {{key = 'k', operator = 'Exists'}}}}}",
        "",
    ] {
        cases.push(scripted(
            Operation::Dependencies,
            &format!("local kube = require('kube')\nfunction GetDependencies(o) return {value} end"),
        ));
    }
    for value in [
        "{}",
        "nil",
        "'x'",
        "o.status",
        "{a = 1}",
        "o.spec",
        "{1, 2}",
        "o",
        "o.status.conditions",
        "{conditions = o.status.conditions}",
        "",
    ] {
        cases.push(scripted(Operation::Reflect, &format!("function ReflectStatus(o) return {value} end")));
    }
    cases
}

/// Objects that scripts change.
fn changes() -> Vec<Case> {
    let mut cases = Vec::new();
    let bodies = [
        "return o",
        "o.spec.replicas = r return o",
        "o.spec.added = {} return o",
        "o.spec.added = {1} return o",
        "o.spec.empty = nil return o",
        "o.spec.list = {} return o",
        "o.spec.map = {} return o",
        "o.spec.ratio = 1 return o",
        "o.spec.replicas = r / 2 return o",
        "o.spec.nested.deep = {} return o",
        "o.spec = nil return o",
        "return nil",
        "return 'x'",
        "return {}",
        "return {a = 1}",
        "o.metadata.labels = nil return o",
        "o.spec.list[2] = nil return o",
        "o.spec.list[5] = 1 return o",
        "table.remove(o.spec.list) return o",
        "o.spec.x = {y = {}} return o",
        "o.spec.copy = o.spec.map return o",
        "o.spec.self = o return o",
        "o.kind = nil return o",
        "o.spec.template.spec.containers[1].image = 'new' return o",
        "o.spec.template.spec.volumes = {} return o",
        "table.insert(o.spec.template.spec.containers, {name = 'more', args = {}}) return o",
        "return {apiVersion = o.apiVersion, kind = o.kind}",
        "o[1] = 'x' return o",
        "o.metadata.annotations['a/b'] = 'c' return o",
        "o.spec.text = '' return o",
        "return",
        "error('no')",
        "o.spec.none.x = 1 return o",
    ];
    for body in bodies {
        cases.push(scripted(Operation::Revise, &format!("function ReviseReplica(o, r) {body} end")));
        let mut retain = scripted(Operation::Retain, &format!("function Retain(o, r) {body} end"));
        retain.observed = thing();
        retain.observed["spec"]["observed"] = json!({"empty": {}, "list": [], "value": 1});
        cases.push(retain);
    }
    for body in [
        "o.spec.observed = r.spec.observed return o",
        "o.spec.list = r.spec.observed.list return o",
        "o.spec.empty = r.spec.emptylist return o",
        "o.status = r.status return o",
        "return r",
        "o.metadata = r.metadata return o",
    ] {
        let mut retain = scripted(Operation::Retain, &format!("function Retain(o, r) {body} end"));
        retain.observed = thing();
        retain.observed["spec"]["observed"] = json!({"empty": {}, "list": [], "value": 1});
        cases.push(retain);
    }
    cases
}

/// Statuses that scripts put together.
fn sums() -> Vec<Case> {
    let bodies = [
        "local sum = 0 for i = 1, #items do sum = sum + (items[i].status and items[i].status.ready or 0) end o.status = {ready = sum} return o",
        "o.status = o.status or {} for _, item in ipairs(items) do o.status[item.clusterName] = item.status end return o",
        "o.status = {count = #items} return o",
        "for _, item in ipairs(items) do o.status = item.status end return o",
        "o.status = {items = items} return o",
        "o.status = {} return o",
        "o.status = nil return o",
        "if items == nil then o.status = {none = true} end return o",
        "local t = {} for _, item in ipairs(items) do t[#t + 1] = item.clusterName end o.status = {names = table.concat(t, ',')} return o",
        "local all = {} for _, item in ipairs(items) do for _, c in ipairs((item.status or {}).conditions or {}) do c.message = item.clusterName .. ': ' .. (c.message or '') table.insert(all, c) end end o.status = {conditions = all} return o",
        "return items[1].status.ready",
        "o.status.health = items[1] and items[1].health o.status.applied = items[1] and items[1].applied return o",
        "return {status = {x = 1}}",
    ];
    let whole = json!({"ready": 2, "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "empty": {}, "list": []});
    let statuses = [Value::Null, json!({"ready": 1}), whole, json!({}), json!({"ready": 1.5})];
    let mut dice = Dice::new(7);
    let mut cases = Vec::new();
    for body in bodies {
        for _ in 0..6 {
            let mut case = scripted(Operation::Aggregate, &format!("function AggregateStatus(o, items) {body} end"));
            case.items = (0..dice.below(4))
                .map(|number| {
                    let status = dice.pick(&statuses);
                    (format!("member{number}"), status.clone())
                })
                .collect();
            cases.push(case);
        }
    }
    cases
}

/// Scripts that are none.
fn broken() -> Vec<Case> {
    [
        "",
        "x",
        "function Other() end",
        "InterpretHealth = 5",
        "function InterpretHealth(o) return true",
        "local function InterpretHealth(o) return true end",
        "return function() end",
        "error('at once')",
        "InterpretHealth = function(o) return true end",
        "function InterpretHealth() return true end",
        "function InterpretHealth(a, b) return b == nil end",
        "-- only a comment",
        "local x <const> = 5",
    ]
    .iter()
    .filter(|lua| !lua.is_empty())
    .map(|lua| scripted(Operation::Health, lua))
    .collect()
}

/// Values that Lua cannot hold.
fn odd() -> Vec<Case> {
    ["return o", "o.spec.replicas = r return o"]
        .iter()
        .map(|body| {
            let mut case = scripted(Operation::Revise, &format!("function ReviseReplica(o, r) {body} end"));
            case.object["spec"]["big"] = json!(9_007_199_254_740_993_u64);
            case.object["spec"]["nothing"] = json!([null, 1]);
            case
        })
        .collect()
}

pub fn cases() -> Vec<Case> {
    [expressions(), results(), changes(), sums(), broken(), odd()].concat()
}
