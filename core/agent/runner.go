package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/agent/driver"
)

// phase is how far an allocation is on this node.
type phase string

const (
	phaseWaiting phase = "waiting" // nothing of it was started
	phaseRunning phase = "running" // something of it may be there
	phaseOver    phase = "over"    // nothing of it is there, and never will be
)

type timestamp = time.Time

// runner runs one allocation. Its fields are guarded by the agent's mu, but for
// those that only run touches.
type runner struct {
	a         *Agent
	alloc     *Allocation // as servers last said it; replaced, never changed
	phase     phase
	status    Status
	text      string
	evictedBy string
	started   timestamp
	stopping  timestamp // since when it is asked to stop; zero: it is not
	ended     timestamp
	listed    bool // servers still speak of it
	stopText  string

	stopNow chan struct{} // closed to stop it
	leave   chan struct{} // closed to let go of it
	gone    chan struct{} // closed when it is over

	tasks     map[string]taskRecord
	processes map[string]driver.Process
}

func (a *Agent) newRunner(alloc *Allocation) *runner {
	return &runner{
		a: a, alloc: alloc, phase: phaseWaiting, status: StatusPending, listed: true,
		stopNow: make(chan struct{}), leave: make(chan struct{}), gone: make(chan struct{}),
		tasks: map[string]taskRecord{}, processes: map[string]driver.Process{},
	}
}

// stop asks the allocation to end. The agent's mu is held.
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

// detach ends the runner without its work. The agent's mu is held.
func (r *runner) detach() {
	if r.phase == phaseRunning {
		closeOnce(r.leave)
	}
}

// finish notes that nothing of the allocation is left. The agent's mu is held.
func (r *runner) finish(status Status, text string) {
	r.phase, r.status, r.text, r.ended = phaseOver, status, text, time.Now()
	closeOnce(r.gone)
	r.save()
	r.report()
	r.a.somethingEnded()
}

// report tells servers of the status. The agent's mu is held.
func (r *runner) report() { r.a.reports.add(r.update()) }

func (r *runner) update() Update {
	return Update{ID: r.alloc.ID, Status: r.status, Text: r.text, Started: r.started, EvictedBy: r.evictedBy}
}

// save writes the record. The agent's mu is held.
func (r *runner) save() {
	rec := &record{
		Allocation: r.alloc, Phase: r.phase, Status: r.status, Text: r.text, EvictedBy: r.evictedBy,
		Started: r.started, Stopping: r.stopping, Ended: r.ended, Tasks: r.tasks,
	}
	if err := r.a.disk.save(rec); err != nil {
		r.a.log.Error("the state of an allocation was not written; it will not outlive a restart", "alloc_id", r.alloc.ID, "err", err)
	}
}

// launch starts the runner's goroutine. The agent's mu is held.
func (r *runner) launch(ctx context.Context) {
	r.phase = phaseRunning
	r.save() // before anything is started, so that a crash leaves nothing unknown
	r.a.work.Go(func() { r.run(ctx) })
}

// run takes the allocation from its start, or its restoration, to its end.
func (r *runner) run(ctx context.Context) {
	alloc := r.alloc
	err := r.start(alloc)
	if err != nil {
		r.a.log.WarnContext(ctx, "allocation did not start", "alloc_id", alloc.ID, "job_id", alloc.JobID, "err", err)
		r.endAll(alloc)
		r.over(StatusFailed, err.Error())
		return
	}
	r.running()
	if !r.await(alloc) {
		for _, p := range r.processes {
			p.Leave()
		}
		return
	}
	r.endAll(alloc)
	status, text := r.outcome(alloc)
	r.a.log.InfoContext(ctx, "allocation ended", "alloc_id", alloc.ID, "job_id", alloc.JobID, "status", string(status), "reason", text)
	r.over(status, text)
}

// start starts every task, or finds it again where an earlier agent started it.
func (r *runner) start(alloc *Allocation) error {
	for i := range alloc.Tasks {
		t := &alloc.Tasks[i]
		if known := r.taskRecord(t.Name); known.Exit != nil {
			continue // it has ended under an earlier agent
		}
		p, err := r.a.startTask(alloc, t, r.taskRecord(t.Name).State)
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

// running notes that every task was started.
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

// await waits until the allocation is to end: it is asked to, its leader or its
// last task has ended, or a task has failed. False: the agent leaves, and the
// work goes on.
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
		case <-r.leave:
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

// taskEnded notes how a task ended.
func (r *runner) taskEnded(name string, exit driver.Exit) {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	known := r.tasks[name]
	known.Exit = &exit
	r.tasks[name] = known
	r.save()
}

// endAll stops every task that still runs: by its signal, then by force once its
// kill timeout has passed. It returns when nothing of them is left.
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

// end stops one task that has been asked to stop since.
func (r *runner) end(t *Task, p driver.Process, since time.Time) {
	select {
	case <-p.Done():
		return
	default:
	}
	if err := p.Signal(killSignal(t)); err != nil {
		r.a.log.Warn("a task was not signalled; it is killed at its kill timeout", "alloc_id", r.alloc.ID, "task", t.Name, "err", err)
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
			r.a.log.Error("a task was not killed; trying again", "alloc_id", r.alloc.ID, "task", t.Name, "err", err)
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

// defaultKillTimeout is how long a task may take to stop where it does not say.
const defaultKillTimeout = 5 * time.Second

func killTimeout(t *Task) time.Duration {
	if t.KillTimeout <= 0 {
		return defaultKillTimeout
	}
	return t.KillTimeout
}

// outcome is what became of the allocation, by how its tasks ended.
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

// describe says how a task ended, after its name.
func describe(e driver.Exit) string {
	switch {
	case e.Err != "":
		return "was lost: " + e.Err
	case e.Signal != "":
		return "was ended by " + e.Signal
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}
