package agent

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/cede-scheduler/cede/core/agent/driver"
)

// damagedRecords holds the folders of allocations with unreadable records. Their tasks may
// still run: if an allocation is still assigned to this node, it is restored from the
// folders of its tasks, and otherwise endDamaged stops it. Its tasks would run forever
// otherwise.
type damagedRecords map[string]bool

// includes reports whether an allocation has a damaged record and must be stopped. It
// returns false, from then on, if the servers list it as running.
func (d damagedRecords) includes(alloc *Allocation) bool {
	name := folderName(alloc.ID)
	if alloc.Run && !alloc.Status.Terminal() {
		delete(d, name)
	}
	return d[name]
}

// endDamaged stops the tasks of allocations with damaged records that the servers do not
// list as running. The agent's mu must be held.
func (a *Agent) endDamaged(ctx context.Context, listed []*Allocation) {
	for _, name := range slices.Sorted(maps.Keys(a.damaged)) {
		alloc := &Allocation{ID: name}
		if at := slices.IndexFunc(listed, func(l *Allocation) bool { return folderName(l.ID) == name }); at >= 0 {
			alloc = listed[at]
		} else if tasks, err := a.disk.tasks(name); err == nil {
			alloc.Tasks = tasks
		} else {
			a.log.WarnContext(ctx, "cannot list the tasks of an allocation with a damaged record", "alloc_id", name, "err", err)
		}
		delete(a.damaged, name)
		r := a.newRunner(alloc)
		r.restoreOnly = true
		a.runners[alloc.ID] = r
		r.launch(ctx)
		r.stop("its record was damaged", "")
	}
}

// tasks returns the tasks that have a folder, by their names only.
func (d *disk) tasks(allocFolder string) (list []Task, err error) {
	entries, err := os.ReadDir(filepath.Join(d.dir, "allocs", allocFolder))
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, Task{Name: e.Name()})
		}
	}
	return list, err
}

// restoreTask returns a task that an earlier agent started, or driver.ErrNeverStarted. The
// driver of the task may be unknown.
func (r *runner) restoreTask(alloc *Allocation, t *Task) (driver.Process, error) {
	spec := &driver.Spec{AllocID: alloc.ID, Task: t.Name, Namespace: alloc.Namespace, Dir: r.a.disk.task(alloc.ID, t.Name)}
	for _, name := range slices.Sorted(maps.Keys(r.a.c.Drivers)) {
		if t.Driver != "" && t.Driver != name {
			continue
		}
		p, err := r.a.c.Drivers[name].Restore(spec, nil)
		if !errors.Is(err, driver.ErrNeverStarted) {
			return p, err
		}
	}
	return nil, driver.ErrNeverStarted
}
