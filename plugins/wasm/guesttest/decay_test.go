package guesttest

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/decay"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// decayConfigs differ in every setting.
var decayConfigs = []string{
	`{}`,
	`{"halfLife":"30m","grace":"200h","graceGap":60,"weight":0,"fewest":false,"fit":"before"}`,
	`{"halfLife":1,"weight":2.5,"spare":["team-0","größe-1","日本-2"],"factors":{"team-1":0,"🦀3":2.25,"größe-0":1}}`,
	`{"halfLife":"8760h","grace":"87600h","graceGap":100,"spare":[],"factors":{"":0.5,"🦀1":3}}`,
}

func decayConfig(t *testing.T, config string) *policy.Config {
	t.Helper()
	c, err := settings.Read(decay.New().Settings(), []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDecay_IsIdenticalInEveryLanguage(t *testing.T) {
	for _, config := range decayConfigs {
		inLanguages(t, "decay", func(t *testing.T, g *guest) {
			native := decay.New()
			checkDescription(t, native, g.describe())
			c := decayConfig(t, config)
			if err := native.Configure(c); err != nil {
				t.Fatal(err)
			}
			g.configure(c)
			checkDescription(t, native, g.describe())
			r := rand.New(rand.NewPCG(31, 32))
			for range rounds(t, 40) {
				compareDecay(t, native, g, r)
			}
		})
	}
}

func checkDescription(t *testing.T, native *decay.Policy, d abi.Description) {
	t.Helper()
	if diff := cmp.Diff(native.Info(), d.Info); diff != "" {
		t.Fatal(diff)
	}
	list, err := settings.Decode(d.Settings)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(native.Settings(), list); diff != "" || !d.Configurable {
		t.Fatalf("takes %v: %s", d.Configurable, diff)
	}
	if d.Version != "1" || d.Hooks != abi.HookPriorityDelta|abi.HookScoreVictims|abi.HookScoreOptions {
		t.Fatalf("version %s, hooks %b", d.Version, d.Hooks)
	}
}

func compareDecay(t *testing.T, native *decay.Policy, g *guest, r *rand.Rand) {
	t.Helper()
	var e abi.Encoder
	in, columns := policytest.RandomCandidates(r, 6, 12), native.Info().Columns
	n := in.Rows.Len()

	var a, b policy.VictimScores
	a.Tier, a.Score, b.Tier, b.Score = make([]int64, n), make([]float64, n), make([]int64, n), make([]float64, n)
	gaps, same := make([]int32, n), make([]int32, n)
	for i := range gaps {
		gaps[i] = in.Preemptor.Delta
	}
	if err := native.PriorityDelta(in, gaps, &a.Recheck); err != nil {
		t.Fatal(err)
	}
	e.Candidates(abi.OpPriorityDelta, in, columns)
	e.Gap(g.ask(abi.OpPriorityDelta, &e), same, &b.Recheck)
	if diff := cmp.Diff(gaps, same) + cmp.Diff(a.Recheck, b.Recheck, exactly); diff != "" {
		t.Fatal(diff)
	}

	a.Recheck, b.Recheck = policy.Recheck{}, policy.Recheck{}
	if err := native.ScoreVictims(in, &a); err != nil {
		t.Fatal(err)
	}
	e.Candidates(abi.OpScoreVictims, in, columns)
	e.VictimScores(g.ask(abi.OpScoreVictims, &e), &b)
	if diff := cmp.Diff(a, b, exactly); diff != "" {
		t.Fatal(diff)
	}

	options := policytest.RandomOptions(r, 6, 3)
	c, d := policytest.NewScores(options.Len()), policytest.NewScores(options.Len())
	if err := native.ScoreOptions(options, c); err != nil {
		t.Fatal(err)
	}
	e.Options(options, columns)
	e.OptionScores(g.ask(abi.OpScoreOptions, &e), d)
	if diff := cmp.Diff(c, d, exactly); diff != "" {
		t.Fatal(diff)
	}
}

func TestDecay_RejectsConfigurationsIdentically(t *testing.T) {
	inLanguages(t, "decay", func(t *testing.T, g *guest) {
		c := decayConfig(t, `{"spare":["größe"],"factors":{"größe":1}}`)
		want := decay.New().Configure(c)
		var e abi.Encoder
		e.Configure(c)
		e.Write(g.buffer(e.Size()))
		status, frame := g.call(abi.OpConfigure, e.Size())
		if status != abi.PolicyError || e.ErrorText(frame) != want.Error() || !strings.Contains(want.Error(), "größe") {
			t.Errorf("status %d: %s, want %s", status, e.ErrorText(frame), want)
		}
	})
}
