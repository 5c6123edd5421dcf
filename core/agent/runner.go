package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/agent/driver"
)

// phase is the phase of an allocation on this node.
type phase string

const (
	phaseWaiting phase = "waiting" // none of its tasks was started
	phaseRunning phase = "running" // a task may be running
	phaseOver    phase = "over"    // all tasks have ended
)

type timestamp = time.Time

// runner runs one allocation. The agent's mu guards its fields, except those that
// only run uses.
type runner struct {
	a         *Agent
	alloc     *Allocation // as last received; replaced, never modified
	phase     phase
	status    Status
	text      string
	evictedBy string
	started   timestamp
	stopping  timestamp // since when it has been stopping; zero: it is not
	ended     timestamp
	listed    bool // the servers still list it
	// restoreOnly is true if tasks that were never started must not be started.
	restoreOnly bool
	stopText    string

	stopNow  chan struct{} // closed to stop it
	detached chan struct{} // closed to detach from it
	gone     chan struct{} // closed when it has ended

	tasks     map[string]taskRecord
	processes map[string]driver.Process
}

func (a *Agent) newRunner(alloc *Allocation) *runner {
	return &runner{
		a: a, alloc: alloc, phase: phaseWaiting, status: StatusPending, listed: true,
		stopNow: make(chan struct{}), detached: make(chan struct{}), gone: make(chan struct{}),
		tasks: map[string]taskRecord{}, processes: map[string]driver.Process{},
	}
}

// stop stops the allocation. The agent's mu must be held.
func (r *runner) stop(why, evictedBy string) {
	if r.phase == phaseOver || !r.stopping.IsZero() {
		return
	}
	r.stopping, r.stopText, r.evictedBy = time.Now(), why, evictedBy
	if r.phase == phaseWaiting {
		r.finish(StatusComplete, "stopped before it started: "+why)
		return
	}
	close(r.stopNow)
}

// detach ends the runner without its tasks. The agent's mu must be held.
func (r *runner) detach() {
	if r.phase == phaseRunning {
		closeOnce(r.detached)
	}
}

// finish records that all tasks have ended. The agent's mu must be held.
func (r *runner) finish(status Status, text string) {
	r.phase, r.status, r.text, r.ended = phaseOver, status, text, time.Now()
	closeOnce(r.gone)
	r.save()
	r.report()
	r.a.wakeSweeper()
}

// report reports the status to the servers. The agent's mu must be held.
func (r *runner) report() { r.a.reports.add(r.update()) }

func (r *runner) update() Update {
	return Update{ID: r.alloc.ID, Status: r.status, Text: r.text, Started: r.started, EvictedBy: r.evictedBy}
}

// save writes the record. The agent's mu must be held.
func (r *runner) save() {
	rec := &record{
		Allocation: r.alloc, Phase: r.phase, Status: r.status, Text: r.text, EvictedBy: r.evictedBy,
		Started: r.started, Stopping: r.stopping, Ended: r.ended, Tasks: r.tasks,
	}
	if err := r.a.disk.save(rec); err != nil {
		r.a.log.Error("failed to save an allocation's state; it will not survive a restart of the agent", "alloc_id", r.alloc.ID, "err", err)
	}
}

// launch starts the runner's goroutine. The agent's mu must be held.
func (r *runner) launch(ctx context.Context) {
	r.phase = phaseRunning
	r.save() // before any task starts, so that a crash leaves no unknown task
	r.a.work.Go(func() { r.run(ctx) })
}

// run runs the allocation from its start or restoration to its end.
func (r *runner) run(ctx context.Context) {
	alloc := r.alloc
	err := r.start(alloc)
	if err != nil {
		r.a.log.WarnContext(ctx, "failed to start an allocation", "alloc_id", alloc.ID, "job_id", alloc.JobID, "err", err)
		r.endAll(alloc)
		r.over(StatusFailed, err.Error())
		return
	}
	r.running()
	if !r.await(alloc) {
		for _, p := range r.processes {
			p.Detach()
		}
		return
	}
	r.endAll(alloc)
	status, text := r.outcome(alloc)
	r.a.log.InfoContext(ctx, "allocation ended", "alloc_id", alloc.ID, "job_id", alloc.JobID, "status", string(status), "reason", text)
	r.over(status, text)
}

// start starts every task, or restores it if an earlier agent started it.
func (r *runner) start(alloc *Allocation) error {
	for i := range alloc.Tasks {
		t := &alloc.Tasks[i]
		if record := r.taskRecord(t.Name); record.Exit != nil {
			continue // it ended under an earlier agent
		}
		var p driver.Process
		var err error
		if r.restoreOnly {
			p, err = r.restoreTask(alloc, t)
		} else {
			p, err = r.a.startTask(alloc, t, r.taskRecord(t.Name).State)
		}
		if r.restoreOnly && errors.Is(err, driver.ErrNeverStarted) {
			continue
		}
		if err != nil {
			return fmt.Errorf("task %s: %w", t.Name, err)
		}
		r.a.mu.Lock()
		r.processes[t.Name] = p
		r.tasks[t.Name] = taskRecord{State: p.State()}
		r.a.mu.Unlock()
	}
	return nil
}

func (r *runner) taskRecord(name string) taskRecord {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	return r.tasks[name]
}

// running records that every task has started.
func (r *runner) running() {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	if r.started.IsZero() {
		r.started = time.Now()
	}
	r.status, r.text = StatusRunning, ""
	r.save()
	r.report()
}

func (r *runner) over(status Status, text string) {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	r.finish(status, text)
	r.a.startReady(context.Background())
}

// await waits until the allocation must end: it is stopped, its leader or its last
// task has ended, or a task has failed. It returns false if the agent detaches and
// the tasks continue.
func (r *runner) await(alloc *Allocation) (end bool) {
	ended := make(chan string, len(r.processes))
	stop := make(chan struct{})
	defer close(stop)
	for name, p := range r.processes {
		go func() {
			select {
			case <-p.Done():
				ended <- name
			case <-stop:
			}
		}()
	}
	for left := len(r.processes); left > 0; left-- {
		select {
		case <-r.stopNow:
			return true
		case <-r.detached:
			return false
		case name := <-ended:
			exit := r.processes[name].Exit()
			r.taskEnded(name, exit)
			if !exit.OK() || leads(alloc, name) {
				return true
			}
		}
	}
	return true
}

func leads(alloc *Allocation, name string) bool {
	return slices.ContainsFunc(alloc.Tasks, func(t Task) bool { return t.Leader && t.Name == name })
}

// taskEnded records how a task ended.
func (r *runner) taskEnded(name string, exit driver.Exit) {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	record := r.tasks[name]
	record.Exit = &exit
	r.tasks[name] = record
	r.save()
}

// endAll stops every running task: by its signal, and by force after its kill
// timeout. It returns when all have ended.
func (r *runner) endAll(alloc *Allocation) {
	r.a.mu.Lock()
	since := r.stopping
	r.a.mu.Unlock()
	if since.IsZero() {
		since = time.Now()
	}
	var all sync.WaitGroup
	for i := range alloc.Tasks {
		t := &alloc.Tasks[i]
		p := r.processes[t.Name]
		if p == nil {
			continue
		}
		all.Go(func() {
			r.end(t, p, since)
			r.taskEnded(t.Name, p.Exit())
		})
	}
	all.Wait()
}

// end stops one task. since is the time at which it was signalled.
func (r *runner) end(t *Task, p driver.Process, since time.Time) {
	select {
	case <-p.Done():
		return
	default:
	}
	if err := p.Signal(killSignal(t)); err != nil {
		r.a.log.Warn("failed to signal a task; it will be killed at its kill timeout", "alloc_id", r.alloc.ID, "task", t.Name, "err", err)
	}
	timer := time.NewTimer(time.Until(since.Add(killTimeout(t))))
	defer timer.Stop()
	select {
	case <-p.Done():
		return
	case <-timer.C:
	}
	for {
		if err := p.Kill(); err != nil {
			r.a.log.Error("failed to kill a task; retrying", "alloc_id", r.alloc.ID, "task", t.Name, "err", err)
		}
		timer.Reset(time.Second)
		select {
		case <-p.Done():
			return
		case <-timer.C:
		}
	}
}

func killSignal(t *Task) string {
	if t.KillSignal == "" {
		return "SIGTERM"
	}
	return t.KillSignal
}

// defaultKillTimeout is the kill timeout of a task that has none.
const defaultKillTimeout = 5 * time.Second

func killTimeout(t *Task) time.Duration {
	if t.KillTimeout <= 0 {
		return defaultKillTimeout
	}
	return t.KillTimeout
}

// outcome returns the status of the allocation from the exits of its tasks.
func (r *runner) outcome(alloc *Allocation) (Status, string) {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	switch {
	case r.evictedBy != "":
		return StatusFailed, r.stopText
	case !r.stopping.IsZero():
		return StatusComplete, r.stopText
	}
	var failed []string
	for _, t := range alloc.Tasks {
		exit := r.tasks[t.Name].Exit
		if t.Leader && exit != nil {
			if exit.OK() {
				return StatusComplete, ""
			}
			return StatusFailed, "task " + t.Name + " " + describe(*exit)
		}
		if exit != nil && !exit.OK() && (exit.Signal == "" || len(failed) == 0) {
			failed = append(failed, "task "+t.Name+" "+describe(*exit))
		}
	}
	if len(failed) > 0 {
		return StatusFailed, strings.Join(failed, "; ")
	}
	return StatusComplete, ""
}

// describe returns how a task ended, to follow its name.
func describe(e driver.Exit) string {
	switch {
	case e.Err != "":
		return "was lost: " + e.Err
	case e.Signal != "":
		return "was killed by " + e.Signal
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}
