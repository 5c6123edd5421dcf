package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/sdk/client"
)

// memberOf starts the agent of a member cluster in its own process.
func memberOf(t *testing.T, id, dir string, global, own *started) *started {
	t.Helper()
	return start(t, load(t, config.Sources{Flags: loopback(map[string]string{
		"data_dir": dir, "member.enabled": "true", "member.cluster": id, "member.servers": global.URL(),
		"member.cede.servers": own.URL(), "member.poll": "50ms", "log.level": "warn",
	})}))
}

// bind registers a binding.
func (s *started) bind(id string, priority, replicas int, template string) {
	s.t.Helper()
	quick := 100 * time.Millisecond
	b := &client.Binding{
		ID: id, Priority: &priority, PreemptionPolicy: "PreemptLowerPriority", Replicas: &replicas,
		Resources: map[string]int64{"cpu": 400, "memory": 100}, KillTimeout: &quick, Template: []byte(template),
	}
	if _, err := s.c.Bindings().Put(s.t.Context(), b, nil); err != nil {
		s.t.Fatal(err)
	}
}

// ready waits until this number of replicas of a binding is ready.
func (s *started) ready(id string, want int) *client.BindingStatus {
	s.t.Helper()
	var b *client.BindingStatus
	eventually(s.t, fmt.Sprintf("%d replicas of %s are ready", want, id), func() bool {
		var err error
		b, _, err = s.c.Bindings().Get(s.t.Context(), id, nil)
		return err == nil && b.Ready == want && b.Placed == want
	})
	return b
}

// inside returns the running allocations of a binding's jobs in a member cluster.
func (s *started) inside(binding string) (ids []string) {
	s.t.Helper()
	list, _, err := s.c.Allocations().List(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, a := range list {
		if strings.HasPrefix(a.JobID, "member-default-"+binding+"-") && a.ClientStatus == "running" {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// Two levels of servers: a binding of the upper level runs as a job of the lower one,
// frees capacity there before another binding uses it, and continues while its agent
// is stopped.
func TestMember_BindingsRunAsJobsAndFreeCapacity(t *testing.T) {
	t.Parallel()
	global := start(t, load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{"client.enabled": "false"})}))
	eu := start(t, load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{
		"client.resources.cpu": "1000", "client.resources.memory": "1000", "client.resources.disk": "1000",
	})}))
	dir := t.TempDir()
	agent := memberOf(t, "eu", dir, global, eu)
	eventually(t, "the cluster reports its capacity", func() bool {
		c, _, err := global.c.Clusters().Get(t.Context(), "eu", nil)
		return err == nil && c.Agent && c.Status == "ready" && c.Capacity["cpu"] == 1000
	})
	global.bind("low", 20, 2, "")
	global.ready("low", 2)
	before := eu.inside("low")
	if len(before) != 2 {
		t.Fatalf("allocations of low: %v", before)
	}

	agent.end()
	memberOf(t, "eu", dir, global, eu)
	global.bind("more", 20, 1, "") // pending, until the new agent's status is accepted
	eventually(t, "the other binding is pending", func() bool {
		b, _, err := global.c.Bindings().Get(t.Context(), "more", nil)
		return err == nil && b.Status == "pending" && len(b.Unbound) == 1
	})
	if _, err := global.c.Bindings().Stop(t.Context(), "more", true, nil); err != nil {
		t.Fatal(err)
	}
	if after := eu.inside("low"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("after a restart of the agent %v run, want %v", after, before)
	}

	global.bind("high", 60, 2, `{"type": "service", "groups": [{"name": "app", "tasks": [{"name": "main", "driver": "sim"}]}]}`)
	high := global.ready("high", 2)
	if left := eu.inside("low"); len(left) != 0 {
		t.Errorf("high runs, and %v still run", left)
	}
	if len(high.Evictions) != 1 || high.Evictions[0].BindingID != "low" || high.Evictions[0].Replicas != 2 {
		t.Errorf("evictions of high: %+v", high.Evictions)
	}
	low, _, err := global.c.Bindings().Get(t.Context(), "low", nil)
	if err != nil || low.Status != "pending" || len(low.Evictions) != 1 {
		t.Errorf("status of low: %+v, %v", low, err)
	}

	if _, err := global.c.Bindings().Stop(t.Context(), "high", true, nil); err != nil {
		t.Fatal(err)
	}
	global.ready("low", 2)
	if left := eu.inside("high"); len(left) != 0 {
		t.Errorf("high was stopped, and %v still run", left)
	}
}

// Capacity that the cluster's own jobs use is not offered to bindings.
func TestMember_OffersCapacityThatOwnJobsDoNotUse(t *testing.T) {
	t.Parallel()
	global := start(t, load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{"client.enabled": "false"})}))
	eu := start(t, load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{"client.resources.memory": "1000", "client.resources.cpu": "1000"})}))
	eu.register(job("own", 50, 1, 950, "sim", nil))
	eu.await("own", "running")
	memberOf(t, "eu", t.TempDir(), global, eu)
	eventually(t, "the cluster reports its free capacity", func() bool {
		c, _, err := global.c.Clusters().Get(t.Context(), "eu", nil)
		return err == nil && c.Capacity["memory"] == 1000 && c.Free["memory"] == 50
	})
	global.bind("web", 20, 1, "")
	eventually(t, "no capacity is free", func() bool {
		b, _, err := global.c.Bindings().Get(t.Context(), "web", nil)
		return err == nil && b.Status == "pending" && strings.Contains(b.StatusDescription, "memory")
	})
	if _, err := eu.c.Jobs().Stop(t.Context(), "own", nil); err != nil {
		t.Fatal(err)
	}
	global.ready("web", 1)
}
