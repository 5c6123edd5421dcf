package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// Args are the arguments of the plugin in pluginConfig.
type Args struct {
	// Policy is the name of a built-in policy, or the path of a module or bundle.
	Policy string `json:"policy"`
	// PolicyConfig holds the settings of the policy.
	PolicyConfig json.RawMessage `json:"policyConfig,omitempty"`
	// OnFault is the result if the policy fails: keep, the default, uses the proposal of
	// DefaultPreemption; none evicts nothing.
	OnFault string `json:"onFault,omitempty"`
	// MinCandidateNodesPercentage bounds the nodes that the policy evaluates, as in
	// DefaultPreemption. Default: 100, all of them.
	MinCandidateNodesPercentage *int32 `json:"minCandidateNodesPercentage,omitempty"`
	// Deadline bounds a call of the policy. Default: 3s.
	Deadline metav1.Duration `json:"deadline,omitzero"`
	// EvictionDeadline is the time within which a named victim must start to terminate.
	// Afterwards it counts as running again. Default: 1m.
	EvictionDeadline metav1.Duration `json:"evictionDeadline,omitzero"`
}

// readArgs decodes the arguments and sets defaults. It returns an error if they are
// invalid.
func readArgs(o runtime.Object) (*Args, error) {
	a := &Args{OnFault: "keep", Deadline: metav1.Duration{Duration: 3 * time.Second}, EvictionDeadline: metav1.Duration{Duration: time.Minute}}
	if err := frameworkruntime.DecodeInto(o, a); err != nil {
		return nil, err
	}
	var errs []error
	if a.Policy == "" {
		errs = append(errs, errors.New("policy is required: the name of a built-in policy, or a path"))
	}
	if a.OnFault != "keep" && a.OnFault != "none" {
		errs = append(errs, fmt.Errorf("invalid onFault %q: expected keep or none", a.OnFault))
	}
	if p := a.MinCandidateNodesPercentage; p != nil && (*p < 1 || *p > 100) {
		errs = append(errs, fmt.Errorf("minCandidateNodesPercentage must be between 1 and 100, not %d", *p))
	}
	if a.Deadline.Duration <= 0 || a.EvictionDeadline.Duration <= 0 {
		errs = append(errs, errors.New("deadline and evictionDeadline must be more than 0"))
	}
	if len(a.PolicyConfig) > 0 {
		var settings map[string]any
		if err := json.Unmarshal(a.PolicyConfig, &settings); err != nil {
			errs = append(errs, fmt.Errorf("policyConfig: %w", err))
		}
	}
	return a, errors.Join(errs...)
}

// percentage returns the part of the nodes that are evaluated.
func (a *Args) percentage() int32 {
	if a.MinCandidateNodesPercentage == nil {
		return 100
	}
	return *a.MinCandidateNodesPercentage
}
