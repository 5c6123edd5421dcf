package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/agent/driver"
)

// assign does what servers want: allocations that are new are taken on, those that
// are not wanted are asked to stop, and so are those that servers know no more.
func (a *Agent) assign(ctx context.Context, as *Assignment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leaving {
		return
	}
	listed := make(map[string]bool, len(as.Allocations))
	for _, alloc := range as.Allocations {
		listed[alloc.ID] = true
		a.take(alloc)
	}
	for id, r := range a.runners {
		if !listed[id] {
			r.listed = false
			r.stop("the servers know nothing of it", "")
		}
	}
	a.startReady(ctx)
}

// take takes on one allocation.
func (a *Agent) take(alloc *Allocation) {
	r := a.runners[alloc.ID]
	if r == nil {
		if alloc.Status.Terminal() {
			return
		}
		r = a.newRunner(alloc)
		a.runners[alloc.ID] = r
	}
	r.listed = true
	if r.phase == phaseWaiting {
		r.alloc = alloc
	}
	if !alloc.Run {
		r.stop(cmp.Or(alloc.Reason, "no longer wanted"), "")
	}
	// Reports may be lost, by us in a crash or by servers that were set back; what
	// differs is told again.
	if alloc.Status != r.status && !alloc.Status.Terminal() && !a.reports.waits(alloc.ID) && r.status != StatusPending {
		r.report()
	}
}

// startReady starts everything that waits for nothing, the most urgent first.
// The agent's mu is held.
func (a *Agent) startReady(ctx context.Context) {
	if a.leaving {
		return
	}
	var waiting []*runner
	for _, r := range a.runners {
		if r.phase == phaseWaiting {
			waiting = append(waiting, r)
		}
	}
	slices.SortFunc(waiting, func(x, y *runner) int {
		return cmp.Or(cmp.Compare(y.alloc.Priority, x.alloc.Priority), cmp.Compare(x.alloc.ID, y.alloc.ID))
	})
	for _, r := range waiting {
		if a.displaced(r.alloc, map[string]bool{}) && a.hasRoom(r.alloc) {
			r.launch(ctx)
		}
	}
}

// displaced is whether everything that an allocation displaces on this node is
// gone. A victim that never started may have displaced others itself, which still
// hold the room: they are waited for too.
func (a *Agent) displaced(alloc *Allocation, seen map[string]bool) bool {
	for _, id := range alloc.Preempted {
		v := a.runners[id]
		if v == nil || seen[id] {
			continue // on another node, or long gone
		}
		seen[id] = true
		if v.phase != phaseOver || !a.displaced(v.alloc, seen) {
			return false
		}
	}
	return true
}

// hasRoom is whether the machine has what an allocation asks for while others are
// still stopping. It bounds what runs side by side; where nothing is stopping,
// servers have seen to it that there is room.
func (a *Agent) hasRoom(alloc *Allocation) bool {
	used := map[string]int64{}
	stopping := false
	for _, r := range a.runners {
		if r.phase != phaseRunning {
			continue
		}
		if !r.stopping.IsZero() {
			stopping = true
			if sharesPort(r.alloc, alloc) {
				return false
			}
		}
		for name, v := range r.alloc.Resources {
			used[name] += v
		}
	}
	if !stopping {
		return true
	}
	for name, v := range alloc.Resources {
		if capacity, known := a.node.Capacity[name]; known && v > 0 && used[name]+v > capacity-a.node.Reserved[name] {
			return false
		}
	}
	return true
}

func sharesPort(x, y *Allocation) bool {
	return slices.ContainsFunc(x.Ports, func(p Port) bool {
		return slices.ContainsFunc(y.Ports, func(q Port) bool { return p.Value == q.Value })
	})
}

// startTask starts a task, or restores it where there is something of an earlier
// agent's.
func (a *Agent) startTask(alloc *Allocation, t *Task, state []byte) (driver.Process, error) {
	d := a.c.Drivers[t.Driver]
	if d == nil {
		return nil, fmt.Errorf("this node has no driver %q", t.Driver)
	}
	dir := a.disk.task(alloc.ID, t.Name)
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, err
	}
	spec := &driver.Spec{
		AllocID: alloc.ID, Task: t.Name, User: t.User, Config: t.Config, Dir: dir, MemoryMB: t.MemoryMB, Duration: alloc.Duration,
		Env: environment(&a.node, alloc, t, filepath.Dir(dir), dir),
	}
	p, err := d.Restore(spec, state)
	if errors.Is(err, driver.ErrNeverStarted) {
		return d.Start(spec)
	}
	return p, err
}

// restore takes on what an earlier agent left.
func (a *Agent) restore(ctx context.Context) error {
	records, err := a.disk.records(func(dir string, err error) {
		a.log.WarnContext(ctx, "an allocation's state cannot be read and is passed over", "dir", dir, "err", err)
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, rec := range records {
		r := a.newRunner(rec.Allocation)
		r.phase, r.status, r.text, r.evictedBy = rec.Phase, rec.Status, rec.Text, rec.EvictedBy
		r.started, r.ended = rec.Started, rec.Ended
		if rec.Tasks != nil {
			r.tasks = rec.Tasks
		}
		a.runners[rec.Allocation.ID] = r
		switch r.phase {
		case phaseOver:
			closeOnce(r.gone)
		case phaseRunning:
			r.launch(ctx)
			if !rec.Stopping.IsZero() {
				// Its time to stop has begun under the earlier agent.
				r.stop(cmp.Or(rec.Text, "no longer wanted"), rec.EvictedBy)
				r.stopping = rec.Stopping
			}
		}
	}
	return nil
}

// somethingEnded has the sweeper look. The agent's mu is held.
func (a *Agent) somethingEnded() {
	select {
	case a.sweepNow <- struct{}{}:
	default:
	}
}

// sweepEvery is how often what nobody needs is looked for when nothing ends.
const sweepEvery = time.Minute

// sweep drops what ended long ago.
func (a *Agent) sweep(ctx context.Context) {
	timer := time.NewTicker(sweepEvery)
	defer timer.Stop()
	for {
		for _, id := range a.dropDead() {
			if err := a.disk.drop(id); err != nil {
				a.log.WarnContext(ctx, "what an allocation left was not removed", "alloc_id", id, "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-a.sweepNow:
		}
	}
}

// dropDead forgets allocations that ended, that servers no longer speak of and
// that nobody waits for: those whose time is up, and the oldest where there are
// too many.
func (a *Agent) dropDead() (ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var dead []*runner
	for _, r := range a.runners {
		if r.phase == phaseOver && !r.listed && !a.reports.waits(r.alloc.ID) && a.displaced(r.alloc, map[string]bool{}) {
			dead = append(dead, r)
		}
	}
	slices.SortFunc(dead, func(x, y *runner) int { return x.ended.Compare(y.ended) })
	tooMany := len(dead) - a.c.KeepDeadCount
	for i, r := range dead {
		if i < tooMany || time.Since(r.ended) > a.c.KeepDead {
			delete(a.runners, r.alloc.ID)
			ids = append(ids, r.alloc.ID)
		}
	}
	return ids
}
