package runs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/decision"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/compare"
)

// Decisions returns the placements and the assignments of a run with their evictions.
func Decisions(r *sim.Result) []compare.Decision {
	costs := costs(r.Evicted)
	list := make([]compare.Decision, len(r.Placements))
	for i := range r.Placements {
		p := &r.Placements[i]
		victims := slices.Clone(p.Preempted)
		for _, ids := range p.PreemptedElsewhere {
			victims = append(victims, ids...)
		}
		slices.Sort(victims)
		list[i] = compare.Decision{
			At: int64(p.At), Preemptor: p.Alloc, Job: p.Job, Group: p.Group,
			Node: p.Node, Victims: victims, Score: p.Score, Cost: costs[p.Alloc], Chosen: decision.NodeReason(p.Why, compare.Number),
		}
	}
	return slices.Concat(list, observed(r), assignments(r, costs))
}

// observed returns the decisions that were recorded and not carried out. Those for the same
// instance are numbered, so that each is compared.
func observed(r *sim.Result) []compare.Decision {
	times := map[string]int{}
	list := make([]compare.Decision, len(r.Observed))
	for i := range r.Observed {
		o := &r.Observed[i]
		times[o.Alloc]++
		list[i] = compare.Decision{
			At: int64(o.At), Preemptor: fmt.Sprintf("%s (observed %d)", o.Alloc, times[o.Alloc]), Job: o.Job, Group: o.Group, Observed: true,
			Node: o.Node, Victims: o.Victims, Chosen: decision.NodeReason(o.Choice, compare.Number),
			Cost: compare.Cost{HighestPriority: o.Cost.HighestPriority, LostWork: int64(time.Duration(o.LostWork) / time.Second), BudgetViolations: o.Cost.BudgetViolations},
		}
	}
	return list
}

// assignmentOf identifies the entries of one decision about a binding.
type assignmentOf struct {
	at      sim.At
	binding string
}

// assignments returns the decisions about bindings. A result has one entry for each claim of
// a decision.
func assignments(r *sim.Result, costs map[string]compare.Cost) (list []compare.Decision) {
	victims := map[assignmentOf][]string{}
	for i := range r.Evicted {
		if e := &r.Evicted[i]; e.Binding != "" {
			of := assignmentOf{e.At, e.By}
			victims[of] = append(victims[of], replicas(e.Binding, e.Replicas))
		}
	}
	clusters := map[assignmentOf]map[string]int{}
	for i := range r.Bindings {
		b := &r.Bindings[i]
		of := assignmentOf{b.At, b.Binding}
		if known := clusters[of]; known != nil {
			maps.Copy(known, b.Clusters)
			continue
		}
		clusters[of] = maps.Clone(b.Clusters)
		slices.Sort(victims[of])
		list = append(list, compare.Decision{
			At: int64(b.At), Preemptor: b.Binding, Job: b.Binding, IsBinding: true, Victims: victims[of], Cost: costs[b.Binding],
		})
	}
	for i := range list {
		var parts []string
		of := assignmentOf{sim.At(list[i].At), list[i].Preemptor}
		for _, cluster := range slices.Sorted(maps.Keys(clusters[of])) {
			parts = append(parts, replicas(cluster, clusters[of][cluster]))
		}
		list[i].Node = strings.Join(parts, ", ")
	}
	return list
}

// replicas formats a number of replicas of a binding, or on a cluster.
func replicas(name string, n int) string { return fmt.Sprintf("%s ×%d", name, n) }

// costs returns the costs of victims by the allocation or binding that evicted them.
func costs(list []sim.Evicted) map[string]compare.Cost {
	all := map[string]compare.Cost{}
	for i := range list {
		e := &list[i]
		c, seen := all[e.By]
		if !seen || e.Priority > c.HighestPriority {
			c.HighestPriority = e.Priority
		}
		c.LostWork += int64(time.Duration(e.LostWork) / time.Second)
		if e.BudgetViolated {
			c.BudgetViolations++
		}
		all[e.By] = c
	}
	return all
}
