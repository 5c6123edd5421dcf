package compare

import (
	"testing"

	"github.com/cede-scheduler/cede/core/sim/bound"
)

func TestBounds_Sentence(t *testing.T) {
	t.Parallel()
	const hour = int64(3600 * 1e9)
	for _, tc := range []struct {
		reports []bound.Report
		want    string
	}{
		{[]bound.Report{{}}, "default: no decision evicts or leaves work unplaced"},
		{[]bound.Report{{Decisions: 3, Optimal: 3}}, "default: no work lost; 100 % of 3 decisions proven optimal"},
		{[]bound.Report{{Decisions: 3, Optimal: 2, Cost: 19 * hour, Lower: 10 * hour}}, "default: within 1.9 × of anything possible; 66 % of 3 decisions proven optimal"},
		{
			[]bound.Report{{Decisions: 60, Optimal: 50, Evicting: 5, EvictingOptimal: 3, Cost: 2 * hour, Lower: hour, Missed: 1}, {Decisions: 40, Optimal: 12, Cost: hour, Lower: hour}},
			"default: within 1.5 × of anything possible; 62 % of 100 decisions proven optimal (60 % of 5 that evict); 1 missed a placement",
		},
		{[]bound.Report{{Decisions: 1, Cost: hour}}, "default: lost work although no decision had to, as far as is proven; 0 % of 1 decisions proven optimal"},
	} {
		var runs []Run
		for i := range tc.reports {
			r := run("default", uint64(i), 1, 1, 1)
			r.Bound = &tc.reports[i]
			runs = append(runs, r)
		}
		d := New(runs)
		if len(d.Bounds) != 1 || d.Bounds[0].String() != tc.want {
			t.Errorf("%+v, want %q", d.Bounds, tc.want)
		}
	}
	if d := New([]Run{run("default", 1, 1, 1, 1)}); d.Bounds != nil {
		t.Errorf("bounds without --bound: %+v", d.Bounds)
	}
}

func TestRegretted_NamesTheBestAnswer(t *testing.T) {
	t.Parallel()
	best := &bound.Answer{Placed: map[string][]int{"n2": {1}}, Victims: []string{"c"}}
	for _, tc := range []struct {
		r            Regretted
		chosen, want string
	}{
		{Regretted{Placed: 1, Victims: []string{"a", "b"}, LostWork: 2, Lower: 1, Best: best}, "1 placed, evicts a, b: 2 cluster-hours", "evicts c for n2: 1 cluster-hours"},
		{Regretted{Placed: 1, Victims: []string{"a"}, LostWork: 2, Lower: 1.5}, "1 placed, evicts a: 2 cluster-hours", "not known; at least 1.5 cluster-hours"},
		{Regretted{Placed: 1, Moved: []string{"a"}, LostWork: 2, Lower: 2, Relaxed: []string{"places of moved instances"}}, "1 placed, moves a: 2 cluster-hours", "ignoring places of moved instances"},
		{Regretted{Unplaced: 3, Missed: true, Relaxed: []string{"spread"}}, "0 placed, 3 not placed", "one more could be placed; ignoring spread"},
	} {
		if got := tc.r.Chosen(); got != tc.chosen {
			t.Errorf("chosen %q, want %q", got, tc.chosen)
		}
		if got := tc.r.Better(); got != tc.want {
			t.Errorf("better %q, want %q", got, tc.want)
		}
	}
}
