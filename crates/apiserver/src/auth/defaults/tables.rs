//! The default roles and bindings, as data. Words are separated by spaces; `core` is the core group.

/// A rule.
pub enum Line {
    /// Verbs, groups, resources.
    On(&'static str, &'static str, &'static str),
    /// Verbs, groups, resources, names.
    Named(&'static str, &'static str, &'static str, &'static str),
    /// Verbs, URLs.
    Url(&'static str, &'static str),
}

use Line::{Named, On, Url};

/// A ClusterRole: its name, the aggregated roles it is part of, its rules.
pub type ClusterRole = (&'static str, &'static str, &'static [Line]);
/// A Role: namespace, name, rules.
pub type Role = (&'static str, &'static str, &'static [Line]);
/// A binding: namespace (none: everywhere), name, role, subjects as `Group:`, `User:` or `ServiceAccount:namespace/name`.
pub type Binding = (&'static str, &'static str, &'static str, &'static [&'static str]);

const READ: &str = "get list watch";
const CHANGE: &str = "create delete deletecollection patch update";
const ALL: &str = "create delete deletecollection get list patch update watch";
const AUTHN: &str = "authentication.k8s.io";
const AUTHZ: &str = "authorization.k8s.io";
const CERTS: &str = "certificates.k8s.io";
const STORAGE: &str = "storage.k8s.io";
const LEASES: &str = "coordination.k8s.io";
const NETWORK: &str = "networking.k8s.io";
const DEVICES: &str = "resource.k8s.io";
const EVENTS: Line = On("create patch update", "core events.k8s.io", "events");
const ASK_TOKENS: Line = On("create", AUTHN, "tokenreviews");
const ASK_ACCESS: Line = On("create", AUTHZ, "subjectaccessreviews");

/// Roles whose rules are those of all roles labelled for them: name, and the aggregated roles they are part of.
pub const AGGREGATED: &[(&str, &str)] = &[("admin", ""), ("edit", "admin"), ("view", "edit")];

/// Roles that hold everywhere.
pub const CLUSTER_ROLES: &[ClusterRole] = &[
    ("cluster-admin", "", &[On("*", "*", "*"), Url("*", "*")]),
    (
        "system:aggregate-to-admin",
        "admin",
        &[On("create", AUTHZ, "localsubjectaccessreviews"), On(ALL, "rbac.authorization.k8s.io", "rolebindings roles")],
    ),
    (
        "system:aggregate-to-edit",
        "edit",
        &[
            On(READ, "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
            On("impersonate", "core", "serviceaccounts"),
            On(CHANGE, "core", "pods pods/attach pods/exec pods/portforward pods/proxy"),
            On("create", "core", "pods/eviction"),
            On(
                CHANGE,
                "core",
                "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy",
            ),
            On("create", "core", "serviceaccounts/token"),
            On(CHANGE, "core events.k8s.io", "events"),
            On(
                CHANGE,
                "apps",
                "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale",
            ),
            On(CHANGE, "autoscaling", "horizontalpodautoscalers"),
            On(CHANGE, "batch", "cronjobs jobs"),
            On(
                CHANGE,
                "extensions",
                "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets replicasets/scale replicationcontrollers/scale",
            ),
            On(CHANGE, "policy", "poddisruptionbudgets"),
            On(CHANGE, NETWORK, "ingresses networkpolicies"),
            On(ALL, LEASES, "leases"),
            On(CHANGE, DEVICES, "resourceclaims resourceclaimtemplates"),
        ],
    ),
    (
        "system:aggregate-to-view",
        "view",
        &[
            On(
                READ,
                "core",
                "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
            ),
            On(
                READ,
                "core",
                "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas resourcequotas/status",
            ),
            On(READ, "core", "namespaces"),
            On(READ, "core events.k8s.io", "events"),
            On(READ, "discovery.k8s.io", "endpointslices"),
            On(
                READ,
                "apps",
                "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
            ),
            On(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
            On(READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
            On(
                READ,
                "extensions",
                "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale",
            ),
            On(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
            On(READ, NETWORK, "ingresses ingresses/status networkpolicies"),
            On(READ, DEVICES, "resourceclaims resourceclaims/status resourceclaimtemplates"),
        ],
    ),
    ("system:auth-delegator", "", &[ASK_TOKENS, ASK_ACCESS]),
    (
        "system:basic-user",
        "",
        &[
            On("create", AUTHZ, "selfsubjectaccessreviews selfsubjectrulesreviews"),
            On("create", AUTHN, "selfsubjectreviews"),
        ],
    ),
    (
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        "",
        &[On("create", CERTS, "certificatesigningrequests/nodeclient")],
    ),
    (
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        "",
        &[On("create", CERTS, "certificatesigningrequests/selfnodeclient")],
    ),
    (
        "system:certificates.k8s.io:kube-apiserver-client-approver",
        "",
        &[Named("approve", CERTS, "signers", "kubernetes.io/kube-apiserver-client")],
    ),
    (
        "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
        "",
        &[Named("approve", CERTS, "signers", "kubernetes.io/kube-apiserver-client-kubelet")],
    ),
    (
        "system:certificates.k8s.io:kubelet-serving-approver",
        "",
        &[Named("approve", CERTS, "signers", "kubernetes.io/kubelet-serving")],
    ),
    (
        "system:certificates.k8s.io:legacy-unknown-approver",
        "",
        &[Named("approve", CERTS, "signers", "kubernetes.io/legacy-unknown")],
    ),
    (
        "system:discovery",
        "",
        &[Url("get", "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/")],
    ),
    ("system:heapster", "", &[On(READ, "core", "events namespaces nodes pods"), On(READ, "extensions", "deployments")]),
    ("system:kube-aggregator", "", &[On(READ, "core", "endpoints services")]),
    (
        "system:kube-controller-manager",
        "",
        &[
            EVENTS,
            On("create", LEASES, "leases"),
            Named("get update", LEASES, "leases", "kube-controller-manager"),
            On("create", "core", "secrets serviceaccounts"),
            On("delete", "core", "secrets"),
            On("get", "core", "configmaps namespaces secrets serviceaccounts"),
            On("update", "core", "secrets serviceaccounts"),
            ASK_TOKENS,
            ASK_ACCESS,
            On("list watch", "*", "*"),
            On("create", "core", "serviceaccounts/token"),
        ],
    ),
    ("system:kube-dns", "", &[On("list watch", "core", "endpoints services")]),
    (
        "system:kube-scheduler",
        "",
        &[
            EVENTS,
            On("create", LEASES, "leases"),
            Named("get list update watch", LEASES, "leases", "kube-scheduler"),
            On(ALL, LEASES, "leasecandidates"),
            On(READ, "core", "nodes"),
            On("delete get list watch", "core", "pods"),
            On("create", "core", "bindings pods/binding"),
            On("patch update", "core", "pods/status"),
            On(READ, "core", "replicationcontrollers services"),
            On(READ, "apps extensions", "replicasets"),
            On(READ, "apps", "statefulsets"),
            On(READ, "policy", "poddisruptionbudgets"),
            On(READ, "core", "persistentvolumeclaims persistentvolumes"),
            ASK_TOKENS,
            ASK_ACCESS,
            On(READ, STORAGE, "csinodes"),
            On(READ, STORAGE, "volumeattachments"),
            On(READ, "core", "namespaces"),
            On(READ, STORAGE, "csidrivers"),
            On(READ, STORAGE, "csistoragecapacities"),
            On(READ, DEVICES, "deviceclasses"),
            On("get list patch update watch", DEVICES, "resourceclaims"),
            On("get list patch update watch", DEVICES, "resourceclaims/status"),
            On("update", "core", "pods/finalizers"),
            On(READ, DEVICES, "resourceslices"),
        ],
    ),
    (
        "system:kubelet-api-admin",
        "",
        &[
            On(READ, "core", "nodes"),
            On("proxy", "core", "nodes"),
            On("*", "core", "nodes/log nodes/metrics nodes/proxy nodes/stats"),
            On("*", "core", "nodes/configz nodes/healthz nodes/pods"),
        ],
    ),
    (
        "system:monitoring",
        "",
        &[
            Url("get", "/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"),
            On("get", "core", "nodes/metrics"),
        ],
    ),
    (
        "system:node",
        "",
        &[
            ASK_TOKENS,
            On("create", AUTHZ, "localsubjectaccessreviews subjectaccessreviews"),
            On(READ, "core", "services"),
            On("create get list watch", "core", "nodes"),
            On("patch update", "core", "nodes/status"),
            On("patch update", "core", "nodes"),
            EVENTS,
            On(READ, "core", "pods"),
            On("create delete", "core", "pods"),
            On("patch update", "core", "pods/status"),
            On("create", "core", "pods/eviction"),
            On(READ, "core", "configmaps secrets"),
            On("get", "core", "persistentvolumeclaims persistentvolumes"),
            On("get", "core", "endpoints"),
            On("create get list watch", CERTS, "certificatesigningrequests"),
            On("create delete get patch update", LEASES, "leases"),
            On("get", STORAGE, "volumeattachments"),
            On("create", "core", "serviceaccounts/token"),
            On("get patch update", "core", "persistentvolumeclaims/status"),
            On(READ, STORAGE, "csidrivers"),
            On("create delete get patch update", STORAGE, "csinodes"),
            On(READ, "node.k8s.io", "runtimeclasses"),
            On("get", DEVICES, "resourceclaims"),
            On("deletecollection", DEVICES, "resourceslices"),
            On("get", "core", "serviceaccounts"),
        ],
    ),
    ("system:node-bootstrapper", "", &[On("create get list watch", CERTS, "certificatesigningrequests")]),
    ("system:node-problem-detector", "", &[On("get", "core", "nodes"), On("patch", "core", "nodes/status"), EVENTS]),
    (
        "system:node-proxier",
        "",
        &[
            On("list watch", "core", "endpoints services"),
            On(READ, "core", "nodes"),
            EVENTS,
            On("list watch", NETWORK, "servicecidrs"),
            On("list watch", "discovery.k8s.io", "endpointslices"),
        ],
    ),
    (
        "system:persistent-volume-provisioner",
        "",
        &[
            On("create delete get list watch", "core", "persistentvolumes"),
            On("get list update watch", "core", "persistentvolumeclaims"),
            On(READ, STORAGE, "storageclasses"),
            On("watch", "core", "events"),
            EVENTS,
        ],
    ),
    ("system:public-info-viewer", "", &[Url("get", "/healthz /livez /readyz /version /version/")]),
    (
        "system:service-account-issuer-discovery",
        "",
        &[Url(
            "get",
            "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
        )],
    ),
    (
        "system:volume-scheduler",
        "",
        &[
            On("get list patch update watch", "core", "persistentvolumes"),
            On(READ, STORAGE, "storageclasses"),
            On("get list patch update watch", "core", "persistentvolumeclaims"),
        ],
    ),
];

const LOCKS: &[Line] = &[
    On("create get list update watch", LEASES, "leases"),
    On("create get list update watch", LEASES, "leasecandidates"),
];

/// Roles of one namespace.
pub const ROLES: &[Role] = &[
    (
        "kube-public",
        "system:controller:bootstrap-signer",
        &[On(READ, "core", "configmaps"), Named("update", "core", "configmaps", "cluster-info"), EVENTS],
    ),
    (
        "kube-system",
        "extension-apiserver-authentication-reader",
        &[Named(READ, "core", "configmaps", "extension-apiserver-authentication")],
    ),
    ("kube-system", "system::leader-locking-kube-controller-manager", LOCKS),
    ("kube-system", "system::leader-locking-kube-scheduler", LOCKS),
    ("kube-system", "system:controller:bootstrap-signer", &[On(READ, "core", "secrets")]),
    ("kube-system", "system:controller:cloud-provider", &[On("create get list watch", "core", "configmaps")]),
    ("kube-system", "system:controller:token-cleaner", &[On("delete get list watch", "core", "secrets"), EVENTS]),
];

const MANAGER: &str = "User:system:kube-controller-manager";
const SCHEDULER: &str = "User:system:kube-scheduler";

/// Who has these roles from the start.
pub const BINDINGS: &[Binding] = &[
    ("", "cluster-admin", "cluster-admin", &["Group:system:masters"]),
    ("", "system:basic-user", "system:basic-user", &["Group:system:authenticated"]),
    ("", "system:discovery", "system:discovery", &["Group:system:authenticated"]),
    ("", "system:kube-controller-manager", "system:kube-controller-manager", &[MANAGER]),
    ("", "system:kube-dns", "system:kube-dns", &["ServiceAccount:kube-system/kube-dns"]),
    ("", "system:kube-scheduler", "system:kube-scheduler", &[SCHEDULER]),
    ("", "system:monitoring", "system:monitoring", &["Group:system:monitoring"]),
    ("", "system:node", "system:node", &[]),
    ("", "system:node-proxier", "system:node-proxier", &["User:system:kube-proxy"]),
    (
        "",
        "system:public-info-viewer",
        "system:public-info-viewer",
        &["Group:system:authenticated", "Group:system:unauthenticated"],
    ),
    (
        "",
        "system:service-account-issuer-discovery",
        "system:service-account-issuer-discovery",
        &["Group:system:serviceaccounts"],
    ),
    ("", "system:volume-scheduler", "system:volume-scheduler", &[SCHEDULER]),
    (
        "kube-public",
        "system:controller:bootstrap-signer",
        "system:controller:bootstrap-signer",
        &["ServiceAccount:kube-system/bootstrap-signer"],
    ),
    (
        "kube-system",
        "system::extension-apiserver-authentication-reader",
        "extension-apiserver-authentication-reader",
        &[MANAGER, SCHEDULER],
    ),
    (
        "kube-system",
        "system::leader-locking-kube-controller-manager",
        "system::leader-locking-kube-controller-manager",
        &[
            MANAGER,
            "ServiceAccount:kube-system/kube-controller-manager",
            "ServiceAccount:kube-system/leader-election-controller",
        ],
    ),
    (
        "kube-system",
        "system::leader-locking-kube-scheduler",
        "system::leader-locking-kube-scheduler",
        &[SCHEDULER, "ServiceAccount:kube-system/kube-scheduler"],
    ),
    (
        "kube-system",
        "system:controller:bootstrap-signer",
        "system:controller:bootstrap-signer",
        &["ServiceAccount:kube-system/bootstrap-signer"],
    ),
    (
        "kube-system",
        "system:controller:cloud-provider",
        "system:controller:cloud-provider",
        &["ServiceAccount:kube-system/cloud-provider"],
    ),
    (
        "kube-system",
        "system:controller:token-cleaner",
        "system:controller:token-cleaner",
        &["ServiceAccount:kube-system/token-cleaner"],
    ),
];
