package jobspec

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// The settings of the driver sim are checked when a job is registered. An agent would
// reject them only after the job has evicted others.
func TestToModel_ChecksSettingsOfSim(t *testing.T) {
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
		_, err := ToModel(&client.Job{ID: "x", TaskGroups: []*client.TaskGroup{{
			Name: "g", Tasks: []*client.Task{{Name: "t", Driver: "sim", Config: test.config}},
		}}})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "Tasks[0].Config")) {
			t.Errorf("%v: got %v, want %q", test.config, err, test.want)
		}
	}
}
