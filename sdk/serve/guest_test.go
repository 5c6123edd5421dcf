package serve

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// ask passes an encoded request to a guest and returns the answer.
func ask(t *testing.T, g *guest, op abi.Op, e *abi.Encoder) []byte {
	t.Helper()
	frame := abi.Grow(nil, e.Size())
	e.Write(frame)
	if status := g.call(op, frame); status != abi.OK {
		t.Fatalf("%s: status %d: %s", abi.Names[op], status, e.ErrorText(frame))
	}
	return frame
}

func TestGuest_MatchesNativePolicy(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	native, g := rules.New(), &guest{policy: rules.New()}
	columns := native.Info().Columns
	var e abi.Encoder
	for range policytest.Count(t) / 10 {
		c := policytest.Random(r, policytest.Shape{Options: 6, Rows: 12, Devices: true, MustLeave: true, Small: r.IntN(2) == 0})
		in := c.Candidates()
		var want, got policy.Selection
		want.Reset()
		got.Reset()
		if err := native.SelectVictims(in, &want); err != nil {
			t.Fatal(err)
		}
		e.Candidates(abi.OpSelectVictims, in, columns)
		if err := e.Selection(ask(t, g, abi.OpSelectVictims, &e), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(policy.Selection{}, policy.Recheck{})); diff != "" {
			t.Fatal(diff)
		}
		options := c.OptionsOf(policytest.EvictUntilFit(in, &want, false))
		a, b := policytest.NewScores(options.Len()), policytest.NewScores(options.Len())
		if err := native.ScoreOptions(options, a); err != nil {
			t.Fatal(err)
		}
		e.Options(options, columns)
		e.OptionScores(ask(t, g, abi.OpScoreOptions, &e), b)
		if diff := cmp.Diff(a, b, cmp.AllowUnexported(policy.Recheck{})); diff != "" {
			t.Fatal(diff)
		}
	}
}
