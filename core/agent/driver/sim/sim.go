// Package sim implements a driver that simulates tasks: a task runs for the
// configured time and reports the configured memory, without any process. It consists
// of timers only, so one agent can run thousands.
//
// core/agent calls it. A Driver and its tasks are safe for concurrent use.
package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/agent/driver"
	"github.com/cede-scheduler/cede/core/model/taskconfig"
)

// Driver simulates tasks. The zero value is ready to use.
type Driver struct{}

var _ driver.Driver = Driver{}

// Settings are the configuration of a task.
type Settings = taskconfig.Sim

// Parse parses the configuration of a task. It returns an error if a field is unknown or invalid.
func Parse(config json.RawMessage) (Settings, error) { return taskconfig.ParseSim(config) }

// Start starts a task.
func (Driver) Start(s *driver.Spec) (driver.Process, error) {
	return begin(s, time.Now())
}

// Restore returns a task that continues as if it had run in the meantime.
func (Driver) Restore(s *driver.Spec, state json.RawMessage) (driver.Process, error) {
	if len(state) == 0 {
		return nil, driver.ErrNeverStarted
	}
	var at time.Time
	if err := json.Unmarshal(state, &at); err != nil {
		return nil, fmt.Errorf("sim: state: %w", err)
	}
	return begin(s, at)
}

// Stops reports whether a signal ends a task with these settings.
func Stops(s *Settings, signal string) bool {
	return !s.IgnoreTerm && slices.Contains(signals, signal)
}

// signals lists the signals whose default action ends a process.
var signals = []string{"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGABRT"}

type task struct {
	set   Settings
	start time.Time

	mu   sync.Mutex
	end  *time.Timer // nil if it never ends by itself
	done chan struct{}
	exit driver.Exit
}

var _ driver.Process = (*task)(nil)

func begin(s *driver.Spec, at time.Time) (*task, error) {
	set, err := Parse(s.Config)
	if err != nil {
		return nil, err
	}
	t := &task{set: set, start: at, done: make(chan struct{})}
	run := time.Duration(set.RunFor)
	run = cmp.Or(run, s.Duration)
	if run > 0 {
		t.mu.Lock()
		t.end = time.AfterFunc(time.Until(at.Add(run)), func() { t.finish(driver.Exit{Code: set.ExitCode}) })
		t.mu.Unlock()
	}
	return t, nil
}

func (t *task) finish(e driver.Exit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.done:
		return
	default:
	}
	if t.end != nil {
		t.end.Stop()
	}
	e.Time = time.Now()
	t.exit = e
	close(t.done)
}

func (t *task) State() json.RawMessage {
	b, _ := json.Marshal(t.start) // marshalling a time cannot fail
	return b
}

func (t *task) Done() <-chan struct{} { return t.done }

func (t *task) Exit() driver.Exit {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.exit
}

func (t *task) Signal(name string) error {
	if !Stops(&t.set, name) {
		return nil
	}
	if after := time.Duration(t.set.StopAfter); after > 0 {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.end != nil {
			t.end.Stop()
		}
		t.end = time.AfterFunc(after, func() { t.finish(driver.Exit{Signal: name}) })
		return nil
	}
	t.finish(driver.Exit{Signal: name})
	return nil
}

func (t *task) Kill() error {
	t.finish(driver.Exit{Signal: "SIGKILL"})
	return nil
}

func (t *task) Memory() int64 { return t.set.Memory << 20 }

// Detach stops the timer. Restore starts a new one.
func (t *task) Detach() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end != nil {
		t.end.Stop()
	}
}
