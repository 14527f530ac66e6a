package main

import (
	"encoding/json"
	"errors"

	configv1alpha1 "github.com/karmada-io/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/features"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/customized/declarative/luavm"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/default/native"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/default/native/prune"
	"github.com/karmada-io/karmada/pkg/resourceinterpreter/default/thirdparty"
	"github.com/karmada-io/karmada/pkg/util/interpreter/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// question is one operation on one object: by a script if there is one, else by what is known of the kind.
type question struct {
	Operation configv1alpha1.InterpreterOperation `json:"operation"`
	Object    *unstructured.Unstructured          `json:"object"`
	Observed  *unstructured.Unstructured          `json:"observed"`
	Items     []workv1alpha2.AggregatedStatusItem `json:"items"`
	Replicas  int64                               `json:"replicas"`
	Lua       string                              `json:"lua"`
}

type replicas struct {
	Replicas     int32                             `json:"replicas"`
	Requirements *workv1alpha2.ReplicaRequirements `json:"requirements"`
}

// nothing is said of kinds that no layer of the original handles.
var nothing = errors.New("no hook")

var (
	builtin = native.NewDefaultInterpreter()
	kinds   = map[schema.GroupVersionKind]*thirdparty.ConfigurableInterpreter{}
)

// knownFor has machines of its own for each kind: scripts set globals, and one that is called type breaks others.
func knownFor(kind schema.GroupVersionKind) *thirdparty.ConfigurableInterpreter {
	if kinds[kind] == nil {
		kinds[kind] = thirdparty.NewConfigurableInterpreter()
	}
	return kinds[kind]
}

func init() {
	// Needs of pods are complete only with this one, which is off by default.
	if err := features.FeatureGate.Set(string(features.ResourceQuotaEstimate) + "=true"); err != nil {
		panic(err)
	}
	answers["interpret"] = func(line json.RawMessage) (any, error) {
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			return nil, err
		}
		if asked.Lua != "" {
			return asked.byScript()
		}
		kind := asked.Object.GroupVersionKind()
		switch {
		case knownFor(kind).HookEnabled(kind, asked.Operation):
			return asked.byKnown()
		case builtin.HookEnabled(kind, asked.Operation):
			return asked.byBuiltin()
		}
		return nil, nothing
	}
	answers["prune"] = func(line json.RawMessage) (any, error) {
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			return nil, err
		}
		err := prune.RemoveIrrelevantFields(asked.Object, prune.RemoveJobTTLSeconds)
		return asked.Object, err
	}
}

func (q question) byScript() (any, error) {
	machines := luavm.New(false, 1)
	switch q.Operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		count, needs, err := machines.GetReplicas(q.Object, q.Lua)
		return replicas{count, needs}, err
	case configv1alpha1.InterpreterOperationInterpretComponent:
		return machines.GetComponents(q.Object, q.Lua)
	case configv1alpha1.InterpreterOperationReviseReplica:
		return machines.ReviseReplica(q.Object, q.Replicas, q.Lua)
	case configv1alpha1.InterpreterOperationRetain:
		return machines.Retain(q.Object, q.Observed, q.Lua)
	case configv1alpha1.InterpreterOperationAggregateStatus:
		return machines.AggregateStatus(q.Object, q.Items, q.Lua)
	case configv1alpha1.InterpreterOperationInterpretStatus:
		return machines.ReflectStatus(q.Object, q.Lua)
	case configv1alpha1.InterpreterOperationInterpretHealth:
		return machines.InterpretHealth(q.Object, q.Lua)
	case configv1alpha1.InterpreterOperationInterpretDependency:
		found, err := machines.GetDependencies(q.Object, q.Lua)
		if err == nil {
			err = validation.VerifyDependencies(found)
		}
		return found, err
	}
	return nil, nothing
}

func (q question) byKnown() (answer any, err error) {
	known := knownFor(q.Object.GroupVersionKind())
	switch q.Operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		var said replicas
		said.Replicas, said.Requirements, _, err = known.GetReplicas(q.Object)
		answer = said
	case configv1alpha1.InterpreterOperationInterpretComponent:
		answer, _, err = known.GetComponents(q.Object)
	case configv1alpha1.InterpreterOperationReviseReplica:
		answer, _, err = known.ReviseReplica(q.Object, q.Replicas)
	case configv1alpha1.InterpreterOperationRetain:
		answer, _, err = known.Retain(q.Object, q.Observed)
	case configv1alpha1.InterpreterOperationAggregateStatus:
		answer, _, err = known.AggregateStatus(q.Object, q.Items)
	case configv1alpha1.InterpreterOperationInterpretStatus:
		answer, _, err = known.ReflectStatus(q.Object)
	case configv1alpha1.InterpreterOperationInterpretHealth:
		answer, _, err = known.InterpretHealth(q.Object)
	case configv1alpha1.InterpreterOperationInterpretDependency:
		answer, _, err = known.GetDependencies(q.Object)
	}
	return answer, err
}

func (q question) byBuiltin() (any, error) {
	switch q.Operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		count, needs, err := builtin.GetReplicas(q.Object)
		return replicas{count, needs}, err
	case configv1alpha1.InterpreterOperationReviseReplica:
		return builtin.ReviseReplica(q.Object, q.Replicas)
	case configv1alpha1.InterpreterOperationRetain:
		return builtin.Retain(q.Object, q.Observed)
	case configv1alpha1.InterpreterOperationAggregateStatus:
		return builtin.AggregateStatus(q.Object, q.Items)
	case configv1alpha1.InterpreterOperationInterpretStatus:
		return builtin.ReflectStatus(q.Object)
	case configv1alpha1.InterpreterOperationInterpretHealth:
		return builtin.InterpretHealth(q.Object)
	case configv1alpha1.InterpreterOperationInterpretDependency:
		return builtin.GetDependencies(q.Object)
	}
	return nil, nothing
}
