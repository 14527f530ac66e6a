// operator is a small controller-runtime manager: leader election, a cached watch and a finalizer.
//
//	operator --kubeconfig FILE [--namespace NS] [--id LEASE]
//
// For each ConfigMap labelled atoll.peers/managed=true it holds a finalizer, keeps a Secret of the
// same name (owned by the ConfigMap) whose key "copies" counts the data keys, and on deletion
// removes the Secret before it lets the ConfigMap go. It prints one JSON line per action; two of
// them started together show that only the leader acts.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	label     = "atoll.peers/managed"
	finalizer = "atoll.peers/copies"
)

func main() {
	// The flag --kubeconfig is controller-runtime's own: it registers it when imported.
	namespace := flag.String("namespace", "default", "namespace to watch, and of the lease")
	lease := flag.String("id", "atoll-peers-operator", "name of the lease")
	flag.Parse()
	ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr))))
	if err := run(*namespace, *lease); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func run(namespace, lease string) error {
	config, err := clientcmd.BuildConfigFromFlags("", flag.Lookup("kubeconfig").Value.String())
	if err != nil {
		return err
	}
	short := func(seconds int) *time.Duration { d := time.Duration(seconds) * time.Second; return &d }
	manager, err := ctrl.NewManager(config, ctrl.Options{
		LeaderElection:                true,
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 short(6),
		RenewDeadline:                 short(4),
		RetryPeriod:                   short(1),
		Metrics:                       server.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
			ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{label: "true"})},
			},
		},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).
		Complete(&copies{Client: manager.GetClient()})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	go func() {
		select {
		case <-manager.Elected():
			say("leading", lease)
		case <-ctx.Done():
		}
	}()
	return manager.Start(ctx)
}

// say prints what was done, for tests to read.
func say(action, name string) {
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{
		"time": time.Now().UTC().Format(time.RFC3339Nano), "pid": os.Getpid(), "action": action, "name": name,
	})
}

type copies struct{ client.Client }

// Reconcile brings one ConfigMap's Secret to the wanted state, or takes it away.
func (c *copies) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var source corev1.ConfigMap
	if err := c.Get(ctx, request.NamespacedName, &source); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !source.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, c.release(ctx, &source)
	}
	if controllerutil.AddFinalizer(&source, finalizer) {
		if err := c.Update(ctx, &source); err != nil {
			return retry(err)
		}
		say("finalizer-added", source.Name)
	}
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: source.Namespace, Name: source.Name}}
	result, err := controllerutil.CreateOrUpdate(ctx, c.Client, &secret, func() error {
		secret.Data = map[string][]byte{"copies": []byte(strconv.Itoa(len(source.Data)))}
		return controllerutil.SetControllerReference(&source, &secret, c.Scheme())
	})
	if err != nil {
		return retry(err)
	}
	if result != controllerutil.OperationResultNone {
		say("secret-"+string(result), source.Name)
	}
	return ctrl.Result{}, nil
}

func (c *copies) release(ctx context.Context, source *corev1.ConfigMap) error {
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: source.Namespace, Name: source.Name}}
	if err := c.Delete(ctx, &secret); client.IgnoreNotFound(err) != nil {
		return err
	}
	if !controllerutil.RemoveFinalizer(source, finalizer) {
		return nil
	}
	if err := c.Update(ctx, source); err != nil {
		return client.IgnoreNotFound(err)
	}
	say("released", source.Name)
	return nil
}

// A conflict or a lost race is ordinary: the cache was behind, so look again.
func retry(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return ctrl.Result{}, err
}
