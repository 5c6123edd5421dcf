// Package sim implements a driver that simulates tasks: a task runs for the
// configured time and reports the configured memory, without any process. It consists
// of timers only, so one agent can run thousands.
//
// core/agent calls it. A Driver and its tasks are safe for concurrent use.
package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/agent/driver"
)

// Driver simulates tasks. The zero value is ready to use.
type Driver struct{}

var _ driver.Driver = Driver{}

// Settings are the configuration of a task.
type Settings struct {
	// RunFor is the run time of the task. Default: its group's duration, or unlimited.
	RunFor Duration `json:"run_for"`
	// ExitCode is the exit code if the task ends by itself.
	ExitCode int `json:"exit_code"`
	// IgnoreTerm makes the task ignore signals that request it to stop.
	IgnoreTerm bool `json:"ignore_term"`
	// Memory is the memory that the task reports, in MiB.
	Memory int64 `json:"memory"`
	// StopAfter is the time between the signal and the end of the task.
	StopAfter Duration `json:"stop_after"`
}

// Duration is a time.Duration that unmarshals "10s" and nanoseconds.
type Duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		v, err := time.ParseDuration(text)
		if err == nil && v < 0 {
			err = fmt.Errorf("%q is negative", text)
		}
		*d = Duration(v)
		return err
	}
	var n int64
	err := json.Unmarshal(b, &n)
	if err == nil && n < 0 {
		err = fmt.Errorf("%d is negative", n)
	}
	*d = Duration(n)
	return err
}

// Parse parses the configuration of a task. It returns an error if a field is unknown or invalid.
func Parse(config json.RawMessage) (s Settings, err error) {
	if len(bytes.TrimSpace(config)) == 0 {
		return s, nil
	}
	d := json.NewDecoder(bytes.NewReader(config))
	d.DisallowUnknownFields()
	if err = d.Decode(&s); err != nil {
		return s, fmt.Errorf("sim: config: %w; valid fields are run_for, exit_code, ignore_term, memory and stop_after", err)
	}
	return s, nil
}

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

// Stops reports whether a signal ends the task.
func (s *Settings) Stops(signal string) bool {
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
	if run == 0 {
		run = s.Duration
	}
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
	if !t.set.Stops(name) {
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
