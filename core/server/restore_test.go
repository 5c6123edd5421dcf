package server

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A loadWriter registers jobs until its context ends.
type loadWriter struct {
	w     *harness
	id    int
	mu    sync.Mutex
	acked map[model.JobKey]uint64 // job to the index of its registration
}

func (l *loadWriter) run(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		job := coretest.Job(fmt.Sprintf("load-%d-%d", l.id, i)).Ask(1, 1, 0).Obj()
		var r *endpoint.Registered
		err := l.w.call(func(s *Server) (err error) {
			own, err := copyJob(job)
			if err != nil {
				return err
			}
			r, err = s.RegisterJob(ctx, own, endpoint.RegisterOptions{})
			return err
		})
		switch code := apierror.CodeOf(err); {
		case err == nil:
			l.mu.Lock()
			l.acked[job.Key()] = r.Index
			l.mu.Unlock()
		case code == apierror.CodeUnknownOutcome, ctx.Err() != nil:
		default:
			l.w.t.Errorf("register %s: %v", job.ID, err)
		}
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
	}
}

// A restore among writes succeeds and reports it: what was written before is replaced, what
// is acknowledged at a later index remains, and every server has the same state.
func TestRestoreSnapshot_SucceedsUnderLoad(t *testing.T) {
	times := max(2, soak.Count(10, 100))
	runServers(t, 3, nil, func(w *harness) {
		w.addNodes(4)
		ctx, stop := context.WithCancel(w.ctx)
		writers := make([]*loadWriter, 4)
		var group sync.WaitGroup
		for i := range writers {
			writers[i] = &loadWriter{w: w, id: i, acked: map[model.JobKey]uint64{}}
			group.Go(func() { writers[i].run(ctx) })
		}
		var restored uint64
		for i := range times {
			time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
			kept := w.registerJob(coretest.Job(fmt.Sprint("kept-", i)).Ask(1, 1, 0))
			lead := w.leader()
			var saved bytes.Buffer
			if err := lead.node.SaveSnapshot(ctx, &saved); err != nil {
				t.Fatal(err)
			}
			replaced := w.registerJob(coretest.Job(fmt.Sprint("replaced-", i)).Ask(1, 1, 0))
			index, err := lead.server.RestoreSnapshot(ctx, &saved)
			if err != nil || index <= replaced.Index {
				t.Fatalf("restore %d returned index %d after %d: %v", i, index, replaced.Index, err)
			}
			restored = index
			for _, m := range w.members {
				snap, err := m.server.WaitIndex(ctx, index)
				if err != nil || m.node.Err() != nil {
					t.Fatalf("server %s after restore %d: %v, %v", m.id, i, err, m.node.Err())
				}
				key := func(name string) model.JobKey {
					return model.JobKey{Namespace: "default", ID: fmt.Sprint(name, i)}
				}
				if snap.Job(key("kept-")) == nil || snap.Job(key("replaced-")) != nil {
					t.Errorf("server %s after restore %d at %d: job of index %d exists: %t; job of index %d exists: %t", m.id, i, index,
						kept.Index, snap.Job(key("kept-")) != nil, replaced.Index, snap.Job(key("replaced-")) != nil)
				}
			}
		}
		time.Sleep(time.Second) // further writes
		stop()
		group.Wait()
		snap, later := w.snap(), 0
		for _, l := range writers {
			for key, index := range l.acked {
				if index > restored {
					later++
					if snap.Job(key) == nil {
						t.Errorf("job %s was acknowledged at %d, after the restore at %d, and is gone", key, index, restored)
					}
				}
			}
		}
		t.Logf("%d restores, %d writes after the last one", times, later)
	})
}

// A restore without a majority is not reported as failed: its outcome is unknown, or nothing
// was replaced.
func TestRestoreSnapshot_ReportsUnknownOutcome(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.registerJob(coretest.Job("old").Ask(1, 1, 0))
		lead := w.leader()
		var saved bytes.Buffer
		if err := lead.node.SaveSnapshot(w.ctx, &saved); err != nil {
			t.Fatal(err)
		}
		stream := saved.Bytes()
		w.registerJob(coretest.Job("new").Ask(1, 1, 0))
		restore := func(fault func(e *replication.Entry) (bool, error)) error {
			lead.faults.failWith(fault)
			defer lead.faults.failWith(nil)
			_, err := lead.server.RestoreSnapshot(w.ctx, bytes.NewReader(stream))
			return err
		}
		of := func(kind replication.Kind, after bool) func(e *replication.Entry) (bool, error) {
			return func(e *replication.Entry) (bool, error) {
				if replication.KindOf(e.Command) == kind {
					return after, replication.ErrUnknownOutcome
				}
				return false, nil
			}
		}
		if err := restore(of(replication.KindPutChunk, true)); apierror.CodeOf(err) != apierror.CodeUnavailable {
			t.Errorf("after a chunk with an unknown outcome: %v", err)
		}
		isNew := func() bool { return w.snap().Job(model.JobKey{Namespace: "default", ID: "new"}) != nil }
		if !isNew() {
			t.Error("the state was replaced by a restore that was reported as failed")
		}
		if err := restore(of(replication.KindRestoreState, true)); apierror.CodeOf(err) != apierror.CodeUnknownOutcome {
			t.Errorf("after a restore with an unknown outcome: %v", err)
		}
		if isNew() {
			t.Error("the entry was written and had no effect")
		}
		stream = stream[:len(stream)/2]
		if err := restore(nil); apierror.CodeOf(err) != apierror.CodeInvalid {
			t.Errorf("a truncated snapshot: %v", err)
		}
	})
}
