package preempt_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// An allocation that has not started counts as young, and the preemptor's namespace has a
// weight even if it uses nothing yet.
func TestFinder_TablesIncludePendingAllocsAndIdleNamespaces(t *testing.T) {
	t.Parallel()
	store := state.New()
	txn := store.Begin(1)
	must(txn.NodeWriter().Upsert(coretest.Node("n1", 10, 0, 0)))
	low := coretest.Job("low").Priority(10).Ask(5, 0, 0).Obj()
	ask := coretest.Job("preemptor").Priority(50).Ask(8, 0, 0).Change(func(j *model.Job) { j.Namespace = "new" }).Obj()
	must(txn.JobWriter().Upsert(low))
	must(txn.JobWriter().Upsert(ask))
	works, starts := coretest.Running("a", low, 0, 0, "n1"), coretest.Running("b", low, 0, 1, "n1")
	works.StartTime = 400
	starts.Client, starts.Started, starts.StartTime = model.ClientPending, false, 0
	txn.AllocWriter().Upsert(works, starts)
	txn.NamespaceWriter().Upsert(&model.Namespace{Name: "new", Weight: 3})
	snap := txn.Commit()

	var start []int64
	var shared string
	v := stub(struct {
		info
		scores
	}{info{sdk.Info{Columns: sdk.StartColumn | sdk.SharedTables}}, func(in *sdk.Candidates, _ *sdk.VictimScores) error {
		start = append(start, in.Rows.Start...)
		for i, id := range in.Shared.Namespaces.Name {
			shared += in.Strings[id]
			if in.Shared.Namespaces.Weight[i] == 3 {
				shared += " weight 3"
			}
			shared += ";"
		}
		return nil
	}})
	f := startSearch(t, snap, preempt.Request{
		Group: ask.Groups[0], Now: 1000, Policy: v, Default: coretest.Policies().Default(),
		Nodes: snap.NodeOrder(),
	})
	defer f.Release()
	if len(start) != 2 || start[0] != 400 || start[1] != 1000 {
		t.Errorf("starts are %v, want 400 and now", start)
	}
	if want := "default;new weight 3;"; shared != want {
		t.Errorf("namespaces are %q, want %q", shared, want)
	}
}
