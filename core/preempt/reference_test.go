package preempt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// On every node and for every way of serving its devices, version 1 of the default policy
// selects the same victims as the reference implementation, and the same option is best.
// Version 2 differs in ties alone.
func TestFinder_DefaultMatchesReference(t *testing.T) {
	skipUnderRaceDetector(t)
	t.Parallel()
	for _, s := range []features{{}, {ports: true}, {devices: true}, {devices: true, ports: true}} {
		t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) {
			policies, err := policy.NewSet(coretest.Version(func() sdk.Policy { return rules.NewVersion1() }))
			if err != nil {
				t.Fatal(err)
			}
			options, ways := 0, 0
			check(t, func(t *rapid.T) {
				w := drawFixture(t, s)
				f := &preempt.Finder{}
				if err := f.Start(w.snap, w.request(policies, policies.Default())); err != nil {
					t.Fatal(err)
				}
				defer f.Release()
				var all []*refOption
				each := []string{}
				for _, node := range w.nodes {
					list := w.options(node)
					if len(list) > 0 {
						each = append(each, best(list).String())
					}
					if len(list) > 1 {
						ways++
					}
					all = append(all, list...)
				}
				options += len(all)
				want := best(all)
				got := bestOf(t, w.snap, f)
				if got.String() != want.String() {
					t.Fatalf("best is %v, want %v", got, want)
				}
				if got := eachNodeOf(t, w.snap, f); !slices.Equal(got, each) {
					t.Fatalf("options by node\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(each, "\n"))
				}
				w.checkInvariants(t, f)
				w.checkOutcomes(t, f)
			})
			t.Logf("%d options, %d nodes with more than one", options, ways)
			if options == 0 || s.devices && ways == 0 {
				t.Error("the property was not exercised")
			}
		})
	}
}

// checkInvariants checks the rules that hold for any answer of a policy.
func (w *fixture) checkInvariants(t *rapid.T, f *preempt.Finder) {
	err := f.EachNode(func(c preempt.Choice) {
		n := w.snap.NodeAt(c.Pos)
		here := refAllocs(w.snap, n.ID)
		devices := []string{}
		for _, at := range c.Device {
			devices = append(devices, n.Devices[at].ID)
		}
		gone := map[string]bool{}
		for _, v := range c.Victims {
			switch gap := int64(w.group.Job.Priority) - int64(v.Job.Priority); {
			case v.NodeID != n.ID || gone[v.ID]:
				t.Fatalf("victim %s is on another node, or listed twice", v.ID)
			case gap <= 0 || gap < int64(w.base) || v.Job.ID == "preemptor" || v.Job.NonPreemptible:
				t.Fatalf("victim %s is not a candidate", v.ID)
			}
			gone[v.ID] = true
		}
		if !refFits(n, here, gone, w.group, devices, false) {
			t.Fatalf("the group does not fit without %v", sortedNames(gone))
		}
		for _, v := range c.Victims {
			gone[v.ID] = false
			if refFits(n, here, gone, w.group, devices, false) {
				t.Fatalf("victim %s is redundant", v.ID)
			}
			gone[v.ID] = true
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkOutcomes checks the outcome of every node.
func (w *fixture) checkOutcomes(t *rapid.T, f *preempt.Finder) {
	why, nodes := f.Outcomes()
	for k, pos := range nodes {
		id := w.snap.NodeAt(pos).ID
		want := preempt.Insufficient
		switch {
		case len(w.options(id)) > 0:
			want = preempt.Possible
		case len(w.candidates(id)) == 0:
			want = preempt.NoCandidates
		}
		if why[k] != want {
			t.Fatalf("node %s: outcome %q, want %q", id, why[k], want)
		}
	}
}

// Binpack and spread rank by the published formula.
func TestScore_MatchesPublishedFormula(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		algorithm                            model.Algorithm
		availCPU, availMem, freeCPU, freeMem int64
		want                                 float64
	}{
		{model.Binpack, 1000, 1000, 0, 0, 1},
		{model.Binpack, 1000, 1000, 1000, 1000, 0},
		{model.Binpack, 1000, 1000, -500, -500, 1},
		{model.Binpack, 1000, 1000, 1000, 0, 9.0 / 18},
		{model.Binpack, 0, 0, 0, 0, 1},
		{model.SpreadRank, 1000, 1000, 0, 0, 0},
		{model.SpreadRank, 1000, 1000, 1000, 1000, 1},
		{model.SpreadRank, 1000, 1000, 1000, 0, 9.0 / 18},
		{model.SpreadRank, 1000, 1000, -500, -500, 0},
	} {
		if got := fit.Score(c.algorithm, c.availCPU, c.availMem, c.freeCPU, c.freeMem); got != c.want {
			t.Errorf("Score for %+v returns %v", c, got)
		}
	}
}

// The ceiling is strictly lower than the priority, and lower by the configured gap.
func TestCeiling_IsStrictlyLower(t *testing.T) {
	t.Parallel()
	v := coretest.Policies().Default()
	for _, c := range []struct {
		priority int32
		delta    *int32
		want     int64
	}{
		{50, nil, 40},
		{50, new(int32(1)), 49},
		{50, new(int32(0)), 49},
		{50, new(int32(-9)), 49},
		{-2147483648, new(int32(2147483647)), -4294967295},
		{2147483647, new(int32(-2147483648)), 2147483646},
	} {
		if got := preempt.Ceiling(c.priority, v, c.delta); got != c.want {
			t.Errorf("Ceiling for %+v returns %d", c, got)
		}
	}
}
