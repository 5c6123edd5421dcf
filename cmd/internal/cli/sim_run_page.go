package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// What a person reads of a long list; -o wide and -o json have all of it.
const (
	mostRows    = 20
	mostVictims = 6
)

// story tells one run to a person.
type story struct {
	page
	file        *scenario.File
	run         *sim.Run
	differences []string // from what the file expects
}

func resultDocument(f *scenario.File, run *sim.Run, differences []string) document {
	return document{
		data:  run.Result,
		names: []string{run.Result.Scenario},
		page: func(p page) {
			s := story{page: p, file: f, run: run, differences: differences}
			s.head()
			s.placed()
			s.bound()
			s.evicted()
			s.unplaced()
			s.metrics()
		},
	}
}

func (s *story) head() {
	if s.bare {
		return
	}
	r, m := s.run.Result, s.run.Metrics
	s.printf("%s under %s: %s placed, %s evicted, %s unplaced\n",
		s.style.Text(term.Bold, r.Scenario), s.style.Text(term.Bold, r.Policy),
		thousands(m.Placed+len(r.Bindings)), thousands(len(r.Evicted)), thousands(m.Unplaced+unboundReplicas(r)))
	if s.file.Description != "" {
		s.printf("%s\n", s.file.Description)
	}
	switch {
	case s.file.Expect == nil:
	case len(s.differences) == 0:
		s.printf("%s\n", s.style.Text(term.Green, "Everything that the file expects held."))
	default:
		s.printf("%s\n", s.style.Text(term.Red, "What the file expects did not hold."))
	}
}

// placed lists placements; of a long list those that evicted, which are what a
// reader looks for.
func (s *story) placed() {
	list := s.run.Result.Placements
	title := "Placed"
	if len(list) > mostRows && !s.wide {
		evicting := slices.DeleteFunc(slices.Clone(list), func(p sim.Placement) bool { return len(victims(&p)) == 0 })
		title = fmt.Sprintf("Placed by evicting: %s of %s placed", thousands(len(evicting)), thousands(len(list)))
		list = evicting
	}
	if len(list) == 0 {
		return
	}
	s.title(title)
	t := &term.Table{Columns: []term.Column{{Title: "AT"}, {Title: "ALLOCATION"}, {Title: "NODE"}, {Title: "EVICTS"}}}
	if s.wide {
		t.Columns = slices.Insert(t.Columns, 3, term.Column{Title: "SCORE", Right: true})
	}
	shown := s.some(len(list))
	for i := range list[:shown] {
		p := &list[i]
		row := []string{duration(p.At), p.Alloc, p.Node, s.ids(victims(p))}
		if s.wide {
			row = slices.Insert(row, 3, compare.Number(p.Score))
		}
		t.Row(row...)
	}
	s.table(t)
	s.more(len(list) - shown)
}

// victims are all that a placement evicted: those on its node, then those
// elsewhere with their node.
func victims(p *sim.Placement) []string {
	all := slices.Sorted(slices.Values(p.Preempted))
	for _, node := range slices.Sorted(maps.Keys(p.PreemptedElsewhere)) {
		for _, id := range slices.Sorted(slices.Values(p.PreemptedElsewhere[node])) {
			all = append(all, id+" on "+node)
		}
	}
	return all
}

func (s *story) evicted() {
	list := s.run.Result.Evicted
	if len(list) == 0 {
		return
	}
	s.title("Evicted")
	what, where := "ALLOCATION", "NODE"
	if list[0].Binding != "" {
		what, where = "BINDING", "CLUSTER"
	}
	t := &term.Table{Columns: []term.Column{{Title: "AT"}, {Title: what}, {Title: where}, {Title: "BY"}, {Title: "LOST WORK", Right: true}}}
	overrun := slices.ContainsFunc(list, func(e sim.Evicted) bool { return e.BudgetViolated })
	if overrun {
		t.Columns = append(t.Columns, term.Column{Title: "BUDGET"})
	}
	shown := s.some(len(list))
	for i := range list[:shown] {
		e := &list[i]
		row := []string{duration(e.At), cmp.Or(e.Alloc, e.Binding), cmp.Or(e.Node, replicasOn(e.Cluster, e.Replicas)), e.By, duration(e.LostWork)}
		switch {
		case e.BudgetViolated:
			row = append(row, "overrun")
		case overrun:
			row = append(row, "-")
		}
		t.Row(row...)
	}
	s.table(t)
	s.more(len(list) - shown)
}

func (s *story) unplaced() {
	list := s.run.Result.Unplaced
	if len(list) == 0 {
		return
	}
	s.title("Unplaced at the end")
	t := &term.Table{Columns: []term.Column{{Title: "JOB"}, {Title: "GROUP"}, {Title: "COUNT", Right: true}, {Title: "REASON"}}}
	if list[0].Binding != "" { // those of bindings come last
		t.Columns = []term.Column{{Title: "BINDING"}, {Title: "COUNT", Right: true}, {Title: "REASON"}}
		for i := range list[:s.some(len(list))] {
			t.Row(list[i].Binding, thousands(list[i].Count), list[i].Reason)
		}
		s.table(t)
		s.more(len(list) - s.some(len(list)))
		return
	}
	shown := s.some(len(list))
	for i := range list[:shown] {
		u := &list[i]
		t.Row(cmp.Or(u.Job, u.Binding), cmp.Or(u.Group, "-"), thousands(u.Count), u.Reason)
	}
	s.table(t)
	s.more(len(list) - shown)
}

// metrics lists what is neither zero nor said already.
func (s *story) metrics() {
	t := &term.Table{Columns: []term.Column{{Title: "METRIC"}, {Title: "VALUE", Right: true}, {Title: "UNIT"}}}
	for _, v := range s.run.Metrics.Flatten() {
		d, _ := metrics.Define(v.Name)
		if s.wide || v.Value != 0 && telling(v.Name, d) {
			t.Row(v.Name, compare.Number(v.Value), cmp.Or(d.Unit, "count"))
		}
	}
	if t.Len() == 0 {
		return
	}
	s.title("Metrics")
	s.table(t)
}

// telling is whether a metric is among those that a person reads first: not
// those of the heading, nor those that explain others, nor the quantiles
// between the median and the worst.
func telling(name string, d metrics.Definition) bool {
	if d.Context || slices.Contains([]string{"unplaced", "victims", "unboundReplicas", "evictedReplicas"}, name) {
		return false
	}
	for _, between := range []string{".p90", ".p95", ".p99", ".p999"} {
		if strings.HasSuffix(name, between) {
			return d.Name == "decisionLatency"
		}
	}
	return true
}

// some is how many rows of a list are shown.
func (s *story) some(n int) int {
	if s.wide {
		return n
	}
	return min(n, mostRows)
}

func (s *story) more(n int) {
	if n > 0 && !s.bare {
		s.printf("  and %s more; -o wide lists them\n", thousands(n))
	}
}

// ids lists allocations, most of many left out.
func (s *story) ids(list []string) string {
	if len(list) <= mostVictims || s.wide {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %s more", strings.Join(list[:mostVictims-1], ", "), thousands(len(list)-mostVictims+1))
}

// duration is a time as scenario files write it.
func duration(at sim.At) string { return scenario.Duration(at).String() }
