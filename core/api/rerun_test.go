package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// completeAll reports every live allocation of a job as complete, and returns their number.
func (w *fixture) completeAll(id string) (n int) {
	w.t.Helper()
	w.reportRunning()
	list, _, err := w.client.Jobs().Allocations(w.t.Context(), id, nil)
	w.check(err)
	for _, a := range list {
		if a.DesiredStatus == "run" && a.ClientStatus == "running" {
			w.report(a.ID, "complete")
			n++
		}
	}
	return n
}

// A plan counts an instance that is replaced once, and the instances that are kept.
func TestPlan_CountsReplacedAndKeptInstances(t *testing.T) {
	w := start(t)
	w.addNode("n1", 1000, 1000)
	w.register(job("web", 50, 2, 100, 100))
	for _, c := range []struct {
		name     string
		cpu      int
		count    int
		priority int
		want     client.DesiredUpdates
	}{
		{"another instance", 100, 3, 50, client.DesiredUpdates{Place: 1, InPlaceUpdate: 2}},
		{"one fewer", 100, 1, 50, client.DesiredUpdates{Stop: 1, InPlaceUpdate: 1}},
		{"other resources", 101, 3, 50, client.DesiredUpdates{Place: 1, DestructiveUpdate: 2}},
		{"another priority", 100, 2, 60, client.DesiredUpdates{InPlaceUpdate: 2}},
		{"nothing", 100, 2, 50, client.DesiredUpdates{Ignore: 2}},
	} {
		plan, err := w.client.Jobs().Plan(t.Context(), job("web", c.priority, c.count, c.cpu, 100), nil)
		w.check(err)
		if got := plan.Annotations.DesiredTGUpdates["app"]; got == nil || *got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A job whose instances have completed runs them again if its tasks change, or after a stop. Its
// plan shows so. A registration that changes nothing runs nothing, and states how to run it.
func TestJob_RunsCompletedInstancesAgain(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.addNode("n1", 1000, 1000)
	spec := func(command string) *client.Job {
		j := job("report", 50, 2, 100, 100)
		j.Type = "batch"
		j.TaskGroups[0].Tasks[0].Driver = "exec"
		j.TaskGroups[0].Tasks[0].Config = map[string]any{"command": command}
		return j
	}
	stop := func() {
		r, err := w.client.Jobs().Stop(ctx, "report", nil)
		w.check(err)
		w.awaitEval(r.EvalID)
	}
	w.register(spec("x"))
	for _, c := range []struct {
		name, command string
		before        func()
		again         int
	}{
		{"the same job", "x", func() {}, 0},
		{"another command", "y", func() {}, 2},
		{"the same job again", "y", func() {}, 0},
		{"after a stop", "y", stop, 2},
		{"after a stop, with the first command", "x", stop, 2},
	} {
		w.completeAll("report")
		c.before()
		plan, err := w.client.Jobs().Plan(ctx, spec(c.command), nil)
		w.check(err)
		if len(plan.Place) != c.again {
			t.Errorf("%s: the plan places %d instances, want %d", c.name, len(plan.Place), c.again)
		}
		r := w.register(spec(c.command))
		for what, warnings := range map[string]string{"plan": plan.Warnings, "registration": r.Warnings} {
			if warned := strings.Contains(warnings, "all instances of job report have completed"); warned != (c.again == 0) {
				t.Errorf("%s: warnings of the %s: %q", c.name, what, warnings)
			}
		}
		if n := w.completeAll("report"); n != c.again {
			t.Errorf("%s: %d instances ran, want %d", c.name, n, c.again)
		}
	}
}

// A registration of another specification, or a change of the count, may run nothing as well.
func TestJob_WarnsIfAChangeRunsNothing(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.addNode("n1", 1000, 1000)
	spec := func(kind string, priority, count int) *client.Job {
		j := job(kind, priority, count, 100, 100)
		j.Type = kind
		return j
	}
	for _, kind := range []string{"batch", "sysbatch"} {
		count := map[string]int{"batch": 2, "sysbatch": 1}[kind]
		if r := w.register(spec(kind, 50, count)); r.Warnings != "" {
			t.Errorf("%s: the first registration warns: %s", kind, r.Warnings)
		}
		if n := w.completeAll(kind); n != count {
			t.Fatalf("%d instances of %s completed", n, kind)
		}
		want := "all instances of job " + kind + " have completed, and do not run again"
		plan, err := w.client.Jobs().Plan(ctx, spec(kind, 60, count), nil)
		w.check(err)
		r := w.register(spec(kind, 60, count))
		if !strings.Contains(plan.Warnings, want) || !strings.Contains(r.Warnings, want) || w.completeAll(kind) != 0 {
			t.Errorf("%s: warnings of another priority: plan %q, registration %q", kind, plan.Warnings, r.Warnings)
		}
	}
	for _, c := range []struct {
		count int
		warns bool
	}{{0, false}, {1, true}, {2, true}, {3, false}} {
		resp, text := w.send("PUT", "/v1/job/batch/scale", fmt.Sprintf(`{"Count":%d}`, c.count))
		var r client.JobRegisterResponse
		if err := json.Unmarshal([]byte(text), &r); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
		w.awaitEval(r.EvalID)
		if warned := strings.Contains(r.Warnings, "have completed"); warned != c.warns {
			t.Errorf("count %d: warnings %q", c.count, r.Warnings)
		}
	}
	if n := w.completeAll("batch"); n != 1 {
		t.Errorf("%d instances ran after scaling up, want 1", n)
	}
}
