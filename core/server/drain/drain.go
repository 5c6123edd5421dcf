// Package drain stops allocations that are still on a drained node when the deadline of
// its drain passes, and records when none is left. Until then, the scheduler moves those
// that it can place elsewhere.
//
// The leader runs it. It decides nothing about the jobs: each stopped allocation is
// evaluated again, like one that an operator stopped.
package drain

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// retryInterval is the wait after a failed write.
const retryInterval = time.Second

// A Drainer advances the drains of nodes. All fields are required. Run must be called by
// one goroutine.
type Drainer struct {
	Writer *logwriter.Writer
	Watch  func(...state.Key) *state.Watch
	Clock  clock.Clock
	Batch  int // allocations that one entry stops at most
	Logger *slog.Logger
}

// drainedFrom is the first cluster version that records the end of drains.
const drainedFrom = 2

// Run watches drained nodes until ctx ends.
func (d *Drainer) Run(ctx context.Context) {
	keys := []state.Key{state.TableNodes.All()}
	for ctx.Err() == nil {
		watch := d.Watch(keys...) // before the state is read, so that no change is missed
		p := d.inspect()
		if !slices.Equal(keys, p.keys) {
			watch.Stop()
			keys = p.keys
			continue
		}
		if err := d.write(ctx, p); err != nil && ctx.Err() == nil {
			d.Logger.WarnContext(ctx, "failed to advance the drain of nodes", "err", err)
			p.next = d.Writer.Now() + int64(retryInterval)
		}
		if len(p.overdue)+len(p.ended) == 0 || p.next != 0 {
			d.wait(ctx, watch, p.next)
		}
		watch.Stop()
	}
}

// wait returns when the nodes change or the time next is reached, which is in Unix
// nanoseconds; 0: no time.
func (d *Drainer) wait(ctx context.Context, watch *state.Watch, next int64) {
	due := make(chan struct{})
	if next != 0 {
		timer := d.Clock.AfterFunc(time.Duration(max(next-d.Writer.Now(), 0)), func() { close(due) })
		defer timer.Stop()
	}
	select {
	case <-ctx.Done():
	case <-watch.C:
	case <-due:
	}
}

// progress is the progress of all drains.
type progress struct {
	keys    []state.Key // state that it depends on
	next    int64       // the next deadline, in Unix nanoseconds; 0: none
	overdue []string    // IDs of allocations whose deadline has passed
	ended   []string    // IDs of nodes that have no allocation left
}

// inspect returns the progress of all drains that have not ended.
func (d *Drainer) inspect() *progress {
	snap, now := d.Writer.Snapshot(), d.Writer.Now()
	p := &progress{keys: []state.Key{state.TableNodes.All()}}
	for n := range snap.Nodes() {
		if !n.Drain || n.DrainEnd != 0 || snap.Meta().Version < drainedFrom {
			continue
		}
		p.keys = append(p.keys, state.TableNodeAllocs.Of(n.ID))
		left := allocsLeft(snap, n)
		switch {
		case len(left) == 0:
			p.ended = append(p.ended, n.ID)
		case n.DrainDeadline == 0:
		case n.DrainDeadline <= now:
			p.overdue = appendRunning(p.overdue, left)
		case p.next == 0 || n.DrainDeadline < p.next:
			p.next = n.DrainDeadline
		}
	}
	return p
}

// allocsLeft returns the allocations that a drain has to move or stop, including those
// that are stopping.
func allocsLeft(snap *state.Snapshot, n *model.Node) []*model.Allocation {
	return slices.DeleteFunc(snap.AppendNodeAllocs(nil, n.ID), func(a *model.Allocation) bool {
		return a.Client.Terminal() || !n.Drains(a.Job)
	})
}

// appendRunning appends the IDs of the allocations that are not stopping.
func appendRunning(ids []string, allocs []*model.Allocation) []string {
	for _, a := range allocs {
		if a.Live() {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// write stops overdue allocations, and records which drains have ended.
func (d *Drainer) write(ctx context.Context, p *progress) error {
	for part := range slices.Chunk(p.overdue, d.Batch) {
		if _, err := d.Writer.Commit(ctx, &replication.StopAllocs{IDs: part, Reason: "the deadline of the node's drain passed"}); err != nil {
			return err
		}
	}
	if len(p.ended) == 0 {
		return nil
	}
	_, err := d.Writer.Commit(ctx, &replication.ChangeNodes{IDs: p.ended, Change: apply.NodeChange{Drained: true}})
	return err
}
