package jobspec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// DefaultBindingKillTimeout is the kill timeout of an evicted assignment if its
// binding sets none.
const DefaultBindingKillTimeout = 30 * time.Second

// The values of a preemption policy.
const (
	preemptLower = "PreemptLowerPriority"
	preemptNever = "Never"
)

// BindingToModel converts a binding of the API. The priority class is stored by name
// and not resolved. Rules between fields are checked by model.Binding.Validate, not
// here. It returns Problems, with paths of the API's JSON, if a field is invalid.
func BindingToModel(b *client.Binding) (*model.Binding, error) {
	c := &conversion{}
	m := &model.Binding{
		Namespace: cmp.Or(b.Namespace, model.DefaultNamespace), ID: b.ID, ClusterScoped: b.Scope == client.ScopeCluster,
		PriorityClass: b.PriorityClass, ClassSource: model.ClassSource(b.PriorityClassSource), Preempts: b.PreemptionPolicy == preemptLower,
		Replicas: 1, MinReplicas: b.MinReplicas, Clusters: slices.Clone(b.Clusters), Weights: clone(b.Weights),
		Constraints: c.constraints("Constraints", b.Constraints, false), Duplicated: b.ReplicaScheduling == client.ReplicasDuplicated,
		MinClusters: b.MinClusters, MaxClusters: b.MaxClusters, SpreadBy: b.SpreadBy, MinGroups: b.MinGroups, MaxGroups: b.MaxGroups,
		KillTimeout: int64(DefaultBindingKillTimeout),
		Duration:    int64(b.Duration), Checkpoint: int64(b.Checkpoint), Template: slices.Clone(b.Template),
	}
	if b.Replicas != nil {
		m.Replicas = *b.Replicas
	}
	if b.Priority != nil {
		m.Priority = int32(min(max(*b.Priority, math.MinInt32), math.MaxInt32)) // checkBinding rejects values out of range
	}
	if b.KillTimeout != nil {
		m.KillTimeout = int64(*b.KillTimeout)
	}
	if len(b.Resources) > 0 {
		m.Resources = maps.Clone(b.Resources)
	}
	c.checkBinding(b)
	if err := c.problems.err(); err != nil {
		return nil, err
	}
	return m, nil
}

func (c *conversion) checkBinding(b *client.Binding) {
	oneOf := func(path, value string, words ...string) {
		if value != "" && !slices.Contains(words, value) {
			c.add(path, fmt.Sprintf("unknown value %.60q", value), "write "+strings.Join(words, " or ")+", or leave it out")
		}
	}
	oneOf("Scope", b.Scope, client.ScopeNamespace, client.ScopeCluster)
	oneOf("PreemptionPolicy", b.PreemptionPolicy, preemptLower, preemptNever)
	oneOf("ReplicaScheduling", b.ReplicaScheduling, client.ReplicasDivided, client.ReplicasDuplicated)
	oneOf("PriorityClassSource", b.PriorityClassSource, string(model.KubePriorityClass), string(model.PodPriorityClass), string(model.FederatedPriorityClass))
	if p := b.Priority; p != nil && (*p < math.MinInt32 || *p > math.MaxInt32) {
		c.add("Priority", fmt.Sprintf("invalid priority %d: must be between %d and %d", *p, math.MinInt32, math.MaxInt32), "use a number in this range")
	}
	if b.Priority != nil && b.PriorityClass != "" {
		c.add("Priority", "priority and priority class are mutually exclusive", "remove one of the two")
	}
	for _, name := range slices.Sorted(maps.Keys(b.Resources)) {
		c.checkAmount(keyPath("Resources", name), name, b.Resources[name])
	}
	if len(b.Template) > 0 && !json.Valid(b.Template) {
		c.add("Template", "not valid JSON", "write a job with one group")
	}
}

// BindingFromModel is the inverse of BindingToModel. All fields of the result are
// set, including defaults.
func BindingFromModel(m *model.Binding) *client.Binding {
	priority, replicas, kill := int(m.Priority), m.Replicas, time.Duration(m.KillTimeout)
	b := &client.Binding{
		ID: m.ID, Namespace: m.Namespace, Scope: client.ScopeNamespace, PriorityClass: m.PriorityClass,
		PriorityClassSource: string(m.ClassSource), PreemptionPolicy: PreemptionPolicyOf(m), Replicas: &replicas,
		MinReplicas: m.MinReplicas, Resources: clone(m.Resources), Clusters: slices.Clone(m.Clusters), Weights: clone(m.Weights),
		Constraints: fromConstraints(m.Constraints), ReplicaScheduling: client.ReplicasDivided,
		MinClusters: m.MinClusters, MaxClusters: m.MaxClusters, SpreadBy: m.SpreadBy, MinGroups: m.MinGroups, MaxGroups: m.MaxGroups,
		KillTimeout: &kill, Duration: time.Duration(m.Duration),
		Checkpoint: time.Duration(m.Checkpoint), Template: m.Template, Stop: m.Stopped, Version: m.Version, SubmitTime: m.SubmitTime,
		CreateIndex: m.CreateIndex, ModifyIndex: m.ModifyIndex,
	}
	if m.ClusterScoped {
		b.Scope = client.ScopeCluster
	}
	if m.Duplicated {
		b.ReplicaScheduling = client.ReplicasDuplicated
	}
	if m.PriorityClass == "" { // with a class, the API does not accept a priority as well
		b.Priority = &priority
	}
	return b
}

// PreemptionPolicyOf returns the preemption policy of a binding as in the API.
func PreemptionPolicyOf(m *model.Binding) string {
	if m.Preempts {
		return preemptLower
	}
	return preemptNever
}
