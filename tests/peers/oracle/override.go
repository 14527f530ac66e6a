package main

import (
	"context"
	"encoding/json"

	clusterv1alpha1 "github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-io/karmada/pkg/util/overridemanager"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// overrides are the policies of one question, read as the original reads them from its server.
type overrides struct {
	client.Client
	Object          *unstructured.Unstructured             `json:"object"`
	Cluster         clusterv1alpha1.Cluster                `json:"cluster"`
	ClusterPolicies []policyv1alpha1.ClusterOverridePolicy `json:"clusterPolicies"`
	Policies        []policyv1alpha1.OverridePolicy        `json:"policies"`
}

func (o *overrides) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o.Cluster.DeepCopyInto(into.(*clusterv1alpha1.Cluster))
	return nil
}

func (o *overrides) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *policyv1alpha1.ClusterOverridePolicyList:
		list.Items = o.ClusterPolicies
	case *policyv1alpha1.OverridePolicyList:
		list.Items = o.Policies
	}
	return nil
}

func init() {
	answers["override"] = func(line json.RawMessage) (any, error) {
		asked := &overrides{}
		if err := json.Unmarshal(line, asked); err != nil {
			return nil, err
		}
		manager := overridemanager.New(asked, &record.FakeRecorder{})
		all, own, err := manager.ApplyOverridePolicies(asked.Object, asked.Cluster.Name)
		if err != nil {
			return nil, err
		}
		return map[string]any{"object": asked.Object, "clusterPolicies": all, "policies": own}, nil
	}
}

func init() {
	// What a document says to those who read it, however it is written.
	answers["yaml"] = func(line json.RawMessage) (any, error) {
		var asked struct{ Text string }
		if err := json.Unmarshal(line, &asked); err != nil {
			return nil, err
		}
		var document any
		err := yaml.Unmarshal([]byte(asked.Text), &document)
		return document, err
	}
}
