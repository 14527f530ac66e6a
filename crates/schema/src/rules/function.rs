//! The functions expressions may call: how many arguments they take and what they yield.

use super::shape::Shape;

/// What a function yields.
#[derive(Copy, Clone)]
pub(crate) enum Yields {
    Bool,
    Int,
    UInt,
    Double,
    Text,
    Texts,
    Bytes,
    Time,
    Span,
    Type,
    Dyn,
    /// The same as its first argument.
    Same,
}

impl Yields {
    pub(crate) fn shape<'a>(self, first: Option<&Shape<'a>>) -> Shape<'a> {
        match self {
            Self::Bool => Shape::Bool,
            Self::Int => Shape::Int,
            Self::UInt => Shape::UInt,
            Self::Double => Shape::Double,
            Self::Text => Shape::Text,
            Self::Texts => Shape::List(Box::new(Shape::Text)),
            Self::Bytes => Shape::Bytes,
            Self::Time => Shape::Time,
            Self::Span => Shape::Span,
            Self::Type => Shape::Type,
            Self::Dyn => Shape::Dyn,
            Self::Same => first.cloned().unwrap_or(Shape::Dyn),
        }
    }
}

/// The function of that name: least and most arguments (with the one before the dot) and result.
pub(crate) fn find(name: &str) -> Option<(usize, usize, Yields)> {
    use Yields::{Bool, Bytes, Double, Dyn, Int, Same, Span, Text, Texts, Time, Type, UInt};
    Some(match name {
        "size" | "major" | "minor" | "patch" | "prefixLength" | "family" | "sign" | "asInteger" => (1, 1, Int),
        "contains" | "startsWith" | "endsWith" | "matches" => (2, 2, Bool),
        "indexOf" | "lastIndexOf" => (2, 3, Int),
        "lowerAscii" | "upperAscii" | "trim" | "strings.quote" | "jsonpatch.escapeKey" => (1, 1, Text),
        "charAt" | "format" | "find" => (2, 2, Text),
        "substring" => (2, 3, Text),
        "replace" => (3, 4, Text),
        "join" => (1, 2, Text),
        "split" => (2, 3, Texts),
        "findAll" => (2, 3, Texts),
        "reverse" | "distinct" | "sort" => (1, 1, Same),
        "slice" => (3, 3, Same),
        "flatten" => (1, 2, Dyn),
        "isSorted" => (1, 1, Bool),
        "sum" | "first" | "last" | "lists.range" => (1, 1, Dyn),
        "min" | "max" => (1, 2, Dyn),
        "sets.contains" | "sets.equivalent" | "sets.intersects" => (2, 2, Bool),
        "int" => (1, 1, Int),
        "uint" => (1, 1, UInt),
        "double" | "asApproximateFloat" => (1, 1, Double),
        "string" => (1, 1, Text),
        "bytes" => (1, 1, Bytes),
        "timestamp" => (1, 1, Time),
        "duration" => (1, 1, Span),
        "type" => (1, 1, Type),
        "dyn" => (1, 1, Dyn),
        "getFullYear" | "getMonth" | "getDayOfYear" | "getDayOfMonth" | "getDate" | "getDayOfWeek" | "getHours"
        | "getMinutes" | "getSeconds" | "getMilliseconds" => (1, 2, Int),
        "optional.none" => (0, 0, Dyn),
        "optional.of" | "optional.ofNonZeroValue" | "value" => (1, 1, Dyn),
        "hasValue" => (1, 1, Bool),
        "or" | "orValue" => (2, 2, Dyn),
        "isURL"
        | "isIP"
        | "isCIDR"
        | "isQuantity"
        | "isInteger"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast"
        | "ip.isCanonical" => (1, 1, Bool),
        "isSemver" => (1, 2, Bool),
        "containsIP" | "containsCIDR" | "isGreaterThan" | "isLessThan" => (2, 2, Bool),
        "compareTo" => (2, 2, Int),
        "getScheme" | "getHost" | "getHostname" | "getPort" | "getEscapedPath" => (1, 1, Text),
        "url" | "ip" | "cidr" | "quantity" | "masked" | "getQuery" | "format.named" => (1, 1, Dyn),
        "semver" => (1, 2, Dyn),
        "add" | "sub" | "validate" => (2, 2, Dyn),
        "@entries" => (1, 1, Dyn),
        "@sortBy" => (2, 2, Same),
        other if other.starts_with("format.") => (0, 0, Dyn),
        _ => return None,
    })
}
