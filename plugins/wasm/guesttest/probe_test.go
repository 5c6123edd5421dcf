package guesttest

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/probe"
)

// Golden frames cover a few cases; these cover many, with any combination of optional
// columns.
func TestProbe_DecodesRandomFramesLikeGo(t *testing.T) {
	inLanguages(t, "probe", func(t *testing.T, g *guest) {
		r := rand.New(rand.NewPCG(51, 52))
		for k := range rounds(t, 40) {
			columns := probe.AllColumns
			if k%2 == 0 {
				columns = policy.Columns(r.Uint64()) & probe.AllColumns
			}
			compareVictims(t, g, r, columns)
			compareOptions(t, g, r, columns)
			compareBindingVictims(t, g, r)
		}
	})
}

func compareVictims(t *testing.T, g *guest, r *rand.Rand, columns policy.Columns) {
	t.Helper()
	var e abi.Encoder
	in := policytest.RandomCandidates(r, 5, 8)
	e.Candidates(abi.OpScoreVictims, in, columns)
	var want, got policy.VictimScores
	seen, d := decoded(t, &e)
	shown, err := d.Candidates()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.VictimScores(&want); err != nil {
		t.Fatal(err)
	}
	if err := probe.New().ScoreVictims(shown, &want); err != nil {
		t.Fatal(err)
	}
	got.Tier, got.Score = make([]int64, in.Rows.Len()), make([]float64, in.Rows.Len())
	status, answer := g.answer(abi.OpScoreVictims, seen)
	if status != abi.OK {
		t.Fatalf("status %d", status)
	}
	e.VictimScores(answer, &got)
	if diff := cmp.Diff(want.Tier, got.Tier) + cmp.Diff(want.Score, got.Score); len(got.Tier) > 0 && diff != "" {
		t.Fatalf("columns %x: %s", columns, diff)
	}
}

func compareOptions(t *testing.T, g *guest, r *rand.Rand, columns policy.Columns) {
	t.Helper()
	var e abi.Encoder
	in := policytest.RandomOptions(r, 5, 3)
	e.Options(in, columns)
	var want policy.OptionScores
	seen, d := decoded(t, &e)
	shown, err := d.Options()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.OptionScores(&want); err != nil {
		t.Fatal(err)
	}
	if err := probe.New().ScoreOptions(shown, &want); err != nil {
		t.Fatal(err)
	}
	got := policytest.NewScores(in.Len())
	status, answer := g.answer(abi.OpScoreOptions, seen)
	if status != abi.OK {
		t.Fatalf("status %d", status)
	}
	e.OptionScores(answer, got)
	if diff := cmp.Diff(want.Tiers, got.Tiers) + cmp.Diff(want.Score, got.Score); in.Len() > 0 && diff != "" {
		t.Fatalf("columns %x: %s", columns, diff)
	}
}

func compareBindingVictims(t *testing.T, g *guest, r *rand.Rand) {
	t.Helper()
	var e abi.Encoder
	in := policytest.RandomCandidates(r, 5, 8)
	e.Candidates(abi.OpPreemptBindings, in, policy.BindingColumns)
	want, got := policytest.NewBindingVictims(in.Len()), policytest.NewBindingVictims(in.Len())
	seen, d := decoded(t, &e)
	shown, err := d.Candidates()
	if err != nil {
		t.Fatal(err)
	}
	if err := probe.New().PreemptBindings(shown, want); err != nil {
		t.Fatal(err)
	}
	status, answer := g.answer(abi.OpPreemptBindings, seen)
	if status != abi.OK {
		t.Fatalf("status %d", status)
	}
	if err := e.BindingVictims(answer, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, exactly, cmpopts.EquateEmpty()); diff != "" {
		t.Fatal(diff)
	}
}

// decoded returns the encoded frame, and a decoder that has loaded a copy.
func decoded(t *testing.T, e *abi.Encoder) ([]byte, *abi.Decoder) {
	t.Helper()
	frame := abi.Grow(nil, e.Size())
	e.Write(frame)
	own := abi.Grow(nil, len(frame))
	copy(own, frame)
	var d abi.Decoder
	if _, err := d.Load(own); err != nil {
		t.Fatal(err)
	}
	return frame, &d
}
