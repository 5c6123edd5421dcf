package guesttest

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
)

var exactly = cmp.AllowUnexported(policy.Selection{}, policy.Recheck{})

func TestDefault_IsIdenticalInEveryLanguage(t *testing.T) {
	inLanguages(t, "default", func(t *testing.T, g *guest) {
		native := rules.New()
		info := native.Info()
		if diff := cmp.Diff(info, g.describe().Info); diff != "" {
			t.Fatal(diff)
		}
		r := rand.New(rand.NewPCG(21, 22))
		var e abi.Encoder
		for k := range rounds(t, 10) {
			c := policytest.Random(r, policytest.Shape{Options: 6, Rows: 16, Devices: true, MustLeave: true, Small: k%2 == 0, Relocation: true})
			if r.IntN(10) == 0 {
				c.Options = c.Options[:0]
			}
			compareDefault(t, native, g, &e, c)
			compareBindings(t, native, g, &e, c)
		}
	})
}

// compareBindings runs the same case with bindings.
func compareBindings(t *testing.T, native policy.BindingPreemptor, g *guest, e *abi.Encoder, c *policytest.Case) {
	t.Helper()
	in := c.Candidates()
	want, got := policytest.NewBindingVictims(in.Len()), policytest.NewBindingVictims(in.Len())
	if err := native.PreemptBindings(in, want); err != nil {
		t.Fatal(err)
	}
	e.Candidates(abi.OpPreemptBindings, in, policy.BindingColumns)
	if err := e.BindingVictims(g.ask(abi.OpPreemptBindings, e), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, exactly, cmpopts.EquateEmpty()); diff != "" {
		t.Fatal(diff)
	}
}

func compareDefault(t *testing.T, native *rules.Default, g *guest, e *abi.Encoder, c *policytest.Case) {
	t.Helper()
	in, columns := c.Candidates(), native.Info().Columns
	var want, got policy.Selection
	want.Reset()
	got.Reset()
	if err := native.SelectVictims(in, &want); err != nil {
		t.Fatal(err)
	}
	e.Candidates(abi.OpSelectVictims, in, columns)
	if err := e.Selection(g.ask(abi.OpSelectVictims, e), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, exactly); diff != "" {
		t.Fatal(diff)
	}
	options := c.OptionsOf(policytest.EvictUntilFit(in, &want, false))
	a, b := policytest.NewScores(options.Len()), policytest.NewScores(options.Len())
	if err := native.ScoreOptions(options, a); err != nil {
		t.Fatal(err)
	}
	e.Options(options, columns)
	e.OptionScores(g.ask(abi.OpScoreOptions, e), b)
	if diff := cmp.Diff(a, b, exactly); diff != "" {
		t.Fatal(diff)
	}
}
