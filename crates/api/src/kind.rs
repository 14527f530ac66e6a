//! A kind: its names, its root object and its schema.

use kube::Resource;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Whether objects of a kind have a namespace.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Scope {
    /// They have.
    Namespaced,
    /// They have not.
    Cluster,
}

/// A column that clients print in lists.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Column {
    /// Its heading.
    pub name: &'static str,
    /// Its type: `string`, `integer`, `boolean` or `date`.
    pub ty: &'static str,
    /// Where its value is.
    pub path: &'static str,
    /// 0 is always shown, more only in wide output.
    pub priority: i32,
    /// What stands where there is no value.
    pub missing: &'static str,
}

/// One version of a kind served by an instance.
pub trait Kind: Resource<DynamicType = ()> + Serialize + DeserializeOwned + JsonSchema {
    /// API group.
    const GROUP: &'static str;
    /// Version of the group.
    const VERSION: &'static str;
    /// Name of the kind.
    const KIND: &'static str;
    /// Name in paths.
    const PLURAL: &'static str;
    /// Whether objects have a namespace.
    const SCOPE: Scope;
    /// Abbreviations clients accept.
    const SHORT: &'static [&'static str];
    /// Groups of kinds that clients list together.
    const CATEGORIES: &'static [&'static str];
    /// Columns of lists.
    const COLUMNS: &'static [Column];
    /// Whether status is written apart from the rest.
    const HAS_STATUS: bool;
}

/// Whether a number is zero, so that it need not be written.
pub(crate) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// Declares the root object of a kind: `kind! { Name { spec: Spec, status: Status } group ... }`.
///
/// Not kube's derive: several kinds here share one spec type, which that derive does not allow.
macro_rules! kind {
    (@or $default:expr) => { $default };
    (@or $default:expr, $given:expr) => { $given };
    (
        $(#[$doc:meta])*
        $name:ident $(as $kind:literal)? {
            $(optional spec: $optional:ty,)?
            $(spec: $spec:ty,)?
            $(webhooks: $webhooks:ty,)?
            $(status: $status:ty,)?
        }
        group $group:literal, version $version:literal, plural $plural:literal, $scope:ident;
        short [$($short:literal),*]; categories [$($category:literal),*];
        columns [$($column:literal: $ty:literal = $path:literal $(priority $priority:literal)? $(missing $missing:literal)?),* $(,)?];
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, schemars::JsonSchema)]
        pub struct $name {
            /// Name, labels and the like.
            #[serde(default)]
            #[schemars(skip)]
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            $(
                /// What is asked for.
                #[serde(default)]
                pub spec: $optional,
            )?
            $(
                /// What is asked for.
                pub spec: $spec,
            )?
            $(
                /// The webhooks.
                pub webhooks: $webhooks,
            )?
            $(
                /// What is.
                #[serde(default)]
                pub status: Option<$status>,
            )?
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("apiVersion", concat!($group, "/", $version))?;
                map.serialize_entry("kind", <Self as crate::Kind>::KIND)?;
                map.serialize_entry("metadata", &self.metadata)?;
                $(
                    let spec: &$optional = &self.spec;
                    map.serialize_entry("spec", spec)?;
                )?
                $(
                    let spec: &$spec = &self.spec;
                    map.serialize_entry("spec", spec)?;
                )?
                $(
                    let webhooks: &$webhooks = &self.webhooks;
                    map.serialize_entry("webhooks", webhooks)?;
                )?
                $(
                    let status: &Option<$status> = &self.status;
                    if let Some(status) = status {
                        map.serialize_entry("status", status)?;
                    }
                )?
                map.end()
            }
        }

        impl crate::Kind for $name {
            const GROUP: &'static str = $group;
            const VERSION: &'static str = $version;
            const KIND: &'static str = crate::kind::kind!(@or stringify!($name) $(, $kind)?);
            const PLURAL: &'static str = $plural;
            const SCOPE: crate::Scope = crate::Scope::$scope;
            const SHORT: &'static [&'static str] = &[$($short),*];
            const CATEGORIES: &'static [&'static str] = &[$($category),*];
            const COLUMNS: &'static [crate::Column] = &[$(crate::Column {
                name: $column,
                ty: $ty,
                path: $path,
                priority: crate::kind::kind!(@or 0 $(, $priority)?),
                missing: crate::kind::kind!(@or "" $(, $missing)?),
            }),*];
            const HAS_STATUS: bool = crate::kind::kind!(@or false $(, { stringify!($status); true })?);
        }

        impl kube::Resource for $name {
            type DynamicType = ();
            type Scope = crate::kind::scopes::$scope;

            fn kind(_: &()) -> std::borrow::Cow<'_, str> {
                <Self as crate::Kind>::KIND.into()
            }

            fn group(_: &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version(_: &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }

            fn plural(_: &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

pub(crate) use kind;

/// kube's words for [`Scope`], under our names so that the macro can pick one.
pub(crate) mod scopes {
    pub type Namespaced = kube::core::NamespaceResourceScope;
    pub type Cluster = kube::core::ClusterResourceScope;
}
