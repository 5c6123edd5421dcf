package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// A namespace is created, changed under a check, and deleted once nothing is in it. One
// that was not created is listed while it contains something.
func TestNamespaces_AreObjects(t *testing.T) {
	w := start(t)
	spaces := w.client.Namespaces()
	first, err := spaces.Put(t.Context(), &client.Namespace{Name: "team", Weight: new(3.0), Description: "a team"}, new(uint64(0)))
	w.check(err)
	_, err = spaces.Put(t.Context(), &client.Namespace{Name: "team"}, new(uint64(0)))
	if e := asError(err); e == nil || e.Code != client.CodeConflict {
		t.Errorf("created twice: %v", err)
	}
	_, err = spaces.Put(t.Context(), &client.Namespace{Name: "team", Description: "changed"}, &first.Index)
	w.check(err)
	_, err = spaces.Delete(t.Context(), "team", &first.Index)
	if e := asError(err); e == nil || e.Code != client.CodeConflict {
		t.Errorf("deleted at an old index: %v", err)
	}
	got, _, err := spaces.Get(t.Context(), "team", nil)
	w.check(err)
	if *got.Weight != 3 || got.Description != "changed" || got.CreateIndex != first.Index || got.ModifyIndex <= first.Index {
		t.Errorf("namespace %+v", got)
	}
	for _, c := range []struct{ path, body, says, hint string }{
		{"/v1/namespace/a%20b", `{}`, "invalid name", "choose another name"},
		{"/v1/namespace", `{"Weight": 2}`, "invalid name", "choose another name"},
		{"/v1/namespace/team", `{"Weight": 0}`, "0 is not a valid weight", "positive number"},
		{"/v1/namespace/team", `{"Weight": -1, "Description": "` + strings.Repeat("a", 300) + `"}`, "300 bytes: expected at most 256; -1 is not", "shorter description; write a positive"},
		{"/v1/namespace/team", `{"Name": "other"}`, "the path names namespace", ""},
		{"/v1/namespace/team", `{"Meta": {"a": "b"}}`, "unknown field: Meta", ""},
	} {
		resp, text := w.send("PUT", c.path, c.body)
		var e client.Error
		if err := json.Unmarshal([]byte(text), &e); err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(e.Message, c.says) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s %s: %d %s; want %q, hint %q", c.path, c.body, resp.StatusCode, text, c.says, c.hint)
		}
	}
	if text, _ := json.Marshal(listed(w)); string(text) != `["default 1 0","team 3 0"]` {
		t.Errorf("namespaces %s", text)
	}
	_, _, err = spaces.Get(t.Context(), "missing", nil)
	if !client.IsNotFound(err) {
		t.Errorf("missing namespace: %v", err)
	}
}

// Deletion is refused with everything that is in the namespace.
func TestNamespaces_DeletionListsObjects(t *testing.T) {
	w := start(t)
	spaces := w.client.Namespaces()
	_, err := spaces.Put(t.Context(), &client.Namespace{Name: "team"}, nil)
	w.check(err)
	job := &client.Job{ID: "web", Namespace: "team", TaskGroups: []*client.TaskGroup{{Name: "g", Tasks: []*client.Task{{Name: "t", Driver: "sim"}}}}}
	in := &client.WriteOptions{Namespace: "team"}
	answer, err := w.client.Jobs().Register(t.Context(), job, &client.RegisterOptions{WriteOptions: *in})
	w.check(err)
	if answer.Warnings != "" {
		t.Errorf("warnings for a created namespace: %q", answer.Warnings)
	}
	_, err = w.client.Budgets().Put(t.Context(), &client.Budget{Name: "b", Labels: map[string]string{"app": "x"}, MinAvailable: "1"}, in)
	w.check(err)
	_, err = spaces.Delete(t.Context(), "team", nil)
	e := asError(err)
	if e == nil || e.Code != client.CodeConflict || e.Message != "namespace team contains job web; disruption budget b" || e.Hint == "" {
		t.Fatalf("deletion of a namespace in use: %v %+v", err, e)
	}
	_, err = w.client.Jobs().Stop(t.Context(), "web", &client.StopOptions{WriteOptions: *in})
	w.check(err)
	_, err = w.client.Budgets().Delete(t.Context(), "b", in)
	w.check(err)
	_, err = spaces.Delete(t.Context(), "team", nil)
	w.check(err)
	_, err = spaces.Delete(t.Context(), "team", nil)
	if !client.IsNotFound(err) {
		t.Errorf("second deletion: %v", err)
	}
	_, err = spaces.Delete(t.Context(), "default", nil)
	if e := asError(err); e == nil || e.Code != client.CodeInvalid || e.Hint == "" {
		t.Errorf("deletion of default: %v", err)
	}
}

// A name that is not created and not in use may be mistyped. The second job in the same
// namespace shows that it is intended.
func TestNamespaces_RegistrationWarnsOfMistypedNames(t *testing.T) {
	w := start(t)
	_, err := w.client.Namespaces().Put(t.Context(), &client.Namespace{Name: "payments"}, nil)
	w.check(err)
	for _, c := range []struct{ id, namespace, want string }{
		{"a", "default", ""},
		{"a", "payments", ""},
		{"a", "paymnets", `did you mean payments?`},
		{"b", "paymnets", ""},
		{"a", "zzz", `namespace "zzz" was not created, and nothing else is in it`},
		{"planned", "xxx", `namespace "xxx" was not created, and nothing else is in it`},
	} {
		job := &client.Job{ID: c.id, Namespace: c.namespace, TaskGroups: []*client.TaskGroup{{Name: "g", Tasks: []*client.Task{{Name: "t", Driver: "sim"}}}}}
		o := client.WriteOptions{Namespace: c.namespace}
		plan, err := w.client.Jobs().Plan(t.Context(), job, &o)
		w.check(err)
		token := ""
		if c.id == "planned" {
			token = plan.PlanToken
		}
		answer, err := w.client.Jobs().Run(t.Context(), job, token, &client.RegisterOptions{WriteOptions: o})
		w.check(err)
		for _, got := range []string{plan.Warnings, answer.Warnings} {
			if !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%s/%s: warnings %q, want %q", c.namespace, c.id, got, c.want)
			}
		}
	}
	bound, err := w.client.Bindings().Put(t.Context(), &client.Binding{ID: "b", Namespace: "yyy", Replicas: new(1)}, nil)
	w.check(err)
	if !strings.Contains(strings.Join(bound.Warnings, "\n"), `namespace "yyy"`) {
		t.Errorf("warnings of a binding %q", bound.Warnings)
	}
}

// listed returns the namespaces with their weights and numbers of jobs.
func listed(w *fixture) (list []string) {
	all, _, err := w.client.Namespaces().List(w.t.Context(), nil)
	w.check(err)
	for _, n := range all {
		list = append(list, fmt.Sprintf("%s %v %d", n.Name, *n.Weight, n.Jobs))
	}
	return list
}

// asError returns the error of the API in err, or nil.
func asError(err error) *client.Error {
	e, _ := errors.AsType[*client.Error](err)
	return e
}

// An object whose writes can be checked can be deleted under the same check.
func TestRoutes_DeletesHaveTheChecksOfWrites(t *testing.T) {
	hasCheck := func(r route) bool {
		return slices.ContainsFunc(r.params, func(p param) bool { return p.name == "cas" })
	}
	checked := map[string]bool{}
	for _, r := range table() {
		if slices.Contains(r.methods, http.MethodPut) && hasCheck(r) {
			checked[r.pattern] = true
		}
	}
	if !checked["/v1/namespace/{name}"] {
		t.Fatalf("writes with a check: %v", checked)
	}
	for _, r := range table() {
		if slices.Contains(r.methods, http.MethodDelete) && checked[r.pattern] != hasCheck(r) {
			t.Errorf("DELETE %s has the parameter cas: %v, its writes: %v", r.pattern, hasCheck(r), checked[r.pattern])
		}
	}
}
