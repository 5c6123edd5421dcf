// Package driver defines the interface between the agent and the drivers that run
// tasks. core/agent calls drivers; core/agent/driver/exec and sim implement them. A
// Driver and a Process are safe for concurrent use.
package driver

import (
	"encoding/json"
	"errors"
	"time"
)

// ErrNeverStarted is returned by Restore if there is no trace of the task.
var ErrNeverStarted = errors.New("the task was never started")

// Driver starts tasks of one kind.
type Driver interface {
	// Start starts a task. If its configuration is invalid, the error names the
	// field.
	Start(*Spec) (Process, error)
	// Restore returns a task that an earlier agent started, by its State (nil if that
	// agent could not save it) and by the content of its folder. If the task has
	// ended meanwhile, the Process is Done. If there is no trace of the task, it
	// returns ErrNeverStarted.
	Restore(s *Spec, state json.RawMessage) (Process, error)
}

// Spec describes a task to a driver.
type Spec struct {
	AllocID string
	Task    string
	// Namespace of the job. Drivers isolate tasks of different namespaces from each other.
	Namespace string
	User      string          // empty: the driver's default
	Config    json.RawMessage // JSON object
	Env       []string        // NAME=value
	Dir       string          // the task's folder, which also receives its output
	MemoryMB  int64           // requested; 0: none
	Duration  time.Duration   // how long its group runs; 0: until the task ends
}

// Process is a started task. It continues when the agent ends, unless it is killed.
type Process interface {
	// State returns the input of Restore. It does not change.
	State() json.RawMessage
	// Done is closed once all processes of the task have ended.
	Done() <-chan struct{}
	// Exit returns how the task ended. It is valid once Done is closed.
	Exit() Exit
	// Signal sends a signal such as SIGTERM to the task's first process.
	Signal(name string) error
	// Kill kills every process of the task and does not wait.
	Kill() error
	// Memory returns the memory that the task uses in bytes, or 0 if it is unknown.
	Memory() int64
	// Detach releases the task without ending it.
	Detach()
}

// Exit describes how a task ended.
type Exit struct {
	Code   int       `json:"code"`             // of the process; 0 if a signal ended it
	Signal string    `json:"signal,omitempty"` // the signal that ended it
	Err    string    `json:"err,omitempty"`    // why the exit is unknown, or why the task was not started
	Time   time.Time `json:"time,omitzero"`
}

// OK reports whether the task succeeded.
func (e Exit) OK() bool { return e.Code == 0 && e.Signal == "" && e.Err == "" }
