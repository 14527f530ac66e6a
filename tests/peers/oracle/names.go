package main

import (
	"encoding/json"

	"github.com/karmada-io/karmada/pkg/util/names"
)

func init() {
	answers["names"] = func(line json.RawMessage) (any, error) {
		var object struct{ Kind, Namespace, Name, Cluster, GVK string }
		if err := json.Unmarshal(line, &object); err != nil {
			return nil, err
		}
		return map[string]string{
			"binding":        names.GenerateBindingName(object.Kind, object.Name),
			"work":           names.GenerateWorkName(object.Kind, object.Name, object.Namespace),
			"execution":      names.GenerateExecutionSpaceName(object.Cluster),
			"dependedBy":     names.GenerateBindingReferenceKey(object.Namespace, object.Name),
			"policy":         names.GeneratePolicyName(object.Namespace, object.Name, object.GVK),
			"serviceAccount": names.GenerateServiceAccountName(object.Cluster),
			"role":           names.GenerateRoleName(object.Cluster),
			"estimator":      names.GenerateEstimatorServiceName("karmada-scheduler-estimator", object.Cluster),
			"impersonator":   names.GenerateImpersonationSecretName(object.Cluster),
			"derived":        names.GenerateDerivedServiceName(object.Name),
			"imported":       names.GenerateEndpointSliceName(object.Name, object.Cluster),
		}, nil
	}
}
