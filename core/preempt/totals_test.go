package preempt_test

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Totals are computed without the other shared tables, for both hooks. If only they are
// read, Update evaluates no unchanged node.
func TestFinder_ComputesTotalsAlone(t *testing.T) {
	t.Parallel()
	store := state.New()
	txn := store.Begin(1)
	for _, id := range []string{"n1", "n2"} {
		must(txn.NodeWriter().Upsert(coretest.Node(id, 4, 8, 0)))
	}
	low, other := coretest.Job("low").Priority(10).Ask(4, 1, 0).Obj(), coretest.Job("other").Priority(11).Ask(4, 1, 0).Obj()
	must(txn.JobWriter().Upsert(low))
	must(txn.JobWriter().Upsert(other))
	txn.AllocWriter().Upsert(coretest.Running("a", low, 0, 0, "n1"), coretest.Running("b", other, 0, 0, "n2"))
	ask := coretest.Job("ask").Priority(50).Ask(2, 1, 0).Obj()
	must(txn.JobWriter().Upsert(ask))
	snap := txn.Commit()

	var seen []string
	v := stub(struct {
		info
		scores
		rates
	}{
		info{sdk.Info{Columns: sdk.TotalsColumn}},
		func(in *sdk.Candidates, _ *sdk.VictimScores) error {
			seen = append(seen, fmt.Sprint(in.Len(), in.Shared.Totals[:2], in.Shared.Namespaces.Name))
			return nil
		},
		func(in *sdk.Options, _ *sdk.OptionScores) error {
			seen = append(seen, fmt.Sprint(in.Shared.Totals[:2], in.Shared.Namespaces.Name))
			return nil
		},
	})
	f := startSearch(t, snap, preempt.Request{
		Group: ask.Groups[0], Algorithm: model.Binpack, Policy: v, Default: coretest.Policies().Default(), Nodes: snap.NodeOrder(),
	})
	defer f.Release()
	bestOf(t, snap, f)
	if err := f.Update(snap, []int32{0}, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(seen), "[2 [8 16] [] [8 16] [] 1 [8 16] []]"; got != want {
		t.Errorf("policy was shown %s, want %s", got, want)
	}
}
