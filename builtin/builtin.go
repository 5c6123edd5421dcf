package builtin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/policies/aging"
	defaults "github.com/cede-scheduler/cede/policies/default"
	fairshare "github.com/cede-scheduler/cede/policies/fair-share"
	"github.com/cede-scheduler/cede/policies/karmada"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	"github.com/cede-scheduler/cede/policies/nomad"
	"github.com/cede-scheduler/cede/policies/optimal"
	"github.com/cede-scheduler/cede/policies/protect"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Policy is a built-in policy.
type Policy struct {
	Name    string
	Summary string // one line of help
	// rules is incremented by every change after which the same configuration may
	// evict other allocations. It distinguishes versions of a built-in policy.
	rules  string
	grants []string
	New    func() sdk.Policy
	// older are the earlier versions of the rules. A cluster may have activated one, and
	// recordings name it; NAME@1 refers to version 1.
	older []olderRules
}

// olderRules is an earlier version of the rules of a policy.
type olderRules struct {
	rules string
	new   func() sdk.Policy
}

// List returns every built-in policy: default first, then the others by name.
func List() []Policy {
	return []Policy{
		{
			Name: policy.DefaultName, Summary: "evicts the lowest priorities, and no more victims than necessary",
			rules: "2", New: defaults.New,
			older: []olderRules{{"1", defaults.NewVersion1}},
		},
		{
			Name: "aging", Summary: "reduces the required priority gap with waiting time, to prevent starvation",
			rules: "1", New: func() sdk.Policy { return aging.New() },
		},
		{
			Name: "fair-share", Summary: "evicts from the namespaces with the largest share relative to their weight",
			rules: "1", New: func() sdk.Policy { return fairshare.New() },
		},
		{
			Name: "karmada", Summary: "evicts bindings from member clusters, as in the proposal of Karmada",
			rules: "2", New: func() sdk.Policy { return karmada.New() },
			older: []olderRules{{"1", karmada.NewVersion1}},
		},
		{
			Name: "kubernetes", Summary: "evicts the same victims as kube-scheduler, by importance and disruption budgets",
			rules: "1", New: func() sdk.Policy { return kubernetes.New() },
		},
		{
			Name: "least-waste", Summary: "evicts the victims that lose the least work",
			rules: "2", New: func() sdk.Policy { return leastwaste.New() },
			older: []olderRules{{"1", func() sdk.Policy { return leastwaste.NewVersion1() }}},
		},
		{
			Name: "nomad", Summary: "evicts the same victims as HashiCorp Nomad, including surplus victims",
			rules: "1", New: func() sdk.Policy { return nomad.New() },
			grants: []string{policy.GrantKeepRedundant},
		},
		{
			Name: "optimal", Summary: "finds the cheapest victims by search: by priority, number or lost work",
			rules: "1", New: func() sdk.Policy { return optimal.New() },
		},
		{
			Name: "protect", Summary: "protects allocations until they have run for a minimum time",
			rules: "1", New: func() sdk.Policy { return protect.New() },
		},
	}
}

// Names returns the names of the built-in policies.
func Names() []string {
	var names []string
	for _, p := range List() {
		names = append(names, p.Name)
	}
	return names
}

// Older returns the names of the earlier versions of the rules of built-in policies.
func Older() (names []string) {
	for _, p := range List() {
		for _, o := range p.older {
			names = append(names, p.Name+"@"+o.rules)
		}
	}
	return names
}

// OfDigest returns the name of the policy whose code has the digest, with the version of its
// rules unless that is the newest one, or "" if none has.
func OfDigest(digest string) string {
	for _, p := range List() {
		if policy.BuiltinDigest(p.Name, p.rules) == digest {
			return p.Name
		}
		for _, o := range p.older {
			if policy.BuiltinDigest(p.Name, o.rules) == digest {
				return p.Name + "@" + o.rules
			}
		}
	}
	return ""
}

// Module returns the code of a policy by its name, or by its name and the version of its
// rules, such as default@1, and the grants of its versions.
func Module(use string) (m policy.Module, grants []string, ok bool) {
	name, rules, _ := strings.Cut(use, "@")
	list := List()
	i := slices.IndexFunc(list, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		return nil, nil, false
	}
	p := list[i]
	if use == name || rules == p.rules {
		return policy.Native(policy.BuiltinDigest(p.Name, p.rules), p.New), p.grants, true
	}
	for _, o := range p.older {
		if o.rules == rules {
			return policy.Native(policy.BuiltinDigest(p.Name, o.rules), o.new), p.grants, true
		}
	}
	return nil, nil, false
}

// Version returns a version of a policy, as Module returns it, with a configuration (nil: none)
// and further grants.
func Version(name, use string, config map[string]any, grants ...string) (*policy.Version, error) {
	code, own, ok := Module(use)
	if !ok {
		return nil, fmt.Errorf("unknown policy %q", use)
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", name, err)
	}
	return policy.NewVersion(policy.Source{Name: name, Config: encoded, Grants: slices.Concat(own, grants), Module: code})
}

// DefaultSet returns a set that contains the policy default alone.
func DefaultSet() (*policy.Set, error) {
	version, err := Version(policy.DefaultName, policy.DefaultName, nil)
	if err != nil {
		return nil, err
	}
	return policy.NewSet(version)
}
