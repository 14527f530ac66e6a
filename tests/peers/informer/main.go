// informer watches resources with client-go's shared informers and prints one JSON line per event.
//
//	informer --kubeconfig FILE [--namespace NS] [--selector LABELS] [--format json|protobuf]
//	         [--dynamic] [--for DURATION] configmaps deployments.v1.apps ...
//
// Lines have "event" (added, updated, deleted, synced, watch-error), "resource", and for objects
// "namespace", "name", "uid", "resourceVersion"; "initial" marks objects of the first list. It
// never gives up: what a real controller sees across restarts of its server is what it prints.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

type line struct {
	Time            string `json:"time"`
	Event           string `json:"event"`
	Resource        string `json:"resource"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Initial         bool   `json:"initial,omitempty"`
	Objects         *int   `json:"objects,omitempty"`
	Error           string `json:"error,omitempty"`
}

// output serialises the lines of all informers.
type output struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

func (o *output) print(l line) {
	l.Time = time.Now().UTC().Format(time.RFC3339Nano)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.encoder.Encode(l); err != nil {
		os.Exit(1) // nobody reads any more
	}
}

type options struct {
	kubeconfig, namespace, selector, format string
	dynamic                                 bool
	duration                                time.Duration
	resources                               []string
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig file")
	flag.StringVar(&o.namespace, "namespace", "", "only this namespace")
	flag.StringVar(&o.selector, "selector", "", "label selector")
	flag.StringVar(&o.format, "format", "json", "json or protobuf (built-in types only)")
	flag.BoolVar(&o.dynamic, "dynamic", false, "untyped informers, for any resource")
	flag.DurationVar(&o.duration, "for", 0, "end after this time (default: at SIGTERM)")
	flag.Parse()
	if o.resources = flag.Args(); len(o.resources) == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	informerFor, err := source(config, o)
	if err != nil {
		return err
	}
	out := &output{encoder: json.NewEncoder(os.Stdout)}
	var running sync.WaitGroup
	for _, resource := range o.resources {
		informer, err := informerFor(parse(resource))
		if err != nil {
			return err
		}
		if err := follow(ctx, informer, resource, out); err != nil {
			return err
		}
		running.Go(func() { informer.Run(ctx.Done()) })
	}
	running.Wait()
	return nil
}

// source makes informers, typed or untyped as asked.
func source(config *rest.Config, o options) (func(schema.GroupVersionResource) (cache.SharedIndexInformer, error), error) {
	tweak := func(l *metav1.ListOptions) { l.LabelSelector = o.selector }
	if o.dynamic {
		server, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(server, 0, o.namespace, tweak)
		return func(r schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
			return factory.ForResource(r).Informer(), nil
		}, nil
	}
	if o.format == "protobuf" {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	server, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(server, 0,
		informers.WithNamespace(o.namespace), informers.WithTweakListOptions(tweak))
	return func(r schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
		generic, err := factory.ForResource(r)
		if err != nil {
			return nil, err
		}
		return generic.Informer(), nil
	}, nil
}

// parse reads resource[.version.group]; without a version it is core/v1.
func parse(resource string) schema.GroupVersionResource {
	if full, _ := schema.ParseResourceArg(resource); full != nil {
		return *full
	}
	return schema.GroupVersionResource{Version: "v1", Resource: strings.TrimSuffix(resource, ".v1")}
}

func follow(ctx context.Context, informer cache.SharedIndexInformer, resource string, out *output) error {
	err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		out.print(line{Event: "watch-error", Resource: resource, Error: err.Error()})
	})
	if err != nil {
		return err
	}
	event := func(name string, object any, initial bool) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		m, err := meta.Accessor(object)
		if err != nil {
			out.print(line{Event: name, Resource: resource, Error: err.Error()})
			return
		}
		out.print(line{Event: name, Resource: resource, Namespace: m.GetNamespace(), Name: m.GetName(),
			UID: string(m.GetUID()), ResourceVersion: m.GetResourceVersion(), Initial: initial})
	}
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(object any, initial bool) { event("added", object, initial) },
		UpdateFunc: func(_, object any) { event("updated", object, false) },
		DeleteFunc: func(object any) { event("deleted", object, false) },
	})
	if err != nil {
		return err
	}
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
			count := len(informer.GetStore().ListKeys())
			out.print(line{Event: "synced", Resource: resource, Objects: &count})
		}
	}()
	return nil
}
