package bound_test

import (
	"context"
	"maps"
	"testing"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/bound"
	"github.com/cede-scheduler/cede/core/sim/mixes"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// resolve returns a built-in policy.
func resolve(spec sim.PolicySpec) (*policy.Version, error) {
	return builtin.Version(spec.Name, spec.Use, spec.Config, spec.Grants...)
}

// No policy reaches less than a bound: the answer of a policy is one of those that the
// bound is the minimum of.
func TestRecorder_NoPolicyBeatsTheBound(t *testing.T) {
	t.Parallel()
	verdicts, decisions, moves := map[bound.Verdict]int{}, 0, 0
	unplaced, lost := 0, 0 // runs with a positive bound
	for i := range soak.Count(40, 5000/9+1) {
		seed := uint64(13 + i) // policies move allocations in few scenarios, such as that of seed 17
		for _, name := range builtin.Names() {
			file := mixes.Generate(seed)
			file.Scheduler.Policy = ""
			if seed%2 == 1 {
				file.Scheduler.Moves = &scenario.Moves{PerJob: int32(1 + seed%3), Window: scenario.Duration(3600e9)}
			}
			r := bound.NewRecorder(bound.DefaultLimit)
			run, err := sim.Play(context.Background(), file, sim.Options{Policy: name, Resolve: resolve, Evaluated: func(e sim.Evaluated) {
				x := r.BoundOf(e)
				if x == nil {
					return
				}
				verdicts[x.Verdict]++
				if (len(x.Causes) > 0) != (x.Verdict == bound.Open) {
					t.Errorf("seed %d, %s: %s because of %q", seed, name, x.Verdict, x.Causes)
				}
				decisions++
				if len(x.Moved) > 0 {
					moves++
				}
				if x.Lower > x.Cost {
					t.Errorf("seed %d, %s at %d: %s evicts %v at %d, bound %d\n%+v", seed, name, x.At, x.Job, x.Victims, x.Cost, x.Lower, x)
				}
			}})
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, err)
			}
			report, err := r.Finish(file, run)
			if err != nil {
				t.Fatal(err)
			}
			if got := report.Run; got.Unplaced > run.Metrics.Unplaced || got.LostWork > lostWork(t, file, run.Result) {
				t.Errorf("seed %d, %s: %d unplaced and %d lost, bounds %+v", seed, name, run.Metrics.Unplaced, lostWork(t, file, run.Result), got)
			}
			if got := report.Run; got.UnplacedWeightBound > got.UnplacedWeight || got.UnplacedWeightBound < got.Unplaced || got.UnplacedWeight < run.Metrics.Unplaced {
				t.Errorf("seed %d, %s: %d unplaced, weights %+v", seed, name, run.Metrics.Unplaced, got)
			}
			if report.Run.Unplaced > 0 {
				unplaced++
			}
			if report.Run.LostWork > 0 {
				lost++
			}
		}
	}
	t.Logf("%d decisions: %v; %d with moves; %d runs with a bound on unplaced instances, %d on lost work", decisions, verdicts, moves, unplaced, lost)
	if verdicts[bound.Optimal] < decisions/10 || verdicts[bound.Suboptimal] == 0 || unplaced == 0 || lost == 0 || moves == 0 {
		t.Error("too few cases")
	}
}

// A recorder of evictions alone reports the same lost work and regret as a full one, and not less
// where the host may move instances, since answers that move them are excluded.
func TestRecorder_EvictionsOnlyOmitsMovesAndUnplacedWork(t *testing.T) {
	t.Parallel()
	skipped, raised := 0, 0
	last := uint64(max(16, soak.Count(16, 400))) // in few of them, a bound is higher without moves
	for seed := range last + 1 {
		if seed == last {
			seed = 301 // evictions alone do not suffice for one decision
		}
		file, moves := mixes.Generate(seed), seed%2 == 1
		file.Scheduler.Policy = ""
		if moves {
			file.Scheduler.Moves = &scenario.Moves{PerJob: 1, Window: scenario.Duration(3600e9)}
		}
		full, only := bound.NewRecorder(bound.DefaultLimit), bound.NewRecorder(bound.DefaultLimit)
		only.EvictionsOnly = true
		_, err := sim.Play(context.Background(), file, sim.Options{Resolve: resolve, Evaluated: func(e sim.Evaluated) {
			full.Evaluated(e)
			only.Evaluated(e)
		}})
		if err != nil {
			t.Fatal(err)
		}
		f, o := full.Report(), only.Report()
		if f.Cost != o.Cost || o.Lower < f.Lower || !moves && (o.Lower != f.Lower || o.Regret != f.Regret || o.Decisions != f.Evicting) {
			t.Errorf("seed %d: %+v, all decisions: %+v", seed, o, f)
		}
		skipped += f.Decisions - o.Decisions
		if o.Lower > f.Lower {
			raised++
		}
	}
	if skipped == 0 || raised == 0 {
		t.Errorf("%d decisions were omitted, and %d bounds are higher without moves: too few", skipped, raised)
	}
}

// lostWork returns the lost work of a run, by arithmetic of its own.
func lostWork(t *testing.T, file *scenario.File, r *sim.Result) (cost int64) {
	t.Helper()
	f, err := scenario.Resolve(file)
	if err != nil {
		t.Fatal(err)
	}
	whole := map[string]int64{}
	for _, n := range f.Nodes {
		for name, amount := range n.Capacity {
			whole[name] += max(0, amount-n.Reserved[name])
		}
		for _, d := range n.Devices {
			whole["gpu"] += int64(d.Count) // the mixes have one kind
		}
	}
	amountsOf := map[string]map[string]int64{} // by allocation
	add := func(alloc, job, group string) {
		for _, j := range f.Jobs {
			for _, g := range j.Groups {
				if j.ID != job || g.Name != group {
					continue
				}
				amounts := maps.Clone(g.Resources)
				for _, d := range g.Devices {
					amounts = maps.Clone(amounts)
					amounts["gpu"] += int64(d.Count)
				}
				amountsOf[alloc] = amounts
			}
		}
	}
	lose := func(alloc string, work int64) {
		for name, amount := range amountsOf[alloc] {
			if whole[name] > 0 {
				cost += work / whole[name] * amount
				cost += work % whole[name] * amount / whole[name]
			}
		}
	}
	for _, a := range f.Running {
		add(a.ID, a.Job.ID, a.Group.Name)
	}
	for _, p := range r.Placements {
		add(p.Alloc, p.Job, p.Group)
	}
	for _, e := range r.Evicted {
		lose(e.Alloc, int64(e.LostWork))
	}
	for _, m := range r.Moved {
		lose(m.Alloc, int64(m.LostWork))
	}
	return cost
}
