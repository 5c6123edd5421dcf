package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/simrun"
	"github.com/cede-scheduler/cede/cmd/internal/term"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// runReport renders one run as text.
type runReport struct {
	cmdutil.Page
	file        *scenario.File
	run         *sim.Run
	differences []string // from the expectations of the file
}

func resultDocument(f *scenario.File, run *sim.Run, differences []string) cmdutil.Document {
	return cmdutil.Document{
		Data:  run.Result,
		Names: []string{run.Result.Scenario},
		Page: func(p cmdutil.Page) {
			s := runReport{Page: p, file: f, run: run, differences: differences}
			s.head()
			s.placed()
			s.bound()
			s.evicted()
			s.observed()
			s.moved()
			s.decisions()
			s.unplaced()
			s.metrics()
		},
	}
}

func (s *runReport) head() {
	if s.NoHeaders {
		return
	}
	r, m := s.run.Result, s.run.Metrics
	s.Printf("%s under %s: %s placed, %s evicted, %s unplaced\n",
		s.Style.Text(term.Bold, r.Scenario), s.Style.Text(term.Bold, r.Policy),
		cmdutil.Thousands(m.Placed+len(r.Bindings)), cmdutil.Thousands(len(r.Evicted)), cmdutil.Thousands(m.Unplaced+unboundReplicas(r)))
	if s.file.Description != "" {
		s.Printf("%s\n", s.file.Description)
	}
	switch {
	case s.file.Expect == nil:
	case len(s.differences) == 0:
		s.Printf("%s\n", s.Style.Text(term.Green, "All expectations of the file hold."))
	default:
		s.Printf("%s\n", s.Style.Text(term.Red, "Some expectations of the file do not hold."))
	}
}

// placed lists placements. If the list is long, it shows only those that evicted
// allocations.
func (s *runReport) placed() {
	list := s.run.Result.Placements
	title := "Placed"
	if len(list) > simrun.MaxRunRows && !s.Wide {
		evicting := slices.DeleteFunc(slices.Clone(list), func(p sim.Placement) bool { return len(victims(&p)) == 0 })
		title = fmt.Sprintf("Placed by evicting: %s of %s placed", cmdutil.Thousands(len(evicting)), cmdutil.Thousands(len(list)))
		list = evicting
	}
	if len(list) == 0 {
		return
	}
	s.Title(title)
	t := &term.Table{Columns: []term.Column{{Title: "AT"}, {Title: "ALLOCATION"}, {Title: "NODE"}, {Title: "EVICTS"}}}
	if s.Wide {
		t.Columns = slices.Insert(t.Columns, 3, term.Column{Title: "SCORE", Right: true})
	}
	shown := s.some(len(list))
	for i := range list[:shown] {
		p := &list[i]
		row := []string{duration(p.At), p.Alloc, p.Node, s.ids(victims(p))}
		if s.Wide {
			row = slices.Insert(row, 3, compare.Number(p.Score))
		}
		t.Row(row...)
	}
	s.Table(t)
	s.more(len(list) - shown)
}

// victims lists the evictions of a placement: those on its node first, then those on
// other nodes with the node.
func victims(p *sim.Placement) []string {
	all := slices.Sorted(slices.Values(p.Preempted))
	for _, node := range slices.Sorted(maps.Keys(p.PreemptedElsewhere)) {
		for _, id := range slices.Sorted(slices.Values(p.PreemptedElsewhere[node])) {
			all = append(all, id+" on "+node)
		}
	}
	return all
}

func (s *runReport) evicted() {
	list := s.run.Result.Evicted
	if len(list) == 0 {
		return
	}
	s.Title("Evicted")
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
		row := []string{duration(e.At), cmp.Or(e.Alloc, e.Binding), cmp.Or(e.Node, cmdutil.ReplicasOn(e.Cluster, e.Replicas)), e.By, duration(e.LostWork)}
		switch {
		case e.BudgetViolated:
			row = append(row, "overrun")
		case overrun:
			row = append(row, "-")
		}
		t.Row(row...)
	}
	s.Table(t)
	s.more(len(list) - shown)
}

// observed lists the decisions that were recorded and not carried out.
func (s *runReport) observed() {
	list := s.run.Result.Observed
	if len(list) == 0 {
		return
	}
	s.Title("Would be evicted: preemption is only observed")
	t := &term.Table{Columns: []term.Column{{Title: "AT"}, {Title: "FOR"}, {Title: "NODE"}, {Title: "VICTIMS"}, {Title: "LOST WORK", Right: true}}}
	shown := s.some(len(list))
	for i := range list[:shown] {
		o := &list[i]
		t.Row(duration(o.At), o.Alloc, o.Node, s.ids(o.Victims), duration(o.LostWork))
	}
	s.Table(t)
	s.more(len(list) - shown)
}

// moved lists the instances that were moved to make room.
func (s *runReport) moved() {
	list := s.run.Result.Moved
	if len(list) == 0 {
		return
	}
	s.Title("Moved to make room")
	t := &term.Table{Columns: []term.Column{
		{Title: "AT"}, {Title: "ALLOCATION"}, {Title: "FROM"}, {Title: "TO"}, {Title: "FOR"}, {Title: "LOST WORK", Right: true},
	}}
	shown := s.some(len(list))
	for i := range list[:shown] {
		m := &list[i]
		t.Row(duration(m.At), m.Alloc, m.Node, m.ToNode, s.ids(m.For), duration(m.LostWork))
	}
	s.Table(t)
	s.more(len(list) - shown)
}

func (s *runReport) unplaced() {
	list := s.run.Result.Unplaced
	if len(list) == 0 {
		return
	}
	s.Title("Unplaced at the end")
	t := &term.Table{Columns: []term.Column{{Title: "JOB"}, {Title: "GROUP"}, {Title: "COUNT", Right: true}, {Title: "REASON"}}}
	if list[0].Binding != "" { // those of bindings are at the end
		t.Columns = []term.Column{{Title: "BINDING"}, {Title: "COUNT", Right: true}, {Title: "REASON"}}
		for i := range list[:s.some(len(list))] {
			t.Row(list[i].Binding, cmdutil.Thousands(list[i].Count), list[i].Reason)
		}
		s.Table(t)
		s.more(len(list) - s.some(len(list)))
		return
	}
	shown := s.some(len(list))
	for i := range list[:shown] {
		u := &list[i]
		t.Row(cmp.Or(u.Job, u.Binding), cmp.Or(u.Group, "-"), cmdutil.Thousands(u.Count), u.Reason)
	}
	s.Table(t)
	s.more(len(list) - shown)
}

// decisions explains evictions, if that was requested.
func (s *runReport) decisions() {
	list := s.run.Result.Decisions
	if len(list) == 0 {
		return
	}
	s.Title("Why")
	shown := s.some(len(list))
	for i := range list[:shown] {
		d := &list[i]
		s.Printf("  %s: %s (priority %d) on %s evicts %s\n", d.At, d.Alloc, d.Priority, d.Node, strings.Join(d.Victims, ", "))
		if d.Why != nil {
			for _, text := range d.Why.Text {
				s.Printf("    %s\n", text)
			}
		}
		for _, w := range d.WhatIf {
			s.Printf("    %s\n", strings.Join(w.Text, " "))
		}
	}
	s.more(len(list) - shown)
}

// metrics lists the metrics that are neither zero nor printed already.
func (s *runReport) metrics() {
	t := &term.Table{Columns: []term.Column{{Title: "METRIC"}, {Title: "VALUE", Right: true}, {Title: "UNIT"}}}
	for _, v := range s.run.Metrics.Flatten() {
		d, _ := metrics.Define(v.Name)
		if s.Wide || v.Value != 0 && isNotable(v.Name, d) {
			t.Row(v.Name, compare.Number(v.Value), cmp.Or(metrics.Unit(v.Name), "count"))
		}
	}
	if t.Len() == 0 {
		return
	}
	s.Title("Metrics")
	s.Table(t)
}

// isNotable reports whether a metric is shown by default: it is not zero and not a part of
// another one.
func isNotable(name string, d metrics.Definition) bool {
	if d.Context || d.Raw || slices.Contains([]string{"unplaced", "victims", "unboundReplicas", "evictedReplicas"}, name) {
		return false
	}
	for _, between := range []string{".p90", ".p95", ".p99", ".p999"} {
		if strings.HasSuffix(name, between) {
			return d.Name == "decisionLatency"
		}
	}
	return true
}

// some returns the number of rows to print.
func (s *runReport) some(n int) int {
	if s.Wide {
		return n
	}
	return min(n, simrun.MaxRunRows)
}

func (s *runReport) more(n int) {
	if n > 0 && !s.NoHeaders {
		s.Printf("  and %s more; -o wide lists them\n", cmdutil.Thousands(n))
	}
}

// ids formats the IDs of allocations and shortens long lists.
func (s *runReport) ids(list []string) string {
	if len(list) <= simrun.MaxVictims || s.Wide {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %s more", strings.Join(list[:simrun.MaxVictims-1], ", "), cmdutil.Thousands(len(list)-simrun.MaxVictims+1))
}

// duration formats a duration as in scenario files.
func duration(at sim.At) string { return scenario.Duration(at).String() }
