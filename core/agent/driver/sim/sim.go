// Package sim is the driver of work that is only pretended: a task takes the time
// that its configuration says and the memory that it claims, and there is no
// process behind it. It owns timers and nothing else; one agent runs thousands.
//
// core/agent calls it. A Driver is safe for concurrent use, and so is a task.
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

// Driver starts tasks. The zero value is ready.
type Driver struct{}

var _ driver.Driver = Driver{}

// Settings are a task's configuration.
type Settings struct {
	// RunFor is how long the task takes; absent: its group's duration, else for ever.
	RunFor Duration `json:"run_for"`
	// ExitCode is what it ends with by itself.
	ExitCode int `json:"exit_code"`
	// IgnoreTerm is whether it goes on when it is asked to stop.
	IgnoreTerm bool `json:"ignore_term"`
	// Memory is what it uses, in MiB.
	Memory int64 `json:"memory"`
	// StopAfter is how long it takes to stop once asked.
	StopAfter Duration `json:"stop_after"`
}

// Duration is a time.Duration that reads "10s", or nanoseconds.
type Duration time.Duration

// UnmarshalJSON reads either form.
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

// Parse reads a task's configuration.
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

// Restore goes on with a task as if it had run meanwhile.
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

// Stops is whether a signal ends a task, as it would end most processes.
func (s *Settings) Stops(signal string) bool {
	return !s.IgnoreTerm && slices.Contains(signals, signal)
}

// signals that end a task at once, as they would end most processes.
var signals = []string{"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGABRT"}

type task struct {
	set   Settings
	start time.Time

	mu   sync.Mutex
	end  *time.Timer // nil: never ends by itself
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
	b, _ := json.Marshal(t.start) // a time has a text
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

// Detach ends the timer; whoever restores the task makes another.
func (t *task) Detach() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end != nil {
		t.end.Stop()
	}
}
