package main

import (
	"context"
	"encoding/json"
	"errors"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/features"
	clusterlister "github.com/karmada-io/karmada/pkg/generated/listers/cluster/v1alpha1"
	"github.com/karmada-io/karmada/pkg/scheduler/cache"
	"github.com/karmada-io/karmada/pkg/scheduler/core"
	"github.com/karmada-io/karmada/pkg/scheduler/framework"
	"github.com/karmada-io/karmada/pkg/scheduler/framework/plugins"
	"github.com/karmada-io/karmada/pkg/util/indexregistry"
	"k8s.io/apimachinery/pkg/labels"
	indexed "k8s.io/client-go/tools/cache"
)

// world is what the scheduler sees of the clusters: those of the question.
type world struct {
	clusterlister.ClusterLister
	clusters []*clusterv1alpha1.Cluster
}

func (w *world) List(labels.Selector) ([]*clusterv1alpha1.Cluster, error) { return w.clusters, nil }

// placed is the whole decision: clusters with replicas, or the reason of the condition Scheduled.
type placed struct {
	Clusters []workv1alpha2.TargetCluster `json:"clusters"`
	Affinity string                       `json:"affinity"`
	Reason   string                       `json:"reason"`
	Message  string                       `json:"message"`
}

// others are the bindings that may belong to a group, found by it as in the scheduler.
func others() indexed.Indexer {
	by := func(of func(*workv1alpha2.WorkloadAffinityGroups) string) indexed.IndexFunc {
		return func(object any) ([]string, error) {
			groups := object.(*workv1alpha2.ResourceBinding).Spec.WorkloadAffinityGroups
			if groups == nil || of(groups) == "" {
				return nil, nil
			}
			return []string{of(groups)}, nil
		}
	}
	return indexed.NewIndexer(indexed.MetaNamespaceKeyFunc, indexed.Indexers{
		indexregistry.ResourceBindingIndexByAffinityGroup: by(
			func(groups *workv1alpha2.WorkloadAffinityGroups) string { return groups.AffinityGroup }),
		indexregistry.ResourceBindingIndexByAntiAffinityGroup: by(
			func(groups *workv1alpha2.WorkloadAffinityGroups) string { return groups.AntiAffinityGroup }),
	})
}

func init() {
	known, bindings := &world{}, others()
	if err := features.FeatureGate.SetFromMap(map[string]bool{string(features.WorkloadAffinity): true}); err != nil {
		panic(err)
	}
	scheduler, err := core.NewGenericScheduler(cache.NewCache(known, bindings, 0), plugins.NewInTreeRegistry())
	if err != nil {
		panic(err)
	}
	answers["placement"] = func(line json.RawMessage) (any, error) {
		var asked struct {
			Clusters       []*clusterv1alpha1.Cluster         `json:"clusters"`
			Bindings       []*workv1alpha2.ResourceBinding    `json:"bindings"`
			Spec           workv1alpha2.ResourceBindingSpec   `json:"spec"`
			Status         workv1alpha2.ResourceBindingStatus `json:"status"`
			EmptyWorkloads bool                               `json:"emptyWorkloads"`
			Components     bool                               `json:"components"`
		}
		if err := json.Unmarshal(line, &asked); err != nil {
			return nil, err
		}
		gates := map[string]bool{string(features.MultiplePodTemplatesScheduling): asked.Components}
		if err := features.FeatureGate.SetFromMap(gates); err != nil {
			return nil, err
		}
		known.clusters = asked.Clusters
		listed := []any{}
		for _, binding := range asked.Bindings {
			listed = append(listed, binding)
		}
		if err := bindings.Replace(listed, ""); err != nil {
			return nil, err
		}
		options := &core.ScheduleAlgorithmOption{EnableEmptyWorkloadPropagation: asked.EmptyWorkloads}
		return place(scheduler, &asked.Spec, &asked.Status, options), nil
	}
}

// place tries the affinity terms from the observed one on, which the original does outside of its algorithm; the
// error of the first stands when none does.
func place(scheduler core.ScheduleAlgorithm, spec *workv1alpha2.ResourceBindingSpec,
	status *workv1alpha2.ResourceBindingStatus, options *core.ScheduleAlgorithmOption) (answer placed) {
	terms := spec.Placement.ClusterAffinities
	if len(terms) == 0 {
		terms = []policyv1alpha1.ClusterAffinityTerm{{}}
	}
	var first error
	for _, term := range terms[observed(terms, status.SchedulerObservedAffinityName):] {
		status.SchedulerObservedAffinityName = term.AffinityName
		result, err := scheduler.Schedule(context.Background(), spec.DeepCopy(), status, options)
		if err == nil {
			return placed{Clusters: result.SuggestedClusters, Affinity: term.AffinityName}
		}
		if first == nil {
			first = err
		}
	}
	return placed{Reason: reason(first), Message: first.Error()}
}

func observed(terms []policyv1alpha1.ClusterAffinityTerm, name string) int {
	for at := range terms {
		if terms[at].AffinityName == name {
			return at
		}
	}
	return 0
}

func reason(err error) string {
	var fit *framework.FitError
	var room *framework.UnschedulableError
	switch {
	case errors.As(err, &fit):
		return workv1alpha2.BindingReasonNoClusterFit
	case errors.As(err, &room):
		return workv1alpha2.BindingReasonUnschedulable
	}
	return workv1alpha2.BindingReasonSchedulerError
}
