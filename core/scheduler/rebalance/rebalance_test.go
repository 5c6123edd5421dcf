package rebalance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/rebalance"
	"github.com/cede-scheduler/cede/core/state"
)

// A cluster is three nodes of 10 with a small instance on each, and jobs of 9 that wait.
func cluster(t *testing.T, change func(small *model.Job), waiting ...*model.Job) *state.Snapshot {
	t.Helper()
	store := state.New()
	txn := store.Begin(1)
	small := coretest.Job("small").Priority(50).Count(3).Ask(2, 2, 0).Obj()
	change(small)
	if err := txn.JobWriter().Upsert(small); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := txn.NodeWriter().Upsert(coretest.Node(fmt.Sprint("n", i), 10, 10, 0)); err != nil {
			t.Fatal(err)
		}
		txn.AllocWriter().Upsert(coretest.Running(fmt.Sprint("s", i), small, 0, i, fmt.Sprint("n", i)))
	}
	for _, j := range waiting {
		if err := txn.JobWriter().Upsert(j); err != nil {
			t.Fatal(err)
		}
		e := coretest.Eval(j)
		e.ID, e.Status = "eval-"+j.ID, model.EvalBlocked
		txn.EvalWriter().Upsert(e)
	}
	txn.ConfigWriter().Set(coretest.AllPreempt()) // moves are off
	txn.Commit()
	return store.Snapshot()
}

func large(id string, priority int32) *model.Job {
	return coretest.Job(id).Priority(priority).Ask(9, 9, 0).Obj()
}

// plan returns the steps as text.
func plan(t *testing.T, snap *state.Snapshot, moves int32) string {
	t.Helper()
	steps, omitted, err := rebalance.Plan(rebalance.Input{
		Snapshot: snap, Policies: coretest.Policies(), NewID: model.AllocName, Now: 3600e9, Moves: model.Rate{Number: moves, Window: time.Hour},
	})
	if err != nil || omitted != 0 {
		t.Fatal(omitted, err)
	}
	var list []string
	for _, s := range steps {
		text := s.Plan.Job.ID + ":"
		for _, a := range s.Place {
			text += " on " + a.NodeID
		}
		for _, a := range s.Move {
			text += fmt.Sprintf(", %s to %s", a.MovedFrom, a.NodeID)
		}
		if s.Plan.Moves == nil || s.Plan.Moves.Number != moves || s.Plan.SnapshotIndex != snap.Index() {
			t.Errorf("plan %+v", s.Plan)
		}
		for _, g := range s.Plan.Groups {
			if len(g.Evictions) > 0 {
				t.Errorf("%s evicts %v", text, g.Evictions)
			}
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

func TestPlan_MakesRoomForWaitingJobs(t *testing.T) {
	unchanged := func(*model.Job) {}
	for _, tt := range []struct {
		name    string
		change  func(*model.Job)
		moves   int32
		waiting []*model.Job
		want    string
	}{
		{"nothing waits", unchanged, 3, nil, ""},
		{"one job", unchanged, 3, []*model.Job{large("a", 50)}, "a: on n0, s0 to n1"},
		{"a later step relies on an earlier one", unchanged, 3, []*model.Job{large("b", 50), large("a", 50)}, "a: on n0, s0 to n1; b: on n2, s2 to n1"},
		{"the highest priority is first", unchanged, 1, []*model.Job{large("a", 50), large("b", 60)}, "b: on n0, s0 to n1"},
		{"a priority that could evict moves all the same", unchanged, 3, []*model.Job{large("a", 90)}, "a: on n0, s0 to n1"},
		{"a lower priority", unchanged, 3, []*model.Job{large("a", 49)}, ""},
		{"a protected job", func(j *model.Job) { j.NonPreemptible = true }, 3, []*model.Job{large("a", 50)}, ""},
		{"not larger than what would move", func(j *model.Job) { j.Groups[0].Resources = map[string]int64{"cpu": 9, "memory": 9} }, 3, []*model.Job{large("a", 50)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			snap := cluster(t, tt.change, tt.waiting...)
			got := plan(t, snap, tt.moves)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if again := plan(t, snap, tt.moves); again != got {
				t.Errorf("another plan on the same state: %q", again)
			}
			if snap.Config().Moves != nil {
				t.Error("the state was changed")
			}
		})
	}
}

// An instance on a draining node for which others are moved is replaced, and loses its work too.
func TestPlan_ListsReplacedInstances(t *testing.T) {
	job := large("a", 50)
	job.Groups[0].Checkpoint, job.Type = 1800e9, model.JobBatch
	snap := cluster(t, func(small *model.Job) { small.Type = model.JobBatch }, job)
	txn := snap.Fork(snap.Index() + 1)
	drains := coretest.Node("n9", 10, 10, 0)
	drains.Drain = true
	if err := txn.NodeWriter().Upsert(drains); err != nil {
		t.Fatal(err)
	}
	old := coretest.Running("old", job, 0, 0, "n9")
	old.StartTime = 3600e9 - 600e9
	txn.AllocWriter().Upsert(old)
	steps, _, err := rebalance.Plan(rebalance.Input{
		Snapshot: txn.Snapshot(), Policies: coretest.Policies(), NewID: model.AllocName, Now: 3600e9, Moves: model.Rate{Number: 3, Window: time.Hour},
	})
	if err != nil || len(steps) != 1 {
		t.Fatalf("%+v, %v", steps, err)
	}
	s := steps[0]
	var got []string
	sum := time.Duration(0)
	for _, x := range s.Stop {
		got = append(got, fmt.Sprintf("%s by %s on %s loses %v", x.Alloc.ID, x.Next.ID, x.Next.NodeID, x.LostWork))
		sum += x.LostWork
	}
	slices.Sort(got)
	want := []string{"old by a.g[0]#1 on n0 loses 10m0s", "s0 by small.g[0]#1 on n1 loses 1h0m0s"}
	if !slices.Equal(got, want) || s.LostWork != sum {
		t.Errorf("got %q, in total %v, want %q", got, s.LostWork, want)
	}
}
