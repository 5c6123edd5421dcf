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

// labelledJob is a job whose group has a label.
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
		t.Errorf("before anything runs: %+v", b)
	}
	for _, a := range b.Allocations {
		if a.JobID != "web" {
			t.Errorf("an allocation of %s is under it", a.JobID)
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
	w.reportRunning() // how it stands changes, and the budget does not
	if b := <-answered; b == nil || b.Healthy != 3 || b.Allowed != 1 {
		t.Errorf("while it was watched: %+v", b)
	}
	list, _, err := budgets.List(ctx, nil)
	w.check(err)
	if len(list) != 2 || list[0].Name != "half" || list[0].Needed != 1 || list[0].Allowed != 2 || list[0].Enforcement != "bestEffort" || list[1].Allowed != 1 {
		t.Errorf("the list: %+v", list)
	}
	page, meta, err := budgets.List(ctx, &client.QueryOptions{PerPage: 1})
	w.check(err)
	if len(page) != 1 || meta.NextToken == "" {
		t.Errorf("a page of %d", len(page))
	}
	if list, _, err := budgets.List(ctx, &client.QueryOptions{Prefix: "we"}); err != nil || len(list) != 1 || list[0].Name != "web" {
		t.Errorf("by prefix: %+v, %v", list, err)
	}
}

// A strict budget holds back whom else a preemptor would evict, until it is gone.
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
		t.Error("the budget was overrun")
	}
	_, err = w.client.Budgets().Delete(ctx, "low", nil)
	w.check(err)
	again, err := w.client.Jobs().Evaluate(ctx, "high", nil)
	w.check(err)
	if e := w.awaitEval(again.EvalID); len(e.FailedTGAllocs) != 0 {
		t.Errorf("without the budget it finds no place: %+v", e.FailedTGAllocs)
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
		t.Errorf("in every namespace: %d %s", resp.StatusCode, text)
	}
	if _, err := w.client.Budgets().Delete(t.Context(), "nothing", nil); !client.IsNotFound(err) {
		t.Errorf("a budget that is not there: %v", err)
	}
	if _, _, err := w.client.Budgets().Get(t.Context(), "nothing", nil); !client.IsNotFound(err) {
		t.Errorf("a budget that is not there: %v", err)
	}
	if list := w.server.Snapshot().Budgets(); len(list) != 0 {
		t.Errorf("%d budgets were made", len(list))
	}
}

// Somebody bound to a namespace sees and changes the budgets of that one alone.
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
		t.Errorf("the token is of namespace %q", made.Namespace)
	}
	bound := w.connect(made.SecretID)
	list, _, err := bound.Budgets().List(ctx, nil)
	w.check(err)
	if len(list) != 1 || list[0].Namespace != "team" {
		t.Errorf("it sees %+v", list)
	}
	for what, err := range map[string]error{
		"reading":  second(bound.Budgets().Get(ctx, "b", &client.QueryOptions{Namespace: "default"})),
		"deleting": first(bound.Budgets().Delete(ctx, "b", &client.WriteOptions{Namespace: "default"})),
		"writing":  first(bound.Budgets().Put(ctx, &client.Budget{Namespace: "default", Name: "b", Labels: map[string]string{"x": "y"}, MinAvailable: "0"}, nil)),
	} {
		if !client.HasCode(err, client.CodeForbidden) {
			t.Errorf("%s elsewhere: %v", what, err)
		}
	}
	if _, err := bound.Budgets().Delete(ctx, "b", nil); err != nil {
		t.Errorf("its own: %v", err)
	}
	if _, err := manager.Operator().TokenCreate(ctx, &client.TokenCreateRequest{Name: "x", Roles: []string{"read"}, Namespace: "a b"}); !client.HasCode(err, client.CodeInvalid) {
		t.Errorf("a namespace that is none: %v", err)
	}
	everything := fmt.Sprint(w.log.String())
	if strings.Contains(everything, made.SecretID) {
		t.Error("a secret is in the log")
	}
}

// A budget may bound how many are evicted in a window, in all of a namespace.
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
