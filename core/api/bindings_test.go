package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/sdk/client"
)

const memberSecret = "the secret of a member cluster"

func binding(id string, priority int, units int64) *client.Binding {
	quick := 10 * time.Millisecond
	return &client.Binding{
		ID: id, Priority: &priority, PreemptionPolicy: "PreemptLowerPriority", KillTimeout: &quick,
		Resources: map[string]int64{"units": units},
	}
}

// enableBindingPreemption allows bindings to evict any lower priority.
func (w *fixture) enableBindingPreemption() {
	w.t.Helper()
	conf, _, err := w.client.Scheduler().Get(w.t.Context(), nil)
	w.check(err)
	conf.PreemptionConfig.BindingSchedulerEnabled, conf.PriorityDelta = true, new(1)
	_, err = w.client.Scheduler().Set(w.t.Context(), conf, nil)
	w.check(err)
}

func (w *fixture) awaitBinding(id, status string) (b *client.BindingStatus) {
	w.t.Helper()
	w.waitFor(id+" is "+status, func() bool {
		var err error
		b, _, err = w.client.Bindings().Get(w.t.Context(), id, nil)
		w.check(err)
		return b.Status == status
	})
	return b
}

// If a binding evicts another, both report it. A pending binding reports the reasons
// for each cluster.
func TestBindings_ReportEvictionsAndPendingReasons(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.enableBindingPreemption()
	for id, units := range map[string]int64{"eu": 10, "us": 2} {
		_, err := w.client.Clusters().Put(ctx, &client.Cluster{ID: id, Capacity: map[string]int64{"units": units}, Attributes: map[string]string{"region": id}})
		w.check(err)
	}
	r, err := w.client.Bindings().Put(ctx, binding("low", 1, 8), nil)
	w.check(err)
	if r.EvalID == "" || r.BindingModifyIndex == 0 {
		t.Errorf("response %+v", r)
	}
	if low := w.awaitBinding("low", "bound"); low.Clusters["eu"] != 1 || low.Binding.Replicas == nil || *low.Binding.Replicas != 1 {
		t.Errorf("low is %+v", low)
	}
	high := binding("high", 5, 8)
	high.Constraints = []*client.Constraint{{LTarget: "region", Operand: "=", RTarget: "eu"}}
	_, err = w.client.Bindings().Put(ctx, high, nil)
	w.check(err)
	bound := w.awaitBinding("high", "bound")
	if len(bound.Evictions) != 1 || bound.Evictions[0].BindingID != "low" || bound.Evictions[0].ByBindingID != "high" || bound.Evictions[0].ClusterID != "eu" {
		t.Errorf("high evicted %+v", bound.Evictions)
	}
	low := w.awaitBinding("low", "pending")
	if len(low.Evictions) != 1 || low.Missing != 1 || len(low.Unbound) != 2 {
		t.Fatalf("low is %+v", low)
	}
	if !strings.Contains(low.Unbound[0].Reason, "units: 8 required, 2 free") || low.NoEviction == "" && low.StatusDescription == "" {
		t.Errorf("reasons: %+v, %q, %q", low.Unbound[0], low.NoEviction, low.StatusDescription)
	}
	eu, _, err := w.client.Clusters().Get(ctx, "eu", nil)
	w.check(err)
	if eu.Free["units"] != 2 || eu.Assignments != 1 || eu.Status != "ready" || eu.Agent {
		t.Errorf("eu is %+v", eu)
	}
	if _, err := w.client.Clusters().Delete(ctx, "eu", false); !client.IsConflict(err) {
		t.Errorf("deleting a cluster with assignments: %v", err)
	}
	list, _, err := w.client.Bindings().List(ctx, nil)
	w.check(err)
	if len(list) != 2 || list[0].ID != "high" || list[1].Status != "pending" {
		t.Errorf("list %+v", list)
	}
	_, err = w.client.Clusters().Delete(ctx, "us", true) // triggers no new evaluation of the binding
	w.check(err)
	low = w.awaitBinding("low", "pending")
	list, _, err = w.client.Bindings().List(ctx, nil)
	w.check(err)
	if want := "0 of 1 cluster: 1 lacks units; eviction does not help: on 1 nothing has a priority of 0 or less"; low.StatusDescription != want || list[1].StatusDescription != low.StatusDescription {
		t.Errorf("pending reason %q, in the list %q, want %q", low.StatusDescription, list[1].StatusDescription, want)
	}
	_, err = w.client.Bindings().Stop(ctx, "high", true, nil)
	w.check(err)
	w.awaitBinding("low", "bound")
	_, err = w.client.Bindings().Stop(ctx, "low", true, nil)
	w.check(err)
	w.awaitBinding("low", "stopped")
}

// A blocking query for the assignments of a cluster returns when they change.
func TestClusters_AgentReceivesAndReportsAssignments(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	agent := w.client.MemberAgent()
	lease, err := agent.Register(ctx, "m1", &client.ClusterRegisterRequest{Capacity: map[string]int64{"units": 10}, Secret: memberSecret})
	w.check(err)
	if lease.HeartbeatTTL == 0 {
		t.Errorf("lease %+v", lease)
	}
	_, err = agent.Heartbeat(ctx, "m1", memberSecret, &client.ClusterHeartbeatRequest{Reported: map[string]int64{"units": 4}})
	w.check(err)
	none, meta, err := agent.Assignments(ctx, "m1", memberSecret, nil)
	w.check(err)
	if len(none) != 0 {
		t.Errorf("assigned %+v", none)
	}
	told := make(chan []*client.Assignment, 1)
	go func() {
		defer close(told)
		list, _, err := agent.Assignments(ctx, "m1", memberSecret, &client.QueryOptions{Index: meta.LastIndex, Wait: 20 * time.Second})
		if err == nil {
			told <- list
		}
	}()
	b := binding("web", 3, 2)
	b.Template = []byte(`{"groups": []}`)
	_, err = w.client.Bindings().Put(ctx, b, nil)
	w.check(err)
	w.awaitBinding("web", "bound")
	list, _, err := agent.Assignments(ctx, "m1", memberSecret, nil)
	w.check(err)
	if len(list) != 1 || list[0].Replicas != 1 || list[0].Binding == nil || string(list[0].Binding.Template) != `{"groups":[]}` && string(list[0].Binding.Template) != `{"groups": []}` {
		t.Fatalf("assigned %+v", list)
	}
	if _, ok := <-told; !ok {
		t.Error("the agent received no update")
	}
	_, err = agent.Update(ctx, "m1", memberSecret, []client.AssignmentUpdate{{AssignmentID: list[0].ID, ClientStatus: "running", Ready: 1, Description: "up"}})
	w.check(err)
	if web := w.awaitBinding("web", "bound"); web.Ready != 1 || web.Assignments[0].ClientDescription != "up" {
		t.Errorf("web is %+v", web.Assignments[0])
	}
	if _, err := agent.Update(ctx, "m1", "another secret", nil); !client.HasCode(err, client.CodeForbidden) {
		t.Errorf("another secret: %v", err)
	}
	if _, err := agent.Update(ctx, "m1", memberSecret, []client.AssignmentUpdate{{AssignmentID: list[0].ID, ClientStatus: "lost"}}); !client.HasCode(err, client.CodeInvalid) {
		t.Errorf("a status that agents may not set: %v", err)
	}
	_, err = w.client.Bindings().Stop(ctx, "web", false, nil)
	w.check(err)
	var a *client.Assignment
	w.waitFor("the assignment is withdrawn", func() bool {
		list, _, err := w.client.Bindings().Assignments(ctx, "web", nil)
		w.check(err)
		a = list[0]
		return a.DesiredStatus == "stop"
	})
	if a.StopTime == 0 || a.EndTime != 0 || a.KillDeadline <= a.StopTime {
		t.Errorf("stopping: stop %d, deadline %d, end %d", a.StopTime, a.KillDeadline, a.EndTime)
	}
}

func TestBindings_ReportAllProblems(t *testing.T) {
	w := start(t)
	resp, text := w.send("PUT", "/v1/binding/x", `{"Scope": "galaxy", "PreemptionPolicy": "always", "Priority": 5, "PriorityClass": "gold", "Resources": {"cpu": -1}}`)
	if resp.StatusCode != http.StatusBadRequest {
		t.Fatal(resp.StatusCode, text)
	}
	for _, want := range []string{"galaxy", "always", "mutually exclusive", "negative"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in %s", want, text)
		}
	}
	for body, want := range map[string]string{`{"ID": "y"}`: "the body names", `{"Nothing": 1}`: "Nothing", `{"Namespace": "other"}`: "set namespace=other"} {
		if resp, text := w.send("PUT", "/v1/binding/x", body); resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", body, resp.StatusCode, text)
		}
	}
	if _, _, err := w.client.Bindings().Get(t.Context(), "nobody", nil); !client.IsNotFound(err) {
		t.Error(err)
	}
}

// The role submit permits writing bindings, the role operate permits managing
// clusters, and an agent accesses only its own cluster.
func TestBindings_RolesAndSecrets(t *testing.T) {
	w, secrets := startSecured(t)
	ctx := t.Context()
	as := func(role acl.Role) *client.Client { return w.connect(secrets[role]) }
	_, err := as(acl.Node).MemberAgent().Register(ctx, "m1", &client.ClusterRegisterRequest{Capacity: map[string]int64{"units": 10}, Secret: memberSecret})
	w.check(err)
	_, err = as(acl.Operate).Clusters().Put(ctx, &client.Cluster{ID: "m2", Capacity: map[string]int64{"units": 10}})
	w.check(err)
	_, err = as(acl.Submit).Bindings().Put(ctx, binding("web", 3, 2), nil)
	w.check(err)
	for what, err := range map[string]error{
		"submit puts a cluster":     first(as(acl.Submit).Clusters().Put(ctx, &client.Cluster{ID: "m3"})),
		"read puts a binding":       first(as(acl.Read).Bindings().Put(ctx, binding("b", 1, 1), nil)),
		"node reads without secret": second(as(acl.Node).MemberAgent().Assignments(ctx, "m1", "another secret", nil)),
		"operate renews a lease":    first(as(acl.Operate).MemberAgent().Heartbeat(ctx, "m1", memberSecret, &client.ClusterHeartbeatRequest{})),
	} {
		if !client.HasCode(err, client.CodeForbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, _, err = as(acl.Node).MemberAgent().Assignments(ctx, "m1", memberSecret, nil)
	w.check(err)
}
