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

// bindingsPreempt has bindings evict whatever is of a lower priority.
func (w *world) bindingsPreempt() {
	w.t.Helper()
	conf, _, err := w.client.Scheduler().Get(w.t.Context(), nil)
	w.no(err)
	conf.PreemptionConfig.BindingSchedulerEnabled, conf.PriorityDelta = true, new(1)
	_, err = w.client.Scheduler().Set(w.t.Context(), conf, nil)
	w.no(err)
}

func (w *world) bindingIs(id, status string) (b *client.BindingStatus) {
	w.t.Helper()
	w.until(id+" is "+status, func() bool {
		var err error
		b, _, err = w.client.Bindings().Get(w.t.Context(), id, nil)
		w.no(err)
		return b.Status == status
	})
	return b
}

// A binding displaces another, and both sides say so; what waits is told why,
// cluster by cluster.
func TestBindings_SayWhomTheyDisplacedAndWhyTheyWait(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.bindingsPreempt()
	for id, units := range map[string]int64{"eu": 10, "us": 2} {
		_, err := w.client.Clusters().Put(ctx, &client.Cluster{ID: id, Capacity: map[string]int64{"units": units}, Attributes: map[string]string{"region": id}})
		w.no(err)
	}
	r, err := w.client.Bindings().Put(ctx, binding("low", 1, 8), nil)
	w.no(err)
	if r.EvalID == "" || r.BindingModifyIndex == 0 {
		t.Errorf("answer %+v", r)
	}
	if low := w.bindingIs("low", "bound"); low.Clusters["eu"] != 1 || low.Binding.Replicas == nil || *low.Binding.Replicas != 1 {
		t.Errorf("low is %+v", low)
	}
	high := binding("high", 5, 8)
	high.Constraints = []*client.Constraint{{LTarget: "region", Operand: "=", RTarget: "eu"}}
	_, err = w.client.Bindings().Put(ctx, high, nil)
	w.no(err)
	bound := w.bindingIs("high", "bound")
	if len(bound.Evictions) != 1 || bound.Evictions[0].BindingID != "low" || bound.Evictions[0].ByBindingID != "high" || bound.Evictions[0].ClusterID != "eu" {
		t.Errorf("high displaced %+v", bound.Evictions)
	}
	low := w.bindingIs("low", "pending")
	if len(low.Evictions) != 1 || low.Missing != 1 || len(low.Unbound) != 2 {
		t.Fatalf("low is %+v", low)
	}
	if !strings.Contains(low.Unbound[0].Reason, "units: 8 is needed, 2 is free") || low.NoEviction == "" && low.StatusDescription == "" {
		t.Errorf("why: %+v, %q, %q", low.Unbound[0], low.NoEviction, low.StatusDescription)
	}
	eu, _, err := w.client.Clusters().Get(ctx, "eu", nil)
	w.no(err)
	if eu.Free["units"] != 2 || eu.Assignments != 1 || eu.Status != "ready" || eu.Agent {
		t.Errorf("eu is %+v", eu)
	}
	if _, err := w.client.Clusters().Delete(ctx, "eu", false); !client.IsConflict(err) {
		t.Errorf("a cluster with assignments is deleted: %v", err)
	}
	list, _, err := w.client.Bindings().List(ctx, nil)
	w.no(err)
	if len(list) != 2 || list[0].ID != "high" || list[1].Status != "pending" {
		t.Errorf("list %+v", list)
	}
	_, err = w.client.Clusters().Delete(ctx, "us", true) // which has nobody look at the binding again
	w.no(err)
	low = w.bindingIs("low", "pending")
	list, _, err = w.client.Bindings().List(ctx, nil)
	w.no(err)
	if want := "0 of 1 cluster: 1 lacks units; eviction does not help: on 1 nothing has a priority of 0 or less"; low.StatusDescription != want || list[1].StatusDescription != low.StatusDescription {
		t.Errorf("it waits because %q, in the list %q, want %q", low.StatusDescription, list[1].StatusDescription, want)
	}
	_, err = w.client.Bindings().Stop(ctx, "high", true, nil)
	w.no(err)
	w.bindingIs("low", "bound")
	_, err = w.client.Bindings().Stop(ctx, "low", true, nil)
	w.no(err)
	w.bindingIs("low", "stopped")
}

// A blocking query for what a cluster shall run ends when that changes.
func TestClusters_AgentsAreToldAndTell(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	agent := w.client.MemberAgent()
	lease, err := agent.Register(ctx, "m1", &client.ClusterRegisterRequest{Capacity: map[string]int64{"units": 10}, Secret: memberSecret})
	w.no(err)
	if lease.HeartbeatTTL == 0 {
		t.Errorf("lease %+v", lease)
	}
	_, err = agent.Heartbeat(ctx, "m1", memberSecret, &client.ClusterHeartbeatRequest{Reported: map[string]int64{"units": 4}})
	w.no(err)
	none, meta, err := agent.Assignments(ctx, "m1", memberSecret, nil)
	w.no(err)
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
	w.no(err)
	w.bindingIs("web", "bound")
	list, _, err := agent.Assignments(ctx, "m1", memberSecret, nil)
	w.no(err)
	if len(list) != 1 || list[0].Replicas != 1 || list[0].Binding == nil || string(list[0].Binding.Template) != `{"groups":[]}` && string(list[0].Binding.Template) != `{"groups": []}` {
		t.Fatalf("assigned %+v", list)
	}
	if _, ok := <-told; !ok {
		t.Error("the agent was not told")
	}
	_, err = agent.Update(ctx, "m1", memberSecret, []client.AssignmentUpdate{{AssignmentID: list[0].ID, ClientStatus: "running", Ready: 1, Description: "up"}})
	w.no(err)
	if web := w.bindingIs("web", "bound"); web.Ready != 1 || web.Assignments[0].ClientDescription != "up" {
		t.Errorf("web is %+v", web.Assignments[0])
	}
	if _, err := agent.Update(ctx, "m1", "another secret", nil); !client.HasCode(err, client.CodeForbidden) {
		t.Errorf("a stranger: %v", err)
	}
	if _, err := agent.Update(ctx, "m1", memberSecret, []client.AssignmentUpdate{{AssignmentID: list[0].ID, ClientStatus: "lost"}}); !client.HasCode(err, client.CodeInvalid) {
		t.Errorf("a status that is not an agent's: %v", err)
	}
}

func TestBindings_SayAllThatIsWrong(t *testing.T) {
	w := start(t)
	resp, text := w.send("PUT", "/v1/binding/x", `{"Scope": "galaxy", "PreemptionPolicy": "always", "Priority": 5, "PriorityClass": "gold", "Resources": {"cpu": -1}}`)
	if resp.StatusCode != http.StatusBadRequest {
		t.Fatal(resp.StatusCode, text)
	}
	for _, want := range []string{"galaxy", "always", "exclude each other", "negative"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	for body, want := range map[string]string{`{"ID": "y"}`: "the body of", `{"Nothing": 1}`: "Nothing", `{"Namespace": "other"}`: "give namespace=other"} {
		if resp, text := w.send("PUT", "/v1/binding/x", body); resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", body, resp.StatusCode, text)
		}
	}
	if _, _, err := w.client.Bindings().Get(t.Context(), "nobody", nil); !client.IsNotFound(err) {
		t.Error(err)
	}
}

// Whoever submits jobs writes bindings, whoever operates tends clusters, and an
// agent speaks for its own cluster alone.
func TestBindings_RolesAndSecrets(t *testing.T) {
	w, secrets := secured(t)
	ctx := t.Context()
	as := func(role acl.Role) *client.Client { return w.connect(secrets[role]) }
	_, err := as(acl.Node).MemberAgent().Register(ctx, "m1", &client.ClusterRegisterRequest{Capacity: map[string]int64{"units": 10}, Secret: memberSecret})
	w.no(err)
	_, err = as(acl.Operate).Clusters().Put(ctx, &client.Cluster{ID: "m2", Capacity: map[string]int64{"units": 10}})
	w.no(err)
	_, err = as(acl.Submit).Bindings().Put(ctx, binding("web", 3, 2), nil)
	w.no(err)
	for what, err := range map[string]error{
		"submit puts a cluster":       first(as(acl.Submit).Clusters().Put(ctx, &client.Cluster{ID: "m3"})),
		"read puts a binding":         first(as(acl.Read).Bindings().Put(ctx, binding("b", 1, 1), nil)),
		"node reads without secret":   second(as(acl.Node).MemberAgent().Assignments(ctx, "m1", "another secret", nil)),
		"operate speaks for an agent": first(as(acl.Operate).MemberAgent().Heartbeat(ctx, "m1", memberSecret, &client.ClusterHeartbeatRequest{})),
	} {
		if !client.HasCode(err, client.CodeForbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, _, err = as(acl.Node).MemberAgent().Assignments(ctx, "m1", memberSecret, nil)
	w.no(err)
}
