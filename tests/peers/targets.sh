# The programs of tests/peers: which module each comes from. Sourced by build and pin.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=versions.env
. "$here/versions.env"
cache=${ATOLL_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/atoll/peers}
# Kubernetes publishes its libraries (k8s.io/api and the rest) as v0.MINOR.PATCH.
kubernetes_libs=v0.${KUBERNETES#v1.}

# Manifests built together, so that what they share is compiled once; the others keep to their own versions.
workspace=$here/modules.work

# name | manifest below modules/ (or a directory of ours) | package | bench: no test needs it
# The order is the order of building: what most tests need comes first.
targets() {
	cat <<-T
		certs                         ../certs     .
		kubectl                       kubernetes   k8s.io/kubernetes/cmd/kubectl
		etcd                          etcd         go.etcd.io/etcd/server/v3
		kube-apiserver                kubernetes   k8s.io/kubernetes/cmd/kube-apiserver
		helm                          helm         helm.sh/helm/v3/cmd/helm
		kubectl-old                   kubernetes-old  k8s.io/kubernetes/cmd/kubectl
		kube-apiserver-old            kubernetes-old  k8s.io/kubernetes/cmd/kube-apiserver
		informer                      ../informer  .
		kube-controller-manager       kubernetes   k8s.io/kubernetes/cmd/kube-controller-manager
		karmadactl                    karmada      github.com/karmada-io/karmada/cmd/karmadactl
		kubectl-karmada               karmada      github.com/karmada-io/karmada/cmd/kubectl-karmada
		kube-scheduler                kubernetes   k8s.io/kubernetes/cmd/kube-scheduler
		e2e.test                      kubernetes   k8s.io/kubernetes/test/e2e
		kwok                          kwok         sigs.k8s.io/kwok/cmd/kwok
		karmada-controller-manager    karmada      github.com/karmada-io/karmada/cmd/controller-manager bench
		karmada-scheduler             karmada      github.com/karmada-io/karmada/cmd/scheduler bench
		karmada-webhook               karmada      github.com/karmada-io/karmada/cmd/webhook bench
		karmada-aggregated-apiserver  karmada      github.com/karmada-io/karmada/cmd/aggregated-apiserver
		karmada-agent                 karmada      github.com/karmada-io/karmada/cmd/agent
		helm4                         helm4        helm.sh/helm/v4/cmd/helm
		operator                      ../operator  .
		cert-manager-crds             ../crds      github.com/cert-manager/cert-manager
		oracle                        ../oracle    .
		python                        ../python    .
	T
}

# The module path a manifest pins, and the version it must have.
pinned() {
	case $1 in
	kubernetes) echo "k8s.io/kubernetes $KUBERNETES" ;;
	kubernetes-old) echo "k8s.io/kubernetes $KUBERNETES_OLD" ;;
	etcd) echo "go.etcd.io/etcd/server/v3 $ETCD" ;;
	helm) echo "helm.sh/helm/v3 $HELM" ;;
	helm4) echo "helm.sh/helm/v4 $HELM4" ;;
	karmada) echo "github.com/karmada-io/karmada $KARMADA" ;;
	kwok) echo "sigs.k8s.io/kwok $KWOK" ;;
	../oracle) echo "github.com/karmada-io/karmada $KARMADA" ;;
	../certs) echo "atoll.peers/certs" ;;
	../informer) echo "k8s.io/client-go $kubernetes_libs" ;;
	../operator) echo "sigs.k8s.io/controller-runtime $CONTROLLER_RUNTIME" ;;
	*) return 1 ;;
	esac
}
