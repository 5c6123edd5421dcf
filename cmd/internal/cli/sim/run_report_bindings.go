package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/sim"
)

// bound lists the bindings that were assigned to member clusters.
func (s *runReport) bound() {
	list := s.run.Result.Bindings
	if len(list) == 0 {
		return
	}
	s.Title("Assigned")
	t := &term.Table{Columns: []term.Column{{Title: "AT"}, {Title: "BINDING"}, {Title: "CLUSTERS"}, {Title: "EVICTS"}}}
	shown := s.some(len(list))
	for i := range list[:shown] {
		b := &list[i]
		var clusters []string
		for _, id := range slices.Sorted(maps.Keys(b.Clusters)) {
			clusters = append(clusters, cmdutil.ReplicasOn(id, b.Clusters[id]))
		}
		t.Row(duration(b.At), b.Binding, strings.Join(clusters, ", "), s.ids(b.Preempted))
	}
	s.Table(t)
	s.more(len(list) - shown)
}

// unboundReplicas counts the replicas that are not assigned at the end.
func unboundReplicas(r *sim.Result) (n int) {
	for i := range r.Unplaced {
		if r.Unplaced[i].Binding != "" {
			n += r.Unplaced[i].Count
		}
	}
	return n
}
