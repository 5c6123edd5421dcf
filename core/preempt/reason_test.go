package preempt_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
)

// The explanation lists the best option of each node in order, and a verdict for each
// candidate.
func TestFinder_ExplainsChoice(t *testing.T) {
	t.Parallel()
	explained := 0
	check(t, func(t *rapid.T) {
		w := drawFixture(t, features{ports: true})
		f := &preempt.Finder{}
		r := w.request(coretest.Policies(), coretest.Policies().Default())
		r.Explain = true
		if err := f.Start(w.snap, r); err != nil {
			t.Fatal(err)
		}
		defer f.Release()
		var nodes []string // of all options, the best first
		_ = f.EachRanked(func(c preempt.Choice) bool {
			nodes = append(nodes, w.snap.NodeAt(c.Pos).ID)
			return true
		})
		best, ok, err := f.Best()
		if err != nil || !ok {
			return
		}
		second := ""
		for _, id := range nodes {
			if second == "" && id != w.snap.NodeAt(best.Pos).ID {
				second = id
			}
		}
		why := best.Why
		if why.Options != len(nodes) || (second == "") != (len(why.Ranked) == 1) || second != "" && why.Ranked[1].NodeID != second {
			t.Fatalf("%+v, want the second node %q of %v", why, second, nodes)
		}
		if chosen := why.Ranked[0]; chosen.NodeID != w.snap.NodeAt(best.Pos).ID || chosen.Score != best.Score || chosen.Victims != len(best.Victims) {
			t.Fatalf("%+v is not the choice %+v", chosen, best)
		}
		for i := 1; i < len(why.Ranked); i++ {
			if ranksBefore(&why.Ranked[i], &why.Ranked[i-1]) {
				t.Fatalf("%+v are not in order", why.Ranked)
			}
		}
		checkVerdicts(t, w, best)
		if second != "" {
			explained++
		}
	})
	if explained == 0 {
		t.Error("no case has two nodes")
	}
}

func ranksBefore(a, b *model.RankedOption) bool {
	return slices.Compare(a.Tiers[:], b.Tiers[:]) < 0 || a.Tiers == b.Tiers && a.Score > b.Score
}

// checkVerdicts checks that the candidates with the verdict Evicted are victims, in picking
// order, that victims have no other verdict, and that all of them are listed if the list is
// long enough.
func checkVerdicts(t *rapid.T, w *fixture, best preempt.Choice) {
	position := map[string]int{}
	for i, v := range best.Victims {
		position[v.ID] = i
	}
	last, evicted := -1, 0
	for _, c := range best.Why.Candidates {
		at, isVictim := position[c.AllocID]
		if isVictim != (c.Verdict == model.Evicted) {
			t.Fatalf("%+v, victims %v", c, position)
		}
		if w.snap.Alloc(c.AllocID) == nil {
			t.Fatalf("candidate %s is not in the state", c.AllocID)
		}
		if isVictim {
			if evicted++; at <= last {
				t.Fatalf("%+v are not in picking order %v", best.Why.Candidates, position)
			}
			last = at
		}
	}
	if len(best.Victims) <= model.MaxCandidates && evicted == 0 {
		t.Fatalf("no victim of %v among %+v", position, best.Why.Candidates)
	}
}
