package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// A blocking query returns on changes of its result only.
func TestBlockingQuery_WaitsForRelevantChange(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.addNode("n1", 1000, 1000)
	w.addNode("n2", 1000, 1000)
	w.register(job("web", 50, 1, 100, 100))
	list, meta, err := w.client.NodeAgent().Allocations(ctx, "n1", testNodeSecret, nil)
	w.check(err)
	mine := "n1"
	if len(list) == 0 {
		mine = "n2"
	}
	_, meta, err = w.client.NodeAgent().Allocations(ctx, mine, testNodeSecret, nil)
	w.check(err)

	type answer struct {
		list []*client.Allocation
		meta *client.QueryMeta
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		list, meta, err := w.client.NodeAgent().Allocations(ctx, mine, testNodeSecret, &client.QueryOptions{Index: meta.LastIndex, Wait: time.Minute})
		got <- answer{list, meta, err}
	}()
	// Entries that do not affect the node do not end the query.
	for i := range 20 {
		_, err = w.client.PriorityClasses().Put(ctx, &client.PriorityClass{Name: fmt.Sprintf("c%d", i), Value: i})
		w.check(err)
	}
	select {
	case a := <-got:
		t.Fatalf("returned without a change: %d allocations at %d, %v", len(a.list), a.meta.LastIndex, a.err)
	default:
	}
	_, err = w.client.Jobs().Stop(ctx, "web", nil)
	w.check(err)
	a := <-got
	w.check(a.err)
	if a.meta.LastIndex <= meta.LastIndex || len(a.list) != 1 || a.list[0].DesiredStatus != "stop" {
		t.Errorf("got %+v at %d, requested after %d", a.list, a.meta.LastIndex, meta.LastIndex)
	}
}

// Changes between two queries, including deletions, are returned at once.
func TestBlockingQuery_SeesChangesBetweenQueries(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	put := func(name string) {
		_, err := w.client.PriorityClasses().Put(ctx, &client.PriorityClass{Name: name, Value: 1})
		w.check(err)
	}
	put("a")
	put("b")
	_, meta, err := w.client.PriorityClasses().List(ctx, nil)
	w.check(err)
	for _, change := range []func(){
		func() { put("c") },
		func() { w.check(first(w.client.PriorityClasses().Delete(ctx, "a"))) },
	} {
		change()
		put2 := time.Now()
		list, next, err := w.client.PriorityClasses().List(ctx, &client.QueryOptions{Index: meta.LastIndex, Wait: time.Minute})
		w.check(err)
		if next.LastIndex <= meta.LastIndex || time.Since(put2) > 30*time.Second {
			t.Errorf("%d classes at %d, requested after %d", len(list), next.LastIndex, meta.LastIndex)
		}
		meta = next
	}
	// Without changes, the query returns the current state when its wait ends.
	list, same, err := w.client.PriorityClasses().List(ctx, &client.QueryOptions{Index: meta.LastIndex, Wait: 10 * time.Millisecond})
	w.check(err)
	if len(list) != 2+len(model.SystemClasses()) || same.LastIndex < meta.LastIndex {
		t.Errorf("%d classes at %d", len(list), same.LastIndex)
	}
}

// A restored snapshot changes every result, although its objects retain their indexes.
func TestBlockingQuery_SeesRestore(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.register(job("kept", 50, 1, 10, 10))
	var file bytes.Buffer
	w.check(w.client.Operator().SnapshotSave(ctx, &file))
	w.register(job("later", 50, 1, 10, 10))
	_, before, err := w.client.Jobs().Get(ctx, "kept", nil)
	w.check(err)
	w.check(w.client.Operator().SnapshotRestore(ctx, bytes.NewReader(file.Bytes())))
	started := time.Now()
	_, after, err := w.client.Jobs().Get(ctx, "kept", &client.QueryOptions{Index: before.LastIndex, Wait: time.Minute})
	w.check(err)
	if after.LastIndex <= before.LastIndex || time.Since(started) > 30*time.Second {
		t.Errorf("the query returned index %d after %v, requested after %d", after.LastIndex, time.Since(started), before.LastIndex)
	}
}

// A blocking query ends if its caller disconnects or the server stops.
func TestBlockingQuery_EndsWithCallerOrServer(t *testing.T) {
	w := start(t)
	_, meta, err := w.client.Jobs().List(t.Context(), nil)
	w.check(err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	ask := func(ctx context.Context) {
		_, _, err := w.client.Jobs().List(ctx, &client.QueryOptions{Index: meta.LastIndex + 1000, Wait: time.Hour})
		ended <- err
	}
	go ask(ctx)
	go ask(t.Context())
	cancel()
	if err := <-ended; err == nil {
		t.Error("a canceled query returned a result")
	}
	w.api.EndStreams()
	w.check(<-ended)
}

// Pages are complete, ordered and without overlap, even if objects are created and
// deleted concurrently.
func TestPagination_ListsEverythingOnce(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	ids := []string{"a", "a-b", "b", "web.1", "web", "web_2", "zz"}
	for _, id := range ids {
		_, err := w.client.Jobs().Register(ctx, job(id, 50, 1, 10, 10), nil)
		w.check(err)
	}
	slices.Sort(ids)
	for _, size := range []int{1, 2, 3, 100} {
		var seen []string
		w.check(client.AllPages(ctx, &client.QueryOptions{PerPage: size}, func(ctx context.Context, q *client.QueryOptions) (*client.QueryMeta, error) {
			list, meta, err := w.client.Jobs().List(ctx, q)
			for _, j := range list {
				seen = append(seen, j.ID)
			}
			if len(list) > size {
				t.Errorf("a page of size %d has %d entries", size, len(list))
			}
			return meta, err
		}))
		if !slices.Equal(seen, ids) {
			t.Errorf("pages of size %d list %v, want %v", size, seen, ids)
		}
	}
	list, _, err := w.client.Jobs().List(ctx, &client.QueryOptions{Prefix: "web"})
	w.check(err)
	for _, j := range list {
		if !strings.HasPrefix(j.ID, "web") {
			t.Errorf("the prefix web matched %s", j.ID)
		}
	}
	for _, id := range ids {
		got, _, err := w.client.Jobs().Get(ctx, id, nil)
		if err != nil || got.ID != id {
			t.Errorf("job %q: %v", id, err)
		}
	}
}

func TestPagination_AllocationsOrderedByJob(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.addNode("n1", 10_000, 10_000)
	for _, id := range []string{"b", "a", "a-b"} {
		w.register(job(id, 50, 3, 10, 10))
	}
	var jobs, ids []string
	w.check(client.AllPages(ctx, &client.QueryOptions{PerPage: 2}, func(ctx context.Context, q *client.QueryOptions) (*client.QueryMeta, error) {
		list, meta, err := w.client.Allocations().List(ctx, q)
		for _, a := range list {
			jobs, ids = append(jobs, a.JobID), append(ids, a.ID)
		}
		return meta, err
	}))
	slices.Sort(ids)
	if !slices.IsSorted(jobs) || len(slices.Compact(ids)) != 9 {
		t.Errorf("%d allocations of %v", len(ids), jobs)
	}
	// The ID may be any unique prefix.
	all, _, err := w.client.Allocations().List(ctx, nil)
	w.check(err)
	a, _, err := w.client.Allocations().Get(ctx, all[0].ID[:12], nil)
	w.check(err)
	if a.ID != all[0].ID {
		t.Errorf("%s for %s", a.ID, all[0].ID)
	}
	if _, _, err := w.client.Allocations().Get(ctx, "zz", nil); !client.IsNotFound(err) {
		t.Errorf("a missing allocation: %v", err)
	}
}

// Requests with the same key are applied once, however often they are retried.
func TestIdempotencyKey_AppliesRequestOnce(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	o := &client.RegisterOptions{WriteOptions: client.WriteOptions{IdempotencyKey: "k1"}}
	r, err := w.client.Jobs().Register(ctx, job("web", 50, 1, 10, 10), o)
	w.check(err)
	again, err := w.client.Jobs().Register(ctx, job("web", 50, 1, 10, 10), o)
	w.check(err)
	if !again.Replayed || again.EvalID != r.EvalID || again.JobModifyIndex != r.JobModifyIndex {
		t.Errorf("again %+v, first %+v", again, r)
	}
	if _, err := w.client.Jobs().Register(ctx, job("other", 50, 1, 10, 10), o); !client.IsConflict(err) {
		t.Errorf("another job with the same key: %v", err)
	}
	if resp, text := w.send("POST", "/v1/jobs", `{"Job":{"ID":"x"}}`, headerIdempotency, strings.Repeat("k", 200)); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a long key: %d %s", resp.StatusCode, text)
	}
	check := uint64(0)
	if _, err := w.client.Jobs().Register(ctx, job("web", 50, 1, 10, 10), &client.RegisterOptions{Check: &check}); !client.IsConflict(err) {
		t.Errorf("a job that must not exist yet: %v", err)
	}
	check = r.JobModifyIndex
	if _, err := w.client.Jobs().Register(ctx, job("web", 60, 1, 10, 10), &client.RegisterOptions{Check: &check}); err != nil {
		t.Error(err)
	}
}

// A plan returns its evictions. Its token applies exactly those, or fails if the plan
// is outdated.
func TestPlanToken_AppliesThePlan(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.enablePreemption()
	w.addNode("n1", 1000, 1000)
	w.register(job("low", 20, 2, 400, 400))
	w.reportRunning()
	high := job("high", 90, 1, 500, 500)
	plan, err := w.client.Jobs().Plan(ctx, high, nil)
	w.check(err)
	if !plan.NewJob || plan.PlanToken == "" || len(plan.Place) != 1 || len(plan.Annotations.PreemptedAllocs) != 1 || len(plan.Policies) != 1 {
		t.Fatalf("plan %+v", plan)
	}
	r, err := w.client.Jobs().Run(ctx, high, plan.PlanToken, nil)
	w.check(err)
	w.awaitEval(r.EvalID)
	victim, _, err := w.client.Allocations().Get(ctx, plan.Annotations.PreemptedAllocs[0].ID, nil)
	w.check(err)
	if victim.DesiredStatus != "evict" || victim.PreemptedByAllocID == "" {
		t.Errorf("victim %+v", victim)
	}
	if _, err := w.client.Jobs().Run(ctx, high, plan.PlanToken, nil); !client.IsConflict(err) {
		t.Errorf("the same plan again: %v", err)
	}
	if _, err := w.client.Jobs().Run(ctx, high, "no token", nil); err == nil {
		t.Error("an invalid token was accepted")
	}
}

// An empty token is an error: a request with a plan must not be registered without
// it.
func TestPlanToken_EmptyIsRejected(t *testing.T) {
	w := start(t)
	const body = `{"Job": {"ID": "j", "TaskGroups": [{"Name": "g", "Tasks": [{"Name": "main", "Driver": "sim"}]}]}%s}`
	post := func(more string) (int, string) {
		t.Helper()
		resp, err := http.Post(w.url+"/v1/jobs", "application/json", strings.NewReader(fmt.Sprintf(body, more)))
		w.check(err)
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		w.check(err)
		return resp.StatusCode, string(text)
	}
	code, text := post(`, "PlanToken": ""`)
	if code != http.StatusBadRequest || !strings.Contains(text, "PlanToken must not be empty") || !strings.Contains(text, "omit the field") {
		t.Errorf("%d: %s", code, text)
	}
	if w.server.Snapshot().Job(model.JobKey{Namespace: "default", ID: "j"}) != nil {
		t.Error("the job was registered")
	}
	for _, none := range []string{"", `, "PlanToken": null`} {
		if code, text := post(none); code != http.StatusOK {
			t.Errorf("without a token: %d: %s", code, text)
		}
	}
}

// An evaluation that places nothing reports the reasons.
func TestEvaluation_ExplainsFailedPlacements(t *testing.T) {
	w := start(t)
	w.addNode("n1", 100, 100)
	r, err := w.client.Jobs().Register(t.Context(), job("big", 50, 1, 5000, 5000), nil)
	w.check(err)
	e := w.awaitEval(r.EvalID)
	m := e.FailedTGAllocs["app"]
	if m == nil || m.NodesEvaluated != 1 || !strings.Contains(m.Explanation, "0 of 1 node") || e.BlockedEval == "" {
		t.Fatalf("evaluation %+v, %+v", e, m)
	}
	if len(e.RelatedEvals) == 0 {
		t.Error("the blocked evaluation is missing")
	}
	j, _, err := w.client.Jobs().Get(t.Context(), "big", nil)
	w.check(err)
	if j.Status != "pending" || !strings.Contains(j.StatusDescription, e.BlockedEval) {
		t.Errorf("job is %s: %s", j.Status, j.StatusDescription)
	}
	blocked, _, err := w.client.Evaluations().List(t.Context(), &client.QueryOptions{Params: map[string][]string{"status": {"blocked"}}})
	w.check(err)
	if len(blocked) != 1 || blocked[0].ID != e.BlockedEval {
		t.Errorf("blocked %+v", blocked)
	}
}

func TestConsistentReads_ExcludeStale(t *testing.T) {
	w := start(t)
	if _, _, err := w.client.Jobs().List(t.Context(), &client.QueryOptions{Consistent: true}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"stale=1&consistent=1", "index=-1", "index=x", "wait=soon", "wait=-5s", "per_page=many", "next_token=%21", "next_token=zzz", "consistent=perhaps"} {
		if resp, text := w.send("GET", "/v1/jobs?"+bad, ""); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, resp.StatusCode, text)
		}
	}
}

// Nomad applies a constraint of a job that counts instances to all groups together. cede
// applies it to each group, and reports the difference if the job has several groups.
func TestJobs_WarnAboutCountsOfTheJob(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	counts := []*client.Constraint{{Operand: "distinct_hosts"}, {Operand: "distinct_property", LTarget: "${meta.rack}"}, {Operand: "distinct_property", LTarget: "${meta.row}"}}
	for _, tt := range []struct {
		name   string
		change func(*client.Job)
		want   string
	}{
		{"one group", func(j *client.Job) { j.Constraints = counts; j.TaskGroups = j.TaskGroups[:1] }, ""},
		{"of the groups", func(j *client.Job) { j.TaskGroups[0].Constraints, j.TaskGroups[1].Constraints = counts, counts }, ""},
		{"another operator", func(j *client.Job) {
			j.Constraints = []*client.Constraint{{Operand: "is_set", LTarget: "${meta.rack}"}}
		}, ""},
		{"of the job", func(j *client.Job) { j.Constraints = counts[:1] }, "distinct_hosts of the job counts the instances of each group separately"},
		{"several", func(j *client.Job) { j.Constraints = counts }, "distinct_hosts and distinct_property of the job count the instances of each group separately"},
	} {
		j := job("pair", 50, 1, 10, 10)
		second := *j.TaskGroups[0]
		second.Name = "second"
		j.TaskGroups = append(j.TaskGroups, &second)
		tt.change(j)
		done, err := w.client.Jobs().Register(ctx, j, nil)
		w.check(err)
		if (tt.want == "") != (len(done.WarningList) == 0) || !strings.Contains(done.Warnings, tt.want) {
			t.Errorf("%s: register warns %q, want %q", tt.name, done.WarningList, tt.want)
		}
		valid, err := w.client.Jobs().Validate(ctx, j)
		w.check(err)
		if (tt.want == "") != (valid.Warnings == "") || !strings.Contains(valid.Warnings, tt.want) {
			t.Errorf("%s: validate warns %q, want %q", tt.name, valid.Warnings, tt.want)
		}
	}
}

// Fields of a job without effect cause a warning, and tolerations are stored.
func TestJobs_KeepTolerations(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	j := job("train", 50, 3, 10, 10)
	j.Toleration = &client.PreemptionToleration{MinPreemptorPriority: new(90), MinRuntime: time.Minute}
	j.TaskGroups[0].MinCount, j.TaskGroups[0].Tolerations = 1, []*client.Toleration{{Key: "gpu", Operator: "Exists"}}
	done, err := w.client.Jobs().Register(ctx, j, nil)
	w.check(err)
	if len(done.WarningList) != 1 || !strings.Contains(done.WarningList[0], "minCount of group app has no effect") {
		t.Errorf("warnings %q", done.WarningList)
	}
	j.DisruptionMode = "all"
	done, err = w.client.Jobs().Register(ctx, j, nil)
	w.check(err)
	kept, _, err := w.client.Jobs().Get(ctx, "train", nil)
	w.check(err)
	g := kept.TaskGroups[0]
	if len(done.WarningList) != 0 || kept.DisruptionMode != "all" || *kept.Toleration.MinPreemptorPriority != 90 || kept.Toleration.MinRuntime != time.Minute ||
		g.MinCount != 1 || len(g.Tolerations) != 1 || *g.Tolerations[0] != (client.Toleration{Key: "gpu", Operator: "Exists"}) {
		t.Errorf("%q: %+v %+v", done.WarningList, kept, g)
	}
}

// The queued count comes from the newest evaluation of a job. Earlier ones may stay
// blocked for a while.
func TestJobs_CountQueuedOnce(t *testing.T) {
	w := start(t)
	j := job("web", 50, 1, 100, 100)
	for i := range 5 {
		w.register(j)
		summary, _, err := w.client.Jobs().Summary(t.Context(), "web", nil)
		w.check(err)
		if got := summary.Summary["app"].Queued; got != 1 {
			t.Errorf("registered %d times: %d queued, want 1", i+1, got)
		}
		list, _, err := w.client.Jobs().List(t.Context(), nil)
		w.check(err)
		if got := list[0].JobSummary.Summary["app"].Queued; got != 1 {
			t.Errorf("registered %d times: %d queued in the list, want 1", i+1, got)
		}
	}
}

// A stopped allocation has ended when its node reports so, not when it is stopped.
func TestAllocation_EndsWithTheReportOfItsNode(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.addNode("n1", 1000, 1000)
	j := job("web", 50, 1, 100, 100)
	j.TaskGroups[0].Tasks[0].KillTimeout = new(20 * time.Second)
	r := w.register(j)
	w.reportRunning()
	list, _, err := w.client.Evaluations().Allocations(ctx, r.EvalID, nil)
	w.check(err)
	get := func() *client.Allocation {
		a, _, err := w.client.Allocations().Get(ctx, list[0].ID, nil)
		w.check(err)
		return a
	}
	if a := get(); a.StopTime != 0 || a.KillDeadline != 0 || a.EndTime != 0 {
		t.Errorf("running: stop %d, deadline %d, end %d", a.StopTime, a.KillDeadline, a.EndTime)
	}
	_, err = w.client.Allocations().Stop(ctx, list[0].ID, nil)
	w.check(err)
	stopping := get()
	if stopping.StopTime == 0 || stopping.KillDeadline != stopping.StopTime+int64(20*time.Second) || stopping.EndTime != 0 {
		t.Errorf("stopping: stop %d, deadline %d, end %d", stopping.StopTime, stopping.KillDeadline, stopping.EndTime)
	}
	w.reportStopped()
	ended := get()
	if ended.StopTime != stopping.StopTime || ended.KillDeadline != 0 || ended.EndTime <= ended.StopTime || ended.EndTime != ended.ModifyTime {
		t.Errorf("ended: stop %d, deadline %d, end %d", ended.StopTime, ended.KillDeadline, ended.EndTime)
	}
	if at := ended.TaskStates["main"].FinishedAt; at == nil || at.UnixNano() != ended.EndTime {
		t.Errorf("the task finished at %v, want %d", at, ended.EndTime)
	}
}

// Controllers follow the active version of a policy by blocking queries.
func TestBlockingQuery_WaitsForPolicyChange(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	v, err := w.client.Policies().Load(ctx, &client.PolicyLoad{Name: "mine", Module: moduleBytes("one")})
	w.check(err)
	// Changes of a table are known only from its first blocking query on.
	_, meta, err := w.client.Policies().Status(ctx, "mine", &client.QueryOptions{Index: 1, Wait: time.Minute})
	w.check(err)
	type answer struct {
		status *client.PolicyStatus
		meta   *client.QueryMeta
		err    error
	}
	got := make(chan answer, 1)
	go func() {
		status, meta, err := w.client.Policies().Status(ctx, "mine", &client.QueryOptions{Index: meta.LastIndex, Wait: time.Minute})
		got <- answer{status, meta, err}
	}()
	for i := range 20 {
		_, err = w.client.PriorityClasses().Put(ctx, &client.PriorityClass{Name: fmt.Sprintf("c%d", i), Value: i})
		w.check(err)
	}
	select {
	case a := <-got:
		t.Fatalf("returned without a change: %+v, %v", a.meta, a.err)
	default:
	}
	_, err = w.client.Policies().Activate(ctx, "mine", v.ID)
	w.check(err)
	a := <-got
	w.check(a.err)
	if a.status.Active != v.ID || a.meta.LastIndex <= meta.LastIndex {
		t.Errorf("active %q at %d, requested after %d", a.status.Active, a.meta.LastIndex, meta.LastIndex)
	}
}
