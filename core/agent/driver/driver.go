// Package driver is the seam between the agent and what runs tasks: it owns the
// interface and its plain types, and runs nothing. core/agent calls drivers;
// core/agent/driver/exec and sim are the two there are. A Driver is safe for
// concurrent use, and so is a Process.
package driver

import (
	"encoding/json"
	"errors"
	"time"
)

// ErrNeverStarted means that there is nothing of a task to restore.
var ErrNeverStarted = errors.New("the task was never started")

// Driver starts tasks of one kind.
type Driver interface {
	// Start starts a task. What is wrong with its configuration is an error that
	// names the field.
	Start(*Spec) (Process, error)
	// Restore finds a task again that an earlier agent started, by its State (nil
	// where that agent had no time to write it down) and by what is in its folder.
	// A task that ended meanwhile is a Process that is Done. Without any sign of
	// one it is ErrNeverStarted.
	Restore(s *Spec, state json.RawMessage) (Process, error)
}

// Spec is what a driver is told of a task.
type Spec struct {
	AllocID  string
	Task     string
	User     string          // empty: the driver's own choice
	Config   json.RawMessage // JSON object
	Env      []string        // NAME=value
	Dir      string          // the task's own folder, where its output goes too
	MemoryMB int64           // that it asked for; 0: none
	Duration time.Duration   // how long its group runs; 0: until it ends by itself
}

// Process is a task that was started. It goes on when the agent ends, unless it
// is killed.
type Process interface {
	// State is what Restore needs; it does not change.
	State() json.RawMessage
	// Done is closed once nothing of the task is left.
	Done() <-chan struct{}
	// Exit is how it ended, once it is Done.
	Exit() Exit
	// Signal asks the task's first process, by a name such as SIGTERM.
	Signal(name string) error
	// Kill ends every process of the task, and does not wait.
	Kill() error
	// Memory is what the task uses, in bytes; 0 where nobody knows.
	Memory() int64
	// Leave lets go of the task without ending it.
	Leave()
}

// Exit is how a task ended.
type Exit struct {
	Code   int       `json:"code"`             // of the process; 0 where a signal ended it
	Signal string    `json:"signal,omitempty"` // that ended it
	Err    string    `json:"err,omitempty"`    // why nothing is known, or why it was never started
	Time   time.Time `json:"time,omitzero"`
}

// OK is whether the task did what it was meant to do.
func (e Exit) OK() bool { return e.Code == 0 && e.Signal == "" && e.Err == "" }
