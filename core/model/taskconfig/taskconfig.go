package taskconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
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
	if err != nil {
		return fmt.Errorf("expected a duration such as 10s, found %.40s", b)
	}
	if n < 0 {
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

// examples holds the fields of the configurations, by driver, with a value of each in JSON.
var examples = map[string]map[string]string{
	"exec": {"command": `"/bin/sleep"`, "args": `["60"]`, "work_dir": `"/tmp"`},
	"sim":  {"run_for": `"10s"`, "exit_code": "1", "ignore_term": "true", "memory": "64", "stop_after": `"5s"`},
}

// Fields returns the fields of the configuration of a driver in alphabetical order. It returns
// nil if the driver is unknown.
func Fields(driver string) []string { return slices.Sorted(maps.Keys(examples[driver])) }

// Example returns a value of a field, in a syntax that JSON, YAML and HCL share.
func Example(driver, field string) string { return examples[driver][field] }

// Check parses a whole configuration as the driver does.
func Check(driver string, config map[string]any) error {
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	if driver == "exec" {
		_, err = ParseExec(text)
	} else if len(config) > 0 {
		_, err = ParseSim(text)
	}
	return err
}

// CheckField parses the value of one field as the driver does. It returns an error if the
// value is invalid, or empty although the driver requires it.
func CheckField(driver, field string, v any) error {
	if driver == "exec" && field == "command" && v == "" {
		return errors.New("command is missing")
	}
	text, err := json.Marshal(map[string]any{field: v})
	if err != nil {
		return err
	}
	var config any = &Sim{}
	if driver == "exec" {
		config = &Exec{}
	}
	err = decode(text, config)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("expected %s, found %s", noun(wrong.Type), found(v))
	}
	return err
}

func noun(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list of strings"
	case reflect.Bool:
		return "true or false"
	}
	return "an integer"
}

// found describes a value in messages.
func found(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("string %.40q", v)
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	}
	return fmt.Sprintf("%.40s", fmt.Sprint(v))
}

func decode(config json.RawMessage, v any) error {
	if len(bytes.TrimSpace(config)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(config))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
