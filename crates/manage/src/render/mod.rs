//! Templates as Clusterpedia's policies write them: the language of Go's `text/template` over trees of
//! JSON, with the functions of it and of sprig that make names, addresses and conditions. Functions
//! nobody knows are refused when a template is read, not when it is used.

mod eval;
mod function;
mod lex;
mod parse;

use serde_json::Value;

/// Longest text a template may make.
const LONGEST: usize = 1024 * 1024;

/// What stands where a field is missing, as Go writes it.
pub const MISSING: &str = "<no value>";

/// A template that was understood.
#[derive(Debug)]
pub struct Template(Vec<parse::Node>);

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse::nodes(lex::pieces(text)?).map(Self)
    }

    /// The text it makes of a tree.
    pub fn render(&self, data: &Value) -> Result<String, String> {
        eval::render(&self.0, data)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn made(text: &str, data: &Value) -> Result<String, String> {
        Template::parse(text)?.render(data)
    }

    #[test]
    fn templates_make_what_go_makes_of_them() {
        let data = json!({
            "name": "one", "list": ["a", "b"], "map": {"x": 1, "y": 2}, "number": 3, "yes": true, "empty": "",
            "deep": {"er": {"est": "d"}}, "secret": "c2Vj",
        });
        let table = [
            ("plain", "plain"),
            ("karmada-{{ .name }}", "karmada-one"),
            ("{{.deep.er.est}}", "d"),
            ("{{ .none.at.all }}", MISSING),
            ("{{ $.name }}{{ $x := .number }}{{ $x }}", "one3"),
            ("{{- /* said */ -}} a  {{- .name -}}  b", "aoneb"),
            ("{{ if .empty }}a{{ else if .yes }}b{{ else }}c{{ end }}", "b"),
            ("{{ if and .yes (ne .name \"\") (not .empty) }}t{{ end }}", "t"),
            ("{{ if eq .name \"two\" \"one\" }}t{{ end }}", "t"),
            ("{{ if ne .missing \"\" }}t{{ end }}", "t"),
            ("{{ range .list }}[{{ . }}{{ $.name }}]{{ end }}", "[aone][bone]"),
            ("{{ range $i, $v := .list }}{{ $i }}{{ $v }}{{ end }}", "0a1b"),
            ("{{ range $k, $v := .map }}{{ $k }}={{ $v }};{{ end }}", "x=1;y=2;"),
            ("{{ range .none }}a{{ else }}nothing{{ end }}", "nothing"),
            ("{{ with .deep.er }}{{ .est }}{{ else }}no{{ end }}", "d"),
            ("{{ $s := \"\" }}{{ range .list }}{{ $s = . }}{{ end }}{{ $s }}", "b"),
            ("{{ .name | upper | printf \"%s-%d-%q\" .name .number }}", "one-3-\"ONE\""),
            ("{{ index .list 1 }}{{ index .map \"x\" }}{{ len .list }}", "b12"),
            ("{{ .secret | b64dec }} {{ \"sec\" | b64enc }}", "sec c2Vj"),
            ("{{ .missing | default \"d\" }}{{ .name | default \"d\" }}", "done"),
            ("{{ if gt .number 2 }}g{{ end }}{{ if le .number 2 }}l{{ end }}", "g"),
            ("{{ trimPrefix \"o\" .name }}{{ .name | replace \"n\" \"m\" }}", "neome"),
            ("{{ `raw {{ \"x\" }}` }}", "raw {{ \"x\" }}"),
            ("{{ toJson .map }}", "{\"x\":1,\"y\":2}"),
            ("{{ join \"-\" .list }}{{ ternary \"a\" \"b\" .yes }}{{ coalesce .empty .name }}", "a-baone"),
            ("{{ (index .list 0) }}{{ hasPrefix \"on\" .name }}", "atrue"),
            ("{{ print .name .list }}", "one[a b]"),
        ];
        for (text, wanted) in table {
            assert_eq!(made(text, &data).as_deref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn the_condition_of_the_documentation_is_understood() {
        let text = "{{ if ne .source.spec.apiEndpoint \"\" }}\n  {{ range .source.status.conditions }}\n    \
                    {{ if eq .type \"Ready\" }}{{ if eq .status \"True\" }} true {{ end }}{{ end }}\n  {{ end }}\n{{ end }}";
        let source = |status: &str| json!({"source": {"spec": {"apiEndpoint": "https://a"}, "status": {"conditions": [{"type": "X", "status": "True"}, {"type": "Ready", "status": status}]}}});
        assert_eq!(made(text, &source("True")).unwrap().trim(), "true");
        assert_eq!(made(text, &source("False")).unwrap().trim(), "");
    }

    #[test]
    fn what_is_not_understood_is_refused_with_a_reason() {
        let table = [
            ("{{ .name", "not closed"),
            ("{{ if .a }}x", "has no end"),
            ("{{ end }}", "nothing to end"),
            ("{{ env \"HOME\" }}", "function \"env\" is not known"),
            ("{{ .a | genPrivateKey }}", "function \"genPrivateKey\" is not known"),
            ("{{ $x }}", "variable $x is not known"),
            ("{{ eq .a }}", "eq"),
            ("{{ index .a 1 }}", "index"),
            ("{{ template \"x\" }}", "template"),
            ("{{ \"open }}", "not closed"),
            ("{{ }}", "empty"),
        ];
        for (text, why) in table {
            let refused = made(text, &json!({"a": "text"})).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        let deep = format!("{}x{}", "{{ if . }}".repeat(500), "{{ end }}".repeat(500));
        assert!(made(&deep, &json!(1)).unwrap_err().contains("deep"));
        let long = "{{ range .l }}{{ range $.l }}{{ range $.l }}0123456789{{ end }}{{ end }}{{ end }}";
        assert!(made(long, &json!({"l": vec![1; 100]})).unwrap_err().contains("longer"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_fall_over(text in "[ .$a-c\"`|:={}()-]{0,40}|(\\{\\{ (if|range|with|end|else|\\.a|\\$x|len|\\(|\\)|:=|\\|| )* \\}\\}){0,6}") {
            if let Ok(template) = Template::parse(&text) {
                let _ = template.render(&json!({"a": {"b": [1, "c"]}}));
            }
        }
    }
}
