package state_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	. "github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func closed(w *Watch) bool {
	select {
	case <-w.C:
		return true
	default:
		return false
	}
}

// seeded returns a store with two nodes, two jobs, and an allocation of the first
// job on the first node.
func seeded(t *testing.T) *Store {
	t.Helper()
	s := New()
	txn := s.Begin(1)
	for i := range 2 {
		if err := txn.NodeWriter().Upsert(&model.Node{ID: fmt.Sprintf("n%d", i), Datacenter: "dc1", Capacity: model.Resources{"cpu": 100}}); err != nil {
			t.Fatal(err)
		}
		if err := txn.JobWriter().Upsert(jobOf(fmt.Sprintf("j%d", i), 20)); err != nil {
			t.Fatal(err)
		}
	}
	txn.AllocWriter().Upsert(allocOf(txn, "a0", "j0", "n0"))
	txn.EvalWriter().Upsert(&model.Evaluation{ID: "e0", Namespace: "default", JobID: "j0"})
	txn.Commit()
	return s
}

func keyOf(id string) model.JobKey { return model.JobKey{Namespace: "default", ID: id} }

func jobOf(id string, priority int32) *model.Job {
	return &model.Job{
		Namespace: "default", ID: id, Priority: priority,
		Groups: []*model.Group{{Name: "g", Count: 1, Resources: model.Resources{"cpu": 10}}},
	}
}

func allocOf(txn *Txn, id, job, node string) *model.Allocation {
	j := txn.Job(keyOf(job))
	return &model.Allocation{ID: id, Job: j, Group: j.Groups[0], NodeID: node}
}

func TestWatch_ClosesForItsKeys(t *testing.T) {
	t.Parallel()
	writeAlloc := func(txn *Txn) {
		a := *txn.Alloc("a0")
		a.Client = model.ClientRunning
		txn.AllocWriter().Upsert(&a)
	}
	for name, tc := range map[string]struct {
		key   Key
		write func(*Txn)
		wakes bool
	}{
		"alloc":                {TableAllocs.Of("a0"), writeAlloc, true},
		"all allocs":           {TableAllocs.All(), writeAlloc, true},
		"allocs of its job":    {TableJobAllocs.OfJob(keyOf("j0")), writeAlloc, true},
		"allocs of its node":   {TableNodeAllocs.Of("n0"), writeAlloc, true},
		"another alloc":        {TableAllocs.Of("a1"), writeAlloc, false},
		"allocs of other job":  {TableJobAllocs.OfJob(keyOf("j1")), writeAlloc, false},
		"allocs of other node": {TableNodeAllocs.Of("n1"), writeAlloc, false},
		"jobs":                 {TableJobs.All(), writeAlloc, false},
		"deleted alloc":        {TableAllocs.Of("a0"), func(t *Txn) { t.AllocWriter().Delete("a0") }, true},
		"alloc that comes":     {TableAllocs.Of("a9"), func(t *Txn) { t.AllocWriter().Upsert(allocOf(t, "a9", "j1", "n1")) }, true},
		"job":                  {TableJobs.OfJob(keyOf("j1")), func(t *Txn) { t.JobWriter().MarkDirty(keyOf("j1")) }, true},
		"deleted job":          {TableJobs.OfJob(keyOf("j1")), func(t *Txn) { t.JobWriter().Delete(keyOf("j1")) }, true},
		"node status": {TableNodes.Of("n1"), func(t *Txn) {
			apply.NodeStatus(t, 1, []string{"n1"}, apply.NodeChange{Drain: new(true)})
		}, true},
		"deleted node":  {TableNodes.Of("n1"), func(t *Txn) { t.NodeWriter().Delete("n1") }, true},
		"eval":          {TableEvals.Of("e0"), func(t *Txn) { t.EvalWriter().Delete("e0") }, true},
		"evals of job":  {TableJobEvals.OfJob(keyOf("j0")), func(t *Txn) { t.EvalWriter().Delete("e0") }, true},
		"claims":        {TableClaims.All(), func(t *Txn) { t.ClaimWriter().Upsert(&model.Claim{ID: "c", NodeID: "n0"}) }, true},
		"configuration": {TableConfig.All(), func(t *Txn) { t.ConfigWriter().Set(&model.SchedulerConfig{}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := seeded(t)
			w := s.Watch(tc.key)
			defer w.Stop()
			txn := s.Begin(2)
			tc.write(txn)
			if closed(w) {
				t.Fatal("woke before the commit")
			}
			txn.Commit()
			if closed(w) != tc.wakes {
				t.Errorf("woke %t, want %t", !tc.wakes, tc.wakes)
			}
		})
	}
}

// A transaction that started before the first watch records no keys, and must close
// the watch nevertheless.
func TestWatch_RegisteredDuringTheTransactionWakes(t *testing.T) {
	t.Parallel()
	s := seeded(t)
	txn := s.Begin(2)
	txn.AllocWriter().Delete("a0")
	w := s.Watch(TableAllocs.Of("a0"))
	other := s.Watch(TableJobs.OfJob(keyOf("j0")))
	txn.Commit()
	if !closed(w) {
		t.Error("wakeup lost")
	}
	if closed(other) {
		t.Error("woke for a table that was not written")
	}
	other.Stop()
}

func TestWatch_AbortAndForkCloseNone(t *testing.T) {
	t.Parallel()
	s := seeded(t)
	w := s.Watch(TableAllocs.All(), TableAllocs.Of("a0"))
	txn := s.Begin(2)
	txn.AllocWriter().Delete("a0")
	txn.Abort()
	s.Snapshot().Fork(2).AllocWriter().Delete("a0")
	if closed(w) {
		t.Error("closed by an aborted write")
	}
	w.Stop()
	w.Stop()
	if n := s.Waiting(); n != 0 {
		t.Errorf("a stopped watch is still counted: %d", n)
	}
}

func TestRestore_ReplacesAllAndClosesEveryWatch(t *testing.T) {
	t.Parallel()
	s := seeded(t)
	w := s.Watch(TableNodes.Of("n7"))
	txn := s.BeginRestore(1)
	if err := txn.GrowDimensions("zinc", "gold"); err != nil {
		t.Fatal(err)
	}
	j := jobOf("j0", 30)
	j.CreateIndex, j.ModifyIndex = 3, 4
	if err := txn.JobWriter().Upsert(j); err != nil {
		t.Fatal(err)
	}
	a := allocOf(txn, "a0", "j0", "n0")
	a.CreateIndex, a.ModifyIndex = 5, 6
	txn.AllocWriter().Upsert(a)
	txn.JobWriter().MarkDirtyAt(j.Key(), 7)
	sn := txn.Commit()
	if !closed(w) {
		t.Error("the watch sleeps on an abandoned state")
	}
	if sn.NodeCount() != 0 || sn.Job(keyOf("j1")) != nil {
		t.Error("something of the old state is left")
	}
	if j.CreateIndex != 3 || j.ModifyIndex != 4 || a.CreateIndex != 5 || a.ModifyIndex != 6 || sn.DirtyIndex(j.Key()) != 7 {
		t.Error("a restore changed indexes")
	}
	if got := fmt.Sprint(sn.Dims().Names()); got != "[cpu memory disk network zinc gold]" {
		t.Errorf("dimensions %s", got)
	}
	if err := sn.Check(); err != nil {
		t.Error(err)
	}
}

func TestWaitIndex_ReturnsWhenReachedOrCancelled(t *testing.T) {
	t.Parallel()
	s := seeded(t)
	if sn, err := s.WaitIndex(t.Context(), 1); err != nil || sn.Index() != 1 {
		t.Fatal(sn, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.WaitIndex(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if s.Waiting() != 0 {
		t.Error("a cancelled wait is still counted")
	}
}

// TestHub_LosesNoWakeup has waiters that go on only when they are woken, and a
// writer that goes on only when all of them have: one lost wakeup stops it.
// The last one to answer lets the next commit in while others register.
func TestHub_LosesNoWakeup(t *testing.T) {
	t.Parallel()
	const waiters = 8
	rounds := uint64(soak.Count(1000, 100_000))
	s := seeded(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	seen := make(chan struct{}, waiters)
	var wg sync.WaitGroup
	for i := range waiters {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 2))
			key := keyOf(fmt.Sprintf("j%d", i%2))
			for at := uint64(2); at <= rounds; at++ {
				if err := sleepUntil(ctx, s, key, at, r.IntN(4)); err != nil {
					t.Errorf("waiter %d slept through %d: %v", i, at, err)
					return
				}
				seen <- struct{}{}
			}
		})
	}
	for at := uint64(2); at <= rounds && ctx.Err() == nil; at++ {
		txn := s.Begin(at)
		txn.JobWriter().MarkDirty(keyOf("j0"))
		txn.JobWriter().MarkDirty(keyOf("j1"))
		txn.Commit()
		for range waiters {
			select {
			case <-seen:
			case <-ctx.Done():
			}
		}
	}
	wg.Wait()
	if n := s.Waiting(); n != 0 {
		t.Errorf("%d waiters are left", n)
	}
}

// sleepUntil waits in one of several ways for the job to be dirty at an index.
func sleepUntil(ctx context.Context, s *Store, key model.JobKey, at uint64, way int) error {
	if way == 0 {
		_, err := s.WaitIndex(ctx, at)
		return err
	}
	keys := []Key{TableJobs.All()}
	if way > 1 {
		keys = []Key{TableEvals.Of("none"), TableJobs.OfJob(key)}
	}
	for {
		w := s.Watch(keys...)
		if s.Snapshot().DirtyIndex(key) >= at {
			w.Stop()
			return nil
		}
		select {
		case <-w.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
