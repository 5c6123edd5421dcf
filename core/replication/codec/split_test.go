package codec

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// Commit groups that touch the same node remain in one entry.
func TestSplit_KeepsDependentGroupsTogether(t *testing.T) {
	t.Parallel()
	store := state.New()
	txn := store.Begin(1)
	j := &model.Job{Namespace: "default", ID: "web", Groups: []*model.Group{{Name: "g"}}}
	if err := txn.JobWriter().Upsert(j); err != nil {
		t.Fatal(err)
	}
	txn.AllocWriter().Upsert(&model.Allocation{ID: "old", Job: j, Group: j.Groups[0], NodeID: "n1"})
	snap := txn.Commit()
	place := func(id, node string) model.CommitGroup {
		return model.CommitGroup{Placements: []*model.Allocation{{ID: id, Job: j, Group: j.Groups[0], NodeID: node}}}
	}
	plan := &model.Plan{Job: j.Key(), Groups: []model.CommitGroup{
		place("a", "x"), place("b", "y"), place("c", "n1"), place("d", "x"),
		{Stops: []model.Stop{{AllocID: "old"}}},
		place("e", "y"),
	}}
	b := &apply.Batch{Plans: []apply.BatchPlan{{Plan: plan, Groups: []int{0, 1, 2, 3, 4, 5}}}}
	if got, want := fmt.Sprint(components(b, snap)), "[[{0 0} {0 3}] [{0 1} {0 5}] [{0 2} {0 4}]]"; got != want {
		t.Errorf("components %s, want %s", got, want)
	}
}

func TestSplit_RefusesEntriesThatCannotBeSplit(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", replication.MaxEntry)
	eval := func(text string) *model.Evaluation { return &model.Evaluation{ID: "e", StatusText: text} }
	half := large[:replication.MaxEntry*2/3]
	for name, c := range map[string]struct {
		entry *replication.Entry
		parts int // 0: too large
	}{
		"an indivisible command": {&replication.Entry{Command: &replication.StopAllocs{Reason: large}}, 0},
		"a divisible command":    {&replication.Entry{Command: &replication.WriteEvals{Evals: []*model.Evaluation{eval(half), eval(half)}}}, 2},
		"with a key":             {&replication.Entry{Key: "k", Command: &replication.WriteEvals{Evals: []*model.Evaluation{eval(half), eval(half)}}}, 0},
		"a large list element":   {&replication.Entry{Command: &replication.WriteEvals{Evals: []*model.Evaluation{eval(large), eval("")}}}, 0},
		"plans without a batch":  {&replication.Entry{Hash: [32]byte{1}, Command: &replication.ApplyPlans{}}, 1},
	} {
		parts, err := Split(c.entry, state.New().Snapshot())
		if len(parts) != c.parts || errors.Is(err, replication.ErrTooLarge) != (c.parts == 0) {
			t.Errorf("%s: %d parts, %v", name, len(parts), err)
		}
	}
}
