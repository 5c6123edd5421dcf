package sim_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// If policytest writes a case as a scenario, the simulator evicts the same victims as
// the in-memory host of policytest.
func TestPolicytest_MatchesEngine(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	evictions := 0
	for k := range policytest.Count(t) / 100 {
		c := policytest.Random(r, policytest.Shape{Options: 4, Rows: 6, Small: k%2 == 0, Work: true})
		text := policytest.Scenario(c, "case", "default")
		f, err := scenario.Decode("case", strings.NewReader(string(text)))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		run, err := sim.Play(context.Background(), f, sim.Options{Resolve: resolve})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		d, err := policytest.Of(rules.New()).Decide(c)
		if err != nil {
			t.Fatal(err)
		}
		// If a node has enough free capacity, the engine does not call the policy.
		free := false
		for _, v := range d.Victims {
			free = free || v != nil && len(v) == 0
		}
		// Victims may be placed again on another node.
		at := slices.IndexFunc(run.Result.Placements, func(p sim.Placement) bool { return p.Job == "preemptor" })
		placed := at >= 0
		if placed != (d.Chosen >= 0) {
			t.Fatalf("placed %v, decided %v\n%s", placed, d, text)
		}
		if !placed || free {
			continue
		}
		node := run.Result.Placements[at].Node
		i := slices.IndexFunc(c.Options, func(o policytest.Option) bool { return o.Name == node })
		var want []string
		for _, name := range c.Names(i, d.Victims[i]) {
			want = append(want, node+"-"+name)
		}
		got := slices.Sorted(slices.Values(run.Result.Placements[at].Preempted))
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("the engine evicts %v on %s, policytest %v\n%s", got, node, want, text)
		}
		evictions += len(got)
	}
	if evictions == 0 {
		t.Error("no case evicts an allocation")
	}
}
