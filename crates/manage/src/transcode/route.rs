//! From verb and path to a method.

use http::Method;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, Value};

use super::template::{Rank, Template};

/// A way to a method.
#[derive(Clone, Debug)]
pub struct Route {
    /// The verb.
    pub verb: Method,
    /// The path template as it is written.
    pub path: String,
    /// The path template.
    pub template: Template,
    /// The field that is the body; `*` is all that is left, empty is none.
    pub body: String,
    /// The method.
    pub method: MethodDescriptor,
}

/// What a path was found to be.
pub struct Found<'a> {
    /// The way.
    pub route: &'a Route,
    /// Fields from the path.
    pub variables: Vec<(&'a str, String)>,
}

/// All ways.
#[derive(Default)]
pub struct Router {
    routes: Vec<Route>,
}

impl Router {
    /// Reads the ways from the options of all methods of a package.
    pub fn new(pool: &DescriptorPool, package: &str) -> Self {
        let mut router = Self::default();
        let Some(extension) = pool.get_extension_by_name("google.api.http") else { return router };
        for service in pool.services().filter(|service| service.package_name() == package) {
            for method in service.methods() {
                let options = method.options();
                if let Value::Message(rule) = options.get_extension(&extension).as_ref() {
                    router.add(rule, &method);
                }
            }
        }
        router
    }

    fn add(&mut self, rule: &DynamicMessage, method: &MethodDescriptor) {
        let text = |message: &DynamicMessage, name: &str| {
            message.get_field_by_name(name).and_then(|value| value.as_str().map(ToOwned::to_owned)).unwrap_or_default()
        };
        let verbs = [
            ("get", Method::GET),
            ("put", Method::PUT),
            ("post", Method::POST),
            ("delete", Method::DELETE),
            ("patch", Method::PATCH),
        ];
        for (name, verb) in verbs {
            let path = text(rule, name);
            if let Some(template) = Template::parse(&path) {
                self.routes.push(Route { verb, path, template, body: text(rule, "body"), method: method.clone() });
            }
        }
        if let Some(Value::List(more)) = rule.get_field_by_name("additional_bindings").map(std::borrow::Cow::into_owned)
        {
            for rule in &more {
                if let Value::Message(rule) = rule {
                    self.add(rule, method);
                }
            }
        }
    }

    /// The best way for a verb and a path.
    pub fn find(&self, verb: &Method, path: &str) -> Option<Found<'_>> {
        let mut best: Option<(Rank, Found<'_>)> = None;
        for route in self.routes.iter().filter(|route| route.verb == *verb) {
            let Some((variables, rank)) = route.template.fit(path) else { continue };
            if best.as_ref().is_none_or(|(known, _)| rank > *known) {
                best = Some((rank, Found { route, variables }));
            }
        }
        best.map(|(_, found)| found)
    }

    /// Whether a path is known with any verb.
    pub fn knows(&self, path: &str) -> bool {
        self.routes.iter().any(|route| route.template.fit(path).is_some())
    }

    /// All ways.
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }
}
