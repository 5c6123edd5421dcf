package bound_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/bound"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// nestedGang draws a scenario of nearly full hosts in racks in zones, and a gang that must share
// a domain of a topology key. All victims are in one band of least-waste, so that the policy
// orders them by lost work alone, as the bound does.
func nestedGang(seed uint64, key string) *scenario.File {
	d := rand.New(rand.NewPCG(seed, 17))
	f := &scenario.File{Version: 1, Name: "nested", Seed: seed}
	for zone := range 2 + d.IntN(2) {
		for rack := range 1 + d.IntN(3) {
			for host := range 1 + d.IntN(3) {
				fillHost(d, f, scenario.Node{
					ID: fmt.Sprintf("n%d%d%d", zone, rack, host), Capacity: scenario.Quantities{"cpu": int64(4 + d.IntN(5))},
					Attributes: map[string]string{"zone": fmt.Sprint("z", zone), "rack": fmt.Sprint("r", zone, rack)},
				})
			}
		}
	}
	gang := scenario.Job{ID: "gang", Type: "batch", Priority: new(int32(80)), AllAtOnce: true}
	for g := range 1 + d.IntN(2) {
		gang.Groups = append(gang.Groups, scenario.Group{
			Name: fmt.Sprint("g", g), Count: new(1 + d.IntN(4)), Resources: scenario.Quantities{"cpu": int64(1 + d.IntN(4))},
			Labels: map[string]string{"app": "gang"}, Colocate: []scenario.LabelTerm{{Labels: map[string]string{"app": "gang"}, TopologyKey: key}},
		})
	}
	f.Jobs = append(f.Jobs, gang)
	f.Events = []scenario.Event{{Submit: "gang"}}
	return f
}

// fillHost adds a node with running jobs.
func fillHost(d *rand.Rand, f *scenario.File, n scenario.Node) {
	f.Nodes = append(f.Nodes, n)
	for free := n.Capacity["cpu"]; free > int64(d.IntN(3)); {
		use := min(free, int64(1+d.IntN(4)))
		free -= use
		id := fmt.Sprintf("v%02d", len(f.Running))
		f.Jobs = append(f.Jobs, scenario.Job{
			ID: id, Type: "batch", Priority: new(int32(20 + d.IntN(3))),
			Groups: []scenario.Group{{Name: "g", Count: new(1), Resources: scenario.Quantities{"cpu": use}}},
		})
		age := time.Duration(1+d.IntN(1+d.IntN(600))) * time.Minute
		f.Running = append(f.Running, scenario.Running{ID: id, Job: id, Group: "g", Node: n.ID, StartedAt: -scenario.Duration(age)})
	}
}

// Gangs that share a domain lose little more work than necessary under least-waste. Without
// revision (ADR 0092) regret is 5 % of the lost work in zones and 4 % in racks, and 17 % and 14 % of the
// decisions can be improved.
func TestRecorder_GangsInNestedDomainsAreNearTheBound(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"zone", "rack"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			var cost, regret int64
			decisions, suboptimal := 0, 0
			for seed := range uint64(max(300, soak.Count(300, 6000))) { // shares of fewer decisions vary too much
				r := bound.NewRecorder(bound.DefaultLimit)
				r.EvictionsOnly = true
				if _, err := sim.Play(context.Background(), nestedGang(seed, key), sim.Options{Policy: "least-waste", Resolve: resolve, Evaluated: r.Evaluated}); err != nil {
					t.Fatal(err)
				}
				report := r.Report()
				cost, regret, decisions = cost+report.Cost, regret+report.Regret, decisions+report.Decisions
				suboptimal += report.Decisions - report.Optimal
			}
			t.Logf("%d decisions, %d not optimal; regret: %.2f %% of the lost work", decisions, suboptimal, 100*float64(regret)/float64(cost))
			if decisions < 200 || suboptimal > decisions*13/100 || regret > cost*3/100 {
				t.Errorf("too far from the bound")
			}
		})
	}
}

// A gang that evicts is not revised by moves, which belong to the commit group of their placement.
func TestRecorder_GangsInNestedDomainsMoveInWholeGroups(t *testing.T) {
	t.Parallel()
	evicting := 0
	for seed := range uint64(soak.Count(150, 3000)) {
		f := nestedGang(seed, "zone")
		f.Scheduler.Moves = &scenario.Moves{PerJob: 2, Window: scenario.Duration(time.Hour)}
		run, err := sim.Play(context.Background(), f, sim.Options{Policy: "least-waste", Resolve: resolve})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(run.Faults) > 0 {
			t.Fatalf("seed %d: %v", seed, run.Faults[0])
		}
		if len(run.Result.Evicted) > 0 {
			evicting++
		}
	}
	if evicting < soak.Count(50, 1000) {
		t.Errorf("%d runs evict: too few", evicting)
	}
}
