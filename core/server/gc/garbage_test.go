package gc

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
)

func TestUnusedPolicies_KeepNewestAndThoseInUse(t *testing.T) {
	t.Parallel()
	store := state.New()
	for i := range 6 {
		txn := store.Begin(uint64(i + 1))
		txn.PolicyWriter().UpsertVersion(&model.PolicyVersion{ID: fmt.Sprintf("v%d", i), Name: "mine"})
		txn.PolicyWriter().UpsertVersion(&model.PolicyVersion{ID: fmt.Sprintf("o%d", i), Name: "other"})
		txn.Commit()
	}
	txn := store.Begin(7)
	txn.PolicyWriter().UpsertState(&model.PolicyState{Name: "mine", Active: "v0", Previous: "v1", Shadow: "v2"})
	snap := txn.Commit()
	for keep, want := range map[int]string{-1: "", 2: "o0 o1 o2 o3 v3 ", 5: "o0 ", 6: "", 100: ""} {
		got := ""
		for _, v := range unusedPolicies(snap, keep) {
			got += v.ID + " "
		}
		if got != want {
			t.Errorf("keep %d: got %q, want %q", keep, got, want)
		}
	}
}

func TestGarbage_RemovedInBoundedEntries(t *testing.T) {
	t.Parallel()
	g := &candidates{}
	for i := range 25 {
		g.evals = append(g.evals, fmt.Sprint("e", i))
	}
	g.jobs = []model.JobKey{{ID: "a"}, {ID: "b"}}
	sizes := []int{}
	for _, c := range g.commands(10) {
		c := c.(*replication.Collect)
		sizes = append(sizes, len(c.Evals)+len(c.Allocs)+len(c.Jobs)+len(c.Nodes))
	}
	if !slices.Equal(sizes, []int{10, 10, 5, 2}) {
		t.Errorf("entries remove %v objects, want 10, 10, 5 and 2", sizes)
	}
}

func TestTimetable_ReturnsIndexBeforeTime(t *testing.T) {
	t.Parallel()
	table := &Timetable{}
	for i := uint64(1); i <= 10; i++ {
		table.Record(&replication.Applied{Index: i * 10, Entry: &replication.Entry{Time: int64(time.Duration(i) * time.Minute)}})
	}
	for at, want := range map[time.Duration]uint64{0: 0, time.Minute: 10, 90 * time.Second: 10, 5 * time.Minute: 50, time.Hour: 100} {
		if got := table.IndexBefore(int64(at)); got != want {
			t.Errorf("index before %v: got %d, want %d", at, got, want)
		}
	}
}
