package scheduler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
)

// If a bound ends a search, that is reported and counted, and nothing is evicted.
func TestRemoteConflicts_ReportsExceededBound(t *testing.T) {
	t.Parallel()
	for _, keepers := range []int{64, 65} {
		w := newFixture(t)
		for i := range 14 {
			w.node(fmt.Sprintf("n%02d", i), zone("a"))
		}
		var pairs []string
		for i := range keepers {
			pairs = append(pairs, fmt.Sprintf("q%02d", i), fmt.Sprintf("n%02d", 1+i/5))
		}
		w.run(job("q", 10, 2, 2).Count(keepers).With(func(g *model.Group) { g.Labels = labels("q") }).Obj(), pairs...)
		w.job(job("p", 50, 10, 10).With(func(g *model.Group) {
			g.Separate = term("q", "zone")
			g.Constraints = []model.Constraint{{Attribute: "node.id", Operator: "=", Value: "n00"}}
		}).Obj())
		out := w.plan("p")
		if keepers == 64 {
			if len(out.Plan.Groups) == 0 || len(out.Plan.Groups[0].Evictions) != 64 {
				t.Errorf("64 remote evictions are allowed: %s", format(out))
			}
			continue
		}
		want := "0 of 14 nodes: 13 excluded by node.id = n00, 1 excluded by separate from app=q by zone; " +
			"eviction does not help: on 1 more than 64 allocations on other nodes would have to be evicted"
		if got := out.Failed["g"].String(); got != want || len(out.Plan.Groups) > 0 {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A gang that is nearly feasible in very many ways costs a bounded number of steps,
// and the cut is reported and counted.
func TestGang_ReportsCutSearch(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for i := range 40 {
		w.node(fmt.Sprintf("n%02d", i), zone([]string{"a", "b"}[i%2]))
	}
	apart := func(g *model.Group) {
		g.Labels = labels("me")
		g.Constraints = []model.Constraint{{Operator: model.OpDistinctHosts}}
	}
	// As many small ones as fill every node but one, and two that each need a node of
	// their own.
	w.job(job("j", 50, 6, 1).Count(39).With(apart).Group("h", 2).Ask(6, 1, 0).Change(func(j *model.Job) { j.AllAtOnce = true }).Obj())
	out := w.plan("j")
	if out.SearchesCut != 1 || len(out.Plan.Groups) > 0 {
		t.Fatalf("%d searches were cut: %s", out.SearchesCut, format(out))
	}
	for _, name := range []string{"g", "h"} {
		if why := out.Failed[name].String(); !strings.HasPrefix(why, "all at once: no placement of all groups was found in 1024 steps, and the search was not exhaustive") {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// If strict budgets allow so many pairs that not all are tried, the nodes' reasons
// state it, and it is counted.
func TestBudgetSearch_ReportsCutSearch(t *testing.T) {
	skipComparisonUnderRace(t)
	t.Parallel()
	for _, budgets := range []int{1, 3} {
		job := coretest.PreemptingJob(1).Obj()
		s := scheduler.New(scheduler.Config{Policies: coretest.Policies()})
		out, err := s.Process(coretest.Eval(job), coretest.PutJobs(sharedInPairs(1000, budgets), job), 1)
		if err != nil || len(out.Plan.Groups) > 0 {
			t.Fatal(err, format(out))
		}
		said := strings.Contains(out.Failed[job.Groups[0].Name].String(), "too few are left, and the search for other victims was not exhaustive")
		if cut := budgets == 3; cut != said || cut != (out.SearchesCut == 1) {
			t.Errorf("%d budgets: %d searches were cut: %s", budgets, out.SearchesCut, out.Failed[job.Groups[0].Name])
		}
	}
}

// A co-located gang is placed in the rack that has enough capacity for all of it, even
// if the best node for its first instance is in another rack and there are more ways to
// start in the wrong rack than a search has steps.
func TestGang_FindsRackWithCapacityForAll(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	var pairs []string
	for i := range 400 {
		rack := i / 20
		w.node(fmt.Sprintf("n%03d", i), zone(fmt.Sprintf("r%02d", rack)))
		if rack != 13 && i%20 != 0 { // in other racks capacity is fragmented, except for one node
			pairs = append(pairs, fmt.Sprintf("x%03d", i), fmt.Sprintf("n%03d", i))
		}
	}
	w.run(job("crumbs", 80, 4, 1).Count(len(pairs)/2).Obj(), pairs...)
	w.job(job("j", 50, 3, 1).Count(24).With(func(g *model.Group) { g.Labels, g.Colocate = labels("me"), term("me", "zone") }).
		Group("h", 12).Ask(10, 1, 0).With(func(g *model.Group) { g.Labels, g.Colocate = labels("me"), term("me", "zone") }).
		Change(func(j *model.Job) { j.AllAtOnce = true }).Obj())
	out := w.plan("j")
	if !out.Placed() || out.SearchesCut > 0 {
		t.Fatal(format(out))
	}
	for _, a := range out.Plan.Groups[0].Placements {
		if n := w.store.Snapshot().Node(a.NodeID); n.Attributes["zone"] != "r13" {
			t.Errorf("%s is in %s", a.ID, n.Attributes["zone"])
		}
	}
}
