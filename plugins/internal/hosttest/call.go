package hosttest

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// SameBits compares floating-point numbers by their bits.
var SameBits = cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })

// Answers are the results of a policy's hooks for one case. Errors are stored as text.
type Answers struct {
	Gap      []int32
	Victims  Scores
	Picks    [][]int32
	Options  Scores
	Removals [][]int32 // rows chosen by PreemptBindings
	Tiers    [4][]int64
	Recheck  [5]int64
	Err      [5]string
}

// Scores holds tiers and scores of victims or options.
type Scores struct {
	Tiers [4][]int64
	Score []float64
}

// A Result is the answers and the fuel that each hook used.
type Result struct {
	Answers
	Fuel [5]uint64
}

// CallHooks calls every hook of a policy with one case.
func CallHooks(t testing.TB, in policy.Instance, q Case) (a Result) {
	t.Helper()
	record := func(hook int, err error) {
		if err != nil {
			a.Err[hook] = err.Error()
			if strings.Contains(a.Err[hook], "panic") {
				t.Fatal(err)
			}
		}
		a.Fuel[hook] = in.Fuel()
	}
	c, n := q.Candidates, q.Candidates.Rows.Len()
	var recheck sdk.Recheck
	if in.Hooks().Has(policy.HookDelta) {
		a.Gap = make([]int32, n)
		for i := range a.Gap {
			a.Gap[i] = c.Preemptor.Delta
		}
		record(0, in.PriorityDelta(c, a.Gap, &recheck))
		a.Recheck[0] = recheck.Time()
	}
	if in.Hooks().Has(policy.HookScoreVictims) {
		out := sdk.VictimScores{Tier: make([]int64, n), Score: make([]float64, n)}
		record(1, in.ScoreVictims(c, &out))
		a.Victims = Scores{[4][]int64{out.Tier}, out.Score}
		a.Recheck[1] = out.Recheck.Time()
	}
	if in.Hooks().Has(policy.HookSelectVictims) {
		var out sdk.Selection
		out.Reset()
		record(2, in.SelectVictims(c, &out))
		for i := range out.Len() {
			a.Picks = append(a.Picks, append([]int32{}, out.Rows(i)...))
		}
		a.Recheck[2] = out.Recheck.Time()
	}
	if in.Hooks().Has(policy.HookScoreOptions) {
		out := policytest.NewScores(q.Options.Len())
		record(3, in.ScoreOptions(q.Options, out))
		a.Options = Scores{out.Tiers, out.Score}
		a.Recheck[3] = out.Recheck.Time()
	}
	if in.Hooks().Has(policy.HookPreemptBindings) {
		out := policytest.NewBindingVictims(c.Len())
		record(4, in.PreemptBindings(c, out))
		for i := range out.Len() {
			a.Removals = append(a.Removals, append([]int32{}, out.Rows(i)...))
		}
		a.Tiers, a.Recheck[4] = out.Tiers, out.Recheck.Time()
	}
	if !in.Alive() {
		t.Fatalf("instance is dead: %v", a.Err)
	}
	return a
}
