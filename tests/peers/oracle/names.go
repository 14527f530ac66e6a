package main

import (
	"encoding/json"

	"github.com/karmada-io/karmada/pkg/util/names"
)

func init() {
	answers["names"] = func(line json.RawMessage) (any, error) {
		var object struct{ Kind, Namespace, Name, Cluster string }
		if err := json.Unmarshal(line, &object); err != nil {
			return nil, err
		}
		return map[string]string{
			"binding":   names.GenerateBindingName(object.Kind, object.Name),
			"work":      names.GenerateWorkName(object.Kind, object.Name, object.Namespace),
			"execution": names.GenerateExecutionSpaceName(object.Cluster),
		}, nil
	}
}
