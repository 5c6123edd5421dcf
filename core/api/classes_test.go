package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// The error for an invalid class has a reason and a hint.
func TestPriorityClasses_RejectionsHaveHints(t *testing.T) {
	w := start(t)
	if resp, text := w.send("PUT", "/v1/priority-class/usual", `{"Value": 30, "GlobalDefault": true}`); resp.StatusCode != http.StatusOK {
		t.Fatal(resp.StatusCode, text)
	}
	for _, c := range []struct{ name, body, says, hint string }{
		{"high", `{"Value": 99999999999}`, "99999999999", "in this range"},
		{"high", `{"Value": -99999999999}`, "-99999999999", "in this range"},
		{"high", `{"Value": 1000000001}`, "1000000001 is above 1000000000", "write at most 1000000000"},
		{"system-x", `{"Value": 5}`, "reserved", "choose another name"},
		{"system-node-critical", `{"Value": 5}`, "2000001000 always", "leave the class out"},
		{"a b", `{"Value": 5}`, "spaces", "choose another name"},
		{"other", `{"Value": 40, "GlobalDefault": true}`, "the global default is already usual", "delete usual"},
		{"usual", `{"Value": 31, "GlobalDefault": true}`, "only the description may change", "delete the class"},
		{"high", `{"Value": 5, "PreemptionPolicy": "always"}`, "always", "omit it"},
	} {
		resp, text := w.send("PUT", "/v1/priority-class/"+strings.ReplaceAll(c.name, " ", "%20"), c.body)
		var e client.Error
		if err := json.Unmarshal([]byte(text), &e); err != nil || resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s %s: %d %s", c.name, c.body, resp.StatusCode, text)
			continue
		}
		if e.Code != client.CodeInvalid || !strings.Contains(e.Message, c.says) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s %s: %q, hint %q; want %q, hint %q", c.name, c.body, e.Message, e.Hint, c.says, c.hint)
		}
	}
	list, _, err := w.client.PriorityClasses().List(t.Context(), nil)
	if w.check(err); len(list) != 3 { // usual, and two of the system
		t.Errorf("got %d classes", len(list))
	}
}

// A job without a priority gets that of its class, or of the global default class, in every
// format, whether the job is planned, run by its plan, or registered. A priority of 0 is a
// priority.
func TestJobs_ResolvePriorityClasses(t *testing.T) {
	w := start(t)
	w.addNode("n1", 100_000, 100_000)
	for name, body := range map[string]string{"usual": `{"Value": 300, "GlobalDefault": true}`, "urgent": `{"Value": 900}`} {
		if resp, text := w.send("PUT", "/v1/priority-class/"+name, body); resp.StatusCode != http.StatusOK {
			t.Fatal(resp.StatusCode, text)
		}
	}
	task := func(s string) string { return fmt.Sprintf(s, `task "t" { driver = "sim" }`) }
	for _, c := range []struct {
		file, text string
		want       int32
	}{
		{"class.hcl", task("job \"j\" {\n priority_class = \"urgent\"\n group \"g\" {\n %s\n}\n}"), 900},
		{"default.hcl", task("job \"j\" {\n group \"g\" {\n %s\n}\n}"), 300},
		{"zero.hcl", task("job \"j\" {\n priority = 0\n group \"g\" {\n %s\n}\n}"), 0},
		{"class.yaml", "id: j\npriorityClass: urgent\ngroups: [{name: g, tasks: [{name: t, driver: sim}]}]", 900},
		{"default.yaml", "id: j\ngroups: [{name: g, tasks: [{name: t, driver: sim}]}]", 300},
		{"class.json", `{"ID": "j", "PriorityClass": "urgent", "TaskGroups": [{"Name": "g", "Tasks": [{"Name": "t", "Driver": "sim"}]}]}`, 900},
		{"both.json", `{"ID": "j", "Priority": 900, "PriorityClass": "urgent", "TaskGroups": [{"Name": "g", "Tasks": [{"Name": "t", "Driver": "sim"}]}]}`, 900},
		{"plain.json", `{"ID": "j", "Priority": 70, "TaskGroups": [{"Name": "g", "Tasks": [{"Name": "t", "Driver": "sim"}]}]}`, 70},
	} {
		for _, canonical := range []bool{false, true} {
			id := fmt.Sprintf("%s-%t", strings.ReplaceAll(c.file, ".", "-"), canonical)
			job, err := w.client.Jobs().Parse(t.Context(), &client.JobsParseRequest{Name: c.file, JobHCL: c.text, Canonicalize: canonical})
			if err != nil {
				t.Fatalf("%s: %v", c.file, err)
			}
			job.ID, job.Name = id, id
			plan, err := w.client.Jobs().Plan(t.Context(), job, nil)
			if w.check(err); len(plan.Place) != 1 || int32(plan.Place[0].Priority) != c.want {
				t.Fatalf("%s: the plan places %+v, want one instance with priority %d", id, plan.Place, c.want)
			}
			_, err = w.client.Jobs().Run(t.Context(), job, plan.PlanToken, nil)
			w.check(err)
			w.hasPriority(id, c.want)
			placed, _, err := w.client.Jobs().Allocations(t.Context(), id, nil)
			if w.check(err); len(placed) != 1 || placed[0].Priority != plan.Place[0].Priority {
				t.Errorf("%s: the plan placed priority %d, and the run %+v", id, plan.Place[0].Priority, placed)
			}
			job.ID, job.Name = id+"-registered", id+"-registered"
			_, err = w.client.Jobs().Register(t.Context(), job, nil)
			w.check(err)
			w.hasPriority(job.ID, c.want)
		}
	}
}

// hasPriority reports an error if the stored job has another priority.
func (w *fixture) hasPriority(id string, want int32) {
	w.t.Helper()
	stored, _, err := w.client.Jobs().Get(w.t.Context(), id, nil)
	if w.check(err); stored.Priority == nil || int32(*stored.Priority) != want {
		w.t.Errorf("%s has priority %v, want %d", id, stored.Priority, want)
	}
}
