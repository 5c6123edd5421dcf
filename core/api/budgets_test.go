package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/sdk/client"
)

// labelledJob returns a job with a labelled group.
func labelledJob(id string, count int) *client.Job {
	j := job(id, 50, count, 10, 10)
	j.TaskGroups[0].Labels = map[string]string{"app": id}
	return j
}

func TestBudgets_ReportStatus(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.addNode("n1", 1000, 1000)
	w.register(labelledJob("web", 3))
	w.register(labelledJob("other", 2))
	budgets := w.client.Budgets()
	_, err := budgets.Put(ctx, &client.Budget{Name: "web", Labels: map[string]string{"app": "web"}, MinAvailable: "2", Enforcement: "strict"}, nil)
	w.check(err)
	_, err = budgets.Put(ctx, &client.Budget{Name: "half", Labels: map[string]string{"app": "web"}, MaxUnavailable: "50%"}, nil)
	w.check(err)

	b, meta, err := budgets.Get(ctx, "web", nil)
	w.check(err)
	if b.Healthy != 0 || b.Needed != 2 || b.Allowed != 0 || len(b.Allocations) != 3 || b.Enforcement != "strict" || b.MinAvailable != "2" {
		t.Errorf("before allocations run: %+v", b)
	}
	for _, a := range b.Allocations {
		if a.JobID != "web" {
			t.Errorf("the budget covers an allocation of %s", a.JobID)
		}
	}
	answered := make(chan *client.BudgetStatus, 1)
	go func() {
		b, _, err := budgets.Get(ctx, "web", &client.QueryOptions{Index: meta.LastIndex, Wait: time.Minute})
		if err != nil {
			t.Error(err)
		}
		answered <- b
	}()
	w.reportRunning() // changes the status, but not the budget
	if b := <-answered; b == nil || b.Healthy != 3 || b.Allowed != 1 {
		t.Errorf("after the blocking query: %+v", b)
	}
	list, _, err := budgets.List(ctx, nil)
	w.check(err)
	if len(list) != 2 || list[0].Name != "half" || list[0].Needed != 1 || list[0].Allowed != 2 || list[0].Enforcement != "bestEffort" || list[1].Allowed != 1 {
		t.Errorf("the list: %+v", list)
	}
	page, meta, err := budgets.List(ctx, &client.QueryOptions{PerPage: 1})
	w.check(err)
	if len(page) != 1 || meta.NextToken == "" {
		t.Errorf("got a page of %d entries", len(page))
	}
	if list, _, err := budgets.List(ctx, &client.QueryOptions{Prefix: "we"}); err != nil || len(list) != 1 || list[0].Name != "web" {
		t.Errorf("by prefix: %+v, %v", list, err)
	}
}

// A strict budget prevents evictions until it is deleted.
func TestBudgets_LimitEvictions(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.enablePreemption()
	w.addNode("n1", 100, 1000)
	low := labelledJob("low", 1)
	*low.Priority, *low.TaskGroups[0].Tasks[0].Resources.CPU = 20, 100
	w.register(low)
	w.reportRunning()
	_, err := w.client.Budgets().Put(ctx, &client.Budget{Name: "low", Labels: map[string]string{"app": "low"}, MinAvailable: "1", Enforcement: "strict"}, nil)
	w.check(err)
	high := w.register(job("high", 80, 1, 100, 10))
	if e := w.awaitEval(high.EvalID); len(e.FailedTGAllocs) == 0 {
		t.Error("the budget was exceeded")
	}
	_, err = w.client.Budgets().Delete(ctx, "low", nil)
	w.check(err)
	again, err := w.client.Jobs().Evaluate(ctx, "high", nil)
	w.check(err)
	if e := w.awaitEval(again.EvalID); len(e.FailedTGAllocs) != 0 {
		t.Errorf("not placed without the budget: %+v", e.FailedTGAllocs)
	}
}

func TestBudgets_RejectInvalid(t *testing.T) {
	w := start(t)
	for body, want := range map[string]string{
		`{"Labels":{"a":"b"}}`: "one of minAvailable, maxUnavailable and maxEvictions",
		`{"Labels":{"a":"b"},"MinAvailable":1,"MaxUnavailable":"1"}`: "one of minAvailable, maxUnavailable and maxEvictions",
		`{"MinAvailable":1}`:                                                   "labels are required",
		`{"Labels":{"a":"b"},"MinAvailable":"101%"}`:                           "invalid MinAvailable",
		`{"Labels":{"a":"b"},"MaxUnavailable":-1}`:                             "invalid MaxUnavailable",
		`{"Labels":{"a":"b"},"MaxUnavailable":1.5}`:                            "invalid MaxUnavailable",
		`{"Labels":{"a":"b"},"MinAvailable":[1]}`:                              "invalid bound [1]",
		`{"Labels":{"a":"b"},"MinAvailable":1,"Enforcement":"sometimes"}`:      "invalid Enforcement",
		`{"Labels":{"a":"b"},"MinAvailable":1,"Name":"other"}`:                 "the path names budget",
		`{"Labels":{"a":"b"},"MinAvailable":1,"Namespace":"other"}`:            "the request names namespace",
		`{"Labels":{"a":"b"},"MinAvailable":1,"Healthy":3}`:                    "Healthy",
		`{"Labels":{"` + strings.Repeat("a", 300) + `":"b"},"MinAvailable":1}`: "at most 256 bytes",
	} {
		resp, text := w.send("PUT", "/v1/budget/x", body)
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", truncate(body), resp.StatusCode, text, want)
		}
	}
	resp, text := w.send("PUT", "/v1/budget/x?namespace=*", `{"Labels":{"a":"b"},"MinAvailable":1}`)
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("with namespace=*: %d %s", resp.StatusCode, text)
	}
	if _, err := w.client.Budgets().Delete(t.Context(), "nothing", nil); !client.IsNotFound(err) {
		t.Errorf("a missing budget: %v", err)
	}
	if _, _, err := w.client.Budgets().Get(t.Context(), "nothing", nil); !client.IsNotFound(err) {
		t.Errorf("a missing budget: %v", err)
	}
	if list := w.server.Snapshot().Budgets(); len(list) != 0 {
		t.Errorf("%d budgets were created", len(list))
	}
}

// A token that is restricted to a namespace reads and changes only its budgets.
func TestBudgets_RestrictedToTheirNamespace(t *testing.T) {
	w, secrets := startSecured(t)
	ctx := t.Context()
	manager := w.connect(secrets[acl.Management])
	for _, ns := range []string{"default", "team"} {
		_, err := manager.Budgets().Put(ctx, &client.Budget{Namespace: ns, Name: "b", Labels: map[string]string{"in": ns}, MinAvailable: "1"}, nil)
		w.check(err)
	}
	made, err := manager.Operator().TokenCreate(ctx, &client.TokenCreateRequest{Name: "team", Roles: []string{"operate"}, Namespace: "team"})
	w.check(err)
	if made.Namespace != "team" {
		t.Errorf("the token has namespace %q", made.Namespace)
	}
	bound := w.connect(made.SecretID)
	list, _, err := bound.Budgets().List(ctx, nil)
	w.check(err)
	if len(list) != 1 || list[0].Namespace != "team" {
		t.Errorf("the restricted list is %+v", list)
	}
	for what, err := range map[string]error{
		"reading":  second(bound.Budgets().Get(ctx, "b", &client.QueryOptions{Namespace: "default"})),
		"deleting": first(bound.Budgets().Delete(ctx, "b", &client.WriteOptions{Namespace: "default"})),
		"writing":  first(bound.Budgets().Put(ctx, &client.Budget{Namespace: "default", Name: "b", Labels: map[string]string{"x": "y"}, MinAvailable: "0"}, nil)),
	} {
		if !client.HasCode(err, client.CodeForbidden) {
			t.Errorf("%s in another namespace: %v", what, err)
		}
	}
	if _, err := bound.Budgets().Delete(ctx, "b", nil); err != nil {
		t.Errorf("in its own namespace: %v", err)
	}
	if _, err := manager.Operator().TokenCreate(ctx, &client.TokenCreateRequest{Name: "x", Roles: []string{"read"}, Namespace: "a b"}); !client.HasCode(err, client.CodeInvalid) {
		t.Errorf("an invalid namespace: %v", err)
	}
	everything := fmt.Sprint(w.log.String())
	if strings.Contains(everything, made.SecretID) {
		t.Error("the log contains a secret")
	}
}

// A budget without labels limits the evictions in a window for the whole namespace.
func TestBudgets_LimitEvictionsPerWindow(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	budgets := w.client.Budgets()
	_, err := budgets.Put(ctx, &client.Budget{Name: "slowly", MaxEvictions: new(3), Window: time.Hour}, nil)
	w.check(err)
	b, _, err := budgets.Get(ctx, "slowly", nil)
	w.check(err)
	if *b.MaxEvictions != 3 || b.Window != time.Hour || b.Allowed != 3 || b.Evicted != 0 || b.Enforcement != client.EnforceStrict || b.Needed != 0 {
		t.Errorf("%+v", b.BudgetStub)
	}
	for want, bad := range map[string]*client.Budget{
		"the number must be 0 or more, and the window above 0": {Name: "b", MaxEvictions: new(3)},
		"Window requires MaxEvictions":                         {Name: "b", Labels: map[string]string{"app": "a"}, MinAvailable: "1", Window: time.Hour},
		"exactly one of minAvailable, maxUnavailable and":      {Name: "b", Labels: map[string]string{"app": "a"}, MinAvailable: "1", MaxEvictions: new(1), Window: time.Hour},
		"invalid MaxEvictions -1":                              {Name: "b", MaxEvictions: new(-1), Window: time.Hour},
	} {
		if _, err := budgets.Put(ctx, bad, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
