package jobspec

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// The settings of a driver are checked when a job is registered. An agent would reject them
// only after the job has evicted others.
func TestToModel_ChecksSettingsOfDriver(t *testing.T) {
	for _, test := range []struct {
		config map[string]any
		want   string // "": valid
	}{
		{map[string]any{"command": "/bin/sh", "args": []any{"-c", "true"}, "work_dir": "/tmp"}, ""},
		{map[string]any{"command": "/bin/sh", "workdir": "/tmp"}, `unknown field "workdir"`},
		{map[string]any{"command": "/bin/sh", "work_dir": 7}, "work_dir"},
		{map[string]any{"command": ""}, "command is missing"},
		{nil, "command is missing"},
	} {
		checkSettings(t, "exec", test.config, test.want)
	}
	for _, test := range []struct {
		config map[string]any
		want   string // "": valid
	}{
		{nil, ""},
		{map[string]any{}, ""},
		{map[string]any{"run_for": "1h", "exit_code": 1, "ignore_term": true, "memory": 64, "stop_after": "5s"}, ""},
		{map[string]any{"runfor": "1h"}, `unknown field "runfor"`},
		{map[string]any{"run_for": "an hour"}, "invalid duration"},
		{map[string]any{"run_for": "-1s"}, "is negative"},
		{map[string]any{"exit_code": "one"}, "exit_code"},
	} {
		checkSettings(t, "sim", test.config, test.want)
	}
}

// checkSettings converts a job with a task and expects an error about its settings, or none if
// want is empty.
func checkSettings(t *testing.T, driver string, config map[string]any, want string) {
	t.Helper()
	_, err := ToModel(&client.Job{ID: "x", TaskGroups: []*client.TaskGroup{{
		Name: "g", Tasks: []*client.Task{{Name: "t", Driver: driver, Config: config}},
	}}})
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Tasks[0].Config")) {
		t.Errorf("%s %v: got %v, want %q", driver, config, err, want)
	}
}
