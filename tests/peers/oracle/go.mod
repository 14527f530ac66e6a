module atoll.peers/oracle

go 1.25.10

require (
	github.com/karmada-io/karmada v1.18.2
	k8s.io/klog/v2 v2.130.1
)

require (
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/kr/pretty v0.3.1 // indirect
	github.com/kr/text v0.2.0 // indirect
	github.com/rogpeppe/go-internal v1.14.1 // indirect
	k8s.io/apimachinery v0.35.3 // indirect
)
