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

// assign reconciles the node with the allocations of the servers: it accepts new
// ones, and stops those that should stop or that the servers no longer list.
func (a *Agent) assign(ctx context.Context, as *Assignment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leaving {
		return
	}
	listed := make(map[string]bool, len(as.Allocations))
	for _, alloc := range as.Allocations {
		listed[alloc.ID] = true
		if !a.damaged.includes(alloc) {
			a.accept(alloc)
		}
	}
	for id, r := range a.runners {
		if !listed[id] {
			r.listed = false
			r.stop("unknown to the servers", "")
		}
	}
	a.endDamaged(ctx, as.Allocations)
	a.startReady(ctx)
}

// accept starts or updates one allocation.
func (a *Agent) accept(alloc *Allocation) {
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
		r.stop(cmp.Or(alloc.Reason, "no longer assigned to this node"), "")
	}
	// Reports may be lost by a crash of the agent or by servers that were
	// restored. A status that differs is reported again.
	if alloc.Status != r.status && !alloc.Status.Terminal() && !a.reports.isPending(alloc.ID) && r.status != StatusPending {
		r.report()
	}
}

// startReady starts every allocation that waits for no victim, the highest priority
// first. The agent's mu must be held.
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

// displaced reports whether all victims of an allocation on this node have ended. A
// victim that has not started may have victims itself, which still hold the capacity:
// they must have ended as well.
func (a *Agent) displaced(alloc *Allocation, seen map[string]bool) bool {
	for _, id := range alloc.Preempted {
		v := a.runners[id]
		if v == nil || seen[id] {
			continue // on another node, or ended long ago
		}
		seen[id] = true
		if v.phase != phaseOver || !a.displaced(v.alloc, seen) {
			return false
		}
	}
	return true
}

// hasRoom reports whether the machine has the resources of an allocation while others
// are still stopping. If no allocation is stopping, the servers have ensured the
// capacity.
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
		if capacity, exists := a.node.Capacity[name]; exists && v > 0 && used[name]+v > capacity-a.node.Reserved[name] {
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

// startTask starts a task, or restores it if an earlier agent started it.
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
		AllocID: alloc.ID, Task: t.Name, Namespace: alloc.Namespace, User: t.User, Config: t.Config, Dir: dir, MemoryMB: t.MemoryMB, Duration: alloc.Duration,
		Env: environment(&a.node, alloc, t, filepath.Dir(dir), dir),
	}
	p, err := d.Restore(spec, state)
	if errors.Is(err, driver.ErrNeverStarted) {
		return d.Start(spec)
	}
	return p, err
}

// restore restores the allocations of an earlier agent.
func (a *Agent) restore(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	records, err := a.disk.records(func(dir string, err error) {
		a.log.WarnContext(ctx, "record of an allocation is damaged; its tasks are restored if the allocation is still assigned to this node, and stopped otherwise", "path", filepath.Join(dir, "state.json"), "err", err)
		a.damaged[filepath.Base(dir)] = true
	})
	if err != nil {
		return err
	}
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
			r.stopping = rec.Stopping
			closeOnce(r.gone)
		case phaseRunning:
			r.launch(ctx)
			if !rec.Stopping.IsZero() {
				// Its kill timeout started under the earlier agent.
				r.stop(cmp.Or(rec.Text, "no longer assigned to this node"), rec.EvictedBy)
				r.stopping = rec.Stopping
			}
		}
	}
	return nil
}

// wakeSweeper makes the sweeper run. The agent's mu must be held.
func (a *Agent) wakeSweeper() {
	select {
	case a.sweepNow <- struct{}{}:
	default:
	}
}

// sweepEvery is the interval of the sweeper if no allocation ends.
const sweepEvery = time.Minute

// sweep removes allocations that ended long ago.
func (a *Agent) sweep(ctx context.Context) {
	timer := time.NewTicker(sweepEvery)
	defer timer.Stop()
	for {
		for _, id := range a.dropDead() {
			if err := a.disk.drop(id); err != nil {
				a.log.WarnContext(ctx, "failed to remove an ended allocation", "alloc_id", id, "err", err)
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

// dropDead forgets ended allocations that the servers no longer list and that are no
// victims of a waiting one: those past KeepDead, and the oldest beyond KeepDeadCount.
func (a *Agent) dropDead() (ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var dead []*runner
	for _, r := range a.runners {
		if r.phase == phaseOver && !r.listed && !a.reports.isPending(r.alloc.ID) && a.displaced(r.alloc, map[string]bool{}) {
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
