package taskconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Exec is the configuration of a task that runs a program.
type Exec struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
	WorkDir string   `json:"work_dir"` // absolute, or relative to the task's own, which is the default
}

// Sim is the configuration of a simulated task.
type Sim struct {
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

// ParseExec parses the configuration of a task of the driver exec. It returns an error if
// the command is missing, or a field is unknown or invalid.
func ParseExec(config json.RawMessage) (s Exec, err error) {
	err = decode(config, &s)
	if err == nil && s.Command == "" {
		err = errors.New("command is missing")
	}
	if err != nil {
		return s, fmt.Errorf("exec: config: %w; valid fields are command (required), args and work_dir", err)
	}
	return s, nil
}

// ParseSim parses the configuration of a task of the driver sim. It returns an error if a
// field is unknown or invalid.
func ParseSim(config json.RawMessage) (s Sim, err error) {
	if err := decode(config, &s); err != nil {
		return s, fmt.Errorf("sim: config: %w; valid fields are run_for, exit_code, ignore_term, memory and stop_after", err)
	}
	return s, nil
}

func decode(config json.RawMessage, v any) error {
	if len(bytes.TrimSpace(config)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(config))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
