package hosttest

import (
	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/policy"
)

// Shipped is a policy of this repository, to be compared in its several forms.
type Shipped struct {
	Name    string
	Native  policy.Module
	Configs []string // JSON, the first without settings
}

// ShippedPolicies returns all of them, with configurations that exercise their settings.
func ShippedPolicies() (list []Shipped) {
	configs := map[string]string{
		"karmada":    `{"victims":"fewest","clusters":"priority"}`,
		"kubernetes": `{"minCandidateNodesPercentage":40,"minCandidateNodesAbsolute":1}`,
		"optimal":    `{"cost":"victims","maxSteps":50}`,
		"fair-share": `{"onlyAbove":true}`,
		"aging":      `{"halfLife":"1h","settle":"1m"}`,
		"protect":    `{"minRuntime":"1h","secondsByNamespace":{"b":5000},"secondsByLabel":{"tier:gold":9000.5},"override":60,"maxEvictions":2}`,
	}
	for _, p := range builtin.List() {
		s := Shipped{Name: p.Name, Native: policy.Native("test", p.New), Configs: []string{""}}
		if c := configs[p.Name]; c != "" {
			s.Configs = append(s.Configs, c)
		}
		list = append(list, s)
	}
	return list
}
