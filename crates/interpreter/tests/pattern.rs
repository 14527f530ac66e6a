//! Our patterns find what Lua's own find.
#![allow(clippy::unwrap_used, missing_docs)]

mod customized;

use customized::{interpreter, thing};
use proptest::prelude::*;
use serde_json::json;

/// Everything that patterns are used for, as one text.
const DESCRIBE: &str = r#"
    function describe(text, pattern, form)
      local function show(...)
        local out = {}
        for i = 1, select('#', ...) do out[i] = tostring((select(i, ...))) end
        return "[" .. table.concat(out, "|") .. "]"
      end
      local function try(f, ...)
        local all = { pcall(f, ...) }
        if not all[1] then return "error" end
        return show(unpack(all, 2, table.maxn(all)))
      end
      local function words()
        local out, count = {}, 0
        for a, b in string.gmatch(text, pattern) do
          count = count + 1
          out[count] = show(a, b)
          if count > 50 then break end
        end
        return table.concat(out, ";")
      end
      return table.concat({
        try(string.find, text, pattern), try(string.find, text, pattern, 2), try(string.find, text, pattern, -2), try(string.find, text, pattern, 1, true),
        try(string.match, text, pattern), try(string.gsub, text, pattern, form), try(string.gsub, text, pattern, form, 1),
        try(string.gsub, text, pattern, { a = "A", b = false }), try(string.gsub, text, pattern, function(one) return one end), try(words),
      }, " ")
    end"#;

fn ours(text: &str, pattern: &str, form: &str) -> String {
    thread_local! {
        static OURS: atoll_interpreter::Interpreter = {
            let script = format!("{DESCRIBE}\nfunction ReflectStatus(o) return {{ out = describe(o.text, o.pattern, o.form) }} end");
            interpreter(&[("statusReflection", &script)])
        };
    }
    let object = thing(json!({"text": text, "pattern": pattern, "form": form}));
    // On a busy machine a call may run out of time.
    let mut answers = (0..10).map(|_| OURS.with(|it| it.try_reflect(&object)));
    let answer = answers.find(|said| !matches!(said, Err(atoll_interpreter::Error::Time(_)))).unwrap();
    answer.unwrap().unwrap()["out"].as_str().unwrap().to_owned()
}

fn theirs(text: &str, pattern: &str, form: &str) -> String {
    let lua = mlua::Lua::new();
    lua.load(DESCRIBE).exec().unwrap();
    let describe: mlua::Function = lua.globals().get("describe").unwrap();
    describe.call((text, pattern, form)).unwrap()
}

#[test]
fn known_patterns_find_what_they_should() {
    let cases = [
        ("hello world", "o", "0"),
        ("hello world", "(o)(.)", "%2%1"),
        ("key = value", "^(%w+)%s*=%s*(%w+)$", "%1"),
        ("abc", "", "-"),
        ("f(a(b)c)d", "%b()", "<%0>"),
        ("THE (quick) fox", "%f[%a]%a+", "w"),
        ("aa bb", "(%a)%1", "%1"),
        ("a.b.c", "%.", "%%"),
        ("x]y", "[]]", ""),
        ("x^y", "[%^y]", ""),
        ("a-z", "[a-]", ""),
        ("abc", "()b()", "%1"),
        ("", "^$", "e"),
        ("aaa", "a-", "x"),
        ("aaa", "a-$", "x"),
        ("aab", "a+b", "%0"),
        ("ab", "%", ""),
        ("ab", "[a", ""),
        ("ab", "(a", ""),
        ("ab", "a)", ""),
        ("ab", "%1", ""),
        ("a\tb", "%s", "_"),
        ("0x1F", "%x+", "h"),
        ("ab", "b*", "-"),
        ("$5", "$%d", "%%"),
        ("a$b", "a$", "!"),
        ("ab", "%f", ""),
        ("ab", "%b", ""),
    ];
    for (text, pattern, form) in cases {
        assert_eq!(ours(text, pattern, form), theirs(text, pattern, form), "{text:?} {pattern:?} {form:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_pattern_finds_what_luas_own_finds(
        text in "[ab1 ().-]{0,8}",
        pattern in proptest::collection::vec(proptest::sample::select(&["a", "b", "1", ".", "%a", "%d", "%S", "%.", "%1", "%b()", "%f[a]", "[ab]", "[^a]", "[a-b]", "[%d-]", "(", ")", "()", "*", "+", "-", "?", "^", "$", " ", "%", "["][..]), 0..7),
        form in proptest::sample::select(&["", "x", "%0", "%1", "%2", "<%0>"][..]),
    ) {
        let pattern = pattern.concat();
        prop_assert_eq!(ours(&text, &pattern, form), theirs(&text, &pattern, form), "{:?} {:?}", text, pattern);
    }
}
