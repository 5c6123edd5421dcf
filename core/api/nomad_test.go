package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"github.com/cede-scheduler/cede/sdk/client"
)

// nomadClient returns a client of Nomad's public package.
func (w *fixture) nomadClient() *nomad.Client {
	w.t.Helper()
	c, err := nomad.NewClient(&nomad.Config{Address: w.url, HttpClient: w.http})
	w.check(err)
	return c
}

// nomadJob returns a job as users of Nomad's package build it.
func nomadJob(id string, priority, count, cpu, memory int) *nomad.Job {
	task := nomad.NewTask("main", "sim").SetConfig("run_for", "1h").Require(&nomad.Resources{CPU: &cpu, MemoryMB: &memory})
	group := nomad.NewTaskGroup("app", count).AddTask(task)
	return nomad.NewServiceJob(id, id, "global", priority).AddDatacenter("dc1").AddTaskGroup(group)
}

// awaitNomadJob waits until an evaluation is complete.
func (w *fixture) awaitNomadJob(c *nomad.Client, id string) *nomad.Evaluation {
	w.t.Helper()
	var e *nomad.Evaluation
	w.waitFor("evaluation "+id+" is complete", func() bool {
		var err error
		e, _, err = c.Evaluations().Info(id, nil)
		w.check(err)
		return e.Status != "pending"
	})
	return e
}

// Nomad's public Go client registers and plans jobs, reads both sides of an eviction,
// and stops the jobs.
func TestNomadClient_RunsJobThatPreempts(t *testing.T) {
	w := start(t)
	c := w.nomadClient()
	w.addNode("n1", 1000, 1000)

	r, wm, err := c.Jobs().Register(nomadJob("low", 20, 2, 400, 400), nil)
	w.check(err)
	if r.EvalID == "" || r.JobModifyIndex == 0 || wm.LastIndex == 0 {
		t.Fatalf("registered: %+v, %+v", r, wm)
	}
	if e := w.awaitNomadJob(c, r.EvalID); e.Status != "complete" || e.JobID != "low" || e.TriggeredBy != "job-register" || e.CreateTime == 0 {
		t.Errorf("evaluation %+v", e)
	}
	w.reportRunning()

	set, _, err := c.Operator().SchedulerSetConfiguration(&nomad.SchedulerConfiguration{
		SchedulerAlgorithm: nomad.SchedulerAlgorithmBinpack, PreemptionConfig: nomad.PreemptionConfig{ServiceSchedulerEnabled: true},
	}, nil)
	w.check(err)
	got, _, err := c.Operator().SchedulerGetConfiguration(nil)
	w.check(err)
	if !set.Updated || !got.SchedulerConfig.PreemptionConfig.ServiceSchedulerEnabled || got.SchedulerConfig.PreemptionConfig.BatchSchedulerEnabled {
		t.Errorf("configuration %+v, %+v", set, got.SchedulerConfig)
	}

	high := nomadJob("high", 90, 1, 500, 500)
	plan, _, err := c.Jobs().Plan(high, true, nil)
	w.check(err)
	if plan.Annotations == nil || len(plan.Annotations.PreemptedAllocs) == 0 || plan.Annotations.PreemptedAllocs[0].JobID != "low" {
		t.Fatalf("plan %+v", plan.Annotations)
	}
	if u := plan.Annotations.DesiredTGUpdates["app"]; u == nil || u.Place != 1 {
		t.Errorf("updates %+v", u)
	}
	r, _, err = c.Jobs().Register(high, nil)
	w.check(err)
	w.awaitNomadJob(c, r.EvalID)

	victim, winner := w.nomadEviction(c)
	if victim.DesiredStatus != "evict" || victim.PreemptedByAllocation != winner.ID {
		t.Errorf("victim %s: %s by %s", victim.ID, victim.DesiredStatus, victim.PreemptedByAllocation)
	}
	if !slices.Contains(winner.PreemptedAllocations, victim.ID) || winner.Job == nil || *winner.Job.ID != "high" || *winner.Job.Priority != 90 {
		t.Errorf("winner %+v", winner)
	}
	if w := victim.AllocatedResources.Tasks["main"]; w == nil || w.Memory.MemoryMB != 400 {
		t.Errorf("resources %+v", victim.AllocatedResources)
	}
	list, _, err := c.Allocations().List(&nomad.QueryOptions{Params: map[string]string{"resources": "true"}})
	w.check(err)
	for _, a := range list {
		if a.AllocatedResources == nil || a.AllocatedResources.Tasks["main"] == nil {
			t.Errorf("%s is listed without its resources: %+v", a.ID, a.AllocatedResources)
		}
	}
	// The native client returns the same.
	ours, _, err := w.client.Allocations().Get(t.Context(), winner.ID, nil)
	w.check(err)
	if !slices.Equal(ours.PreemptedAllocs, winner.PreemptedAllocations) {
		t.Errorf("PreemptedAllocs %v", ours.PreemptedAllocs)
	}

	d, _, err := c.Jobs().Deregister("high", true, nil)
	w.check(err)
	w.awaitNomadJob(c, d)
	w.nomadReads(c)
}

// nomadEviction returns the victim and the preemptor from Nomad's lists.
func (w *fixture) nomadEviction(c *nomad.Client) (victim, winner *nomad.Allocation) {
	w.t.Helper()
	list, _, err := c.Jobs().Allocations("low", true, nil)
	w.check(err)
	at := slices.IndexFunc(list, func(a *nomad.AllocationListStub) bool { return a.PreemptedByAllocation != "" })
	if at < 0 {
		w.t.Fatalf("no allocation of low was evicted: %+v", list)
	}
	victim, _, err = c.Allocations().Info(list[at].ID, nil)
	w.check(err)
	winner, _, err = c.Allocations().Info(victim.PreemptedByAllocation, nil)
	w.check(err)
	all, _, err := c.Allocations().List(nil)
	w.check(err)
	if len(all) < 3 {
		w.t.Errorf("%d allocations", len(all))
	}
	return victim, winner
}

// nomadReads covers the remaining reads of jobs.
func (w *fixture) nomadReads(c *nomad.Client) {
	t := w.t
	jobs, qm, err := c.Jobs().List(nil)
	w.check(err)
	if len(jobs) == 0 || qm.LastIndex == 0 || !qm.KnownLeader || jobs[len(jobs)-1].ID != "low" || jobs[len(jobs)-1].Type != "service" {
		t.Errorf("jobs %+v, %+v", jobs, qm)
	}
	info, _, err := c.Jobs().Info("low", nil)
	w.check(err)
	if *info.Priority != 20 || *info.TaskGroups[0].Count != 2 || *info.TaskGroups[0].Tasks[0].Resources.CPU != 400 || *info.JobModifyIndex == 0 {
		t.Errorf("job %+v", info)
	}
	versions, _, _, err := c.Jobs().Versions("low", false, nil)
	w.check(err)
	evals, _, err := c.Jobs().Evaluations("low", nil)
	w.check(err)
	list, _, err := c.Evaluations().List(nil)
	w.check(err)
	summary, _, err := c.Jobs().Summary("low", nil)
	w.check(err)
	if len(versions) != 1 || len(evals) == 0 || len(list) < len(evals) || summary.JobID != "low" {
		t.Errorf("%d versions, %d evaluations of %d, summary %+v", len(versions), len(evals), len(list), summary)
	}
	placed, _, err := c.Evaluations().Allocations(evals[len(evals)-1].ID, nil)
	w.check(err)
	if len(placed) == 0 {
		t.Error("the first evaluation placed nothing")
	}
	if _, _, err := c.Jobs().Info("nothing", nil); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a missing job: %v", err)
	}
}

func TestNomadClient_ManagesNodes(t *testing.T) {
	w := start(t)
	c := w.nomadClient()
	w.addNode("n1", 1000, 1000)
	w.addNode("n2", 1000, 1000)
	w.register(job("web", 50, 1, 100, 100))

	nodes, _, err := c.Nodes().List(nil)
	w.check(err)
	slices.SortFunc(nodes, func(a, b *nomad.NodeListStub) int { return strings.Compare(a.ID, b.ID) })
	if len(nodes) != 2 || nodes[0].ID != "n1" || nodes[0].Status != "ready" || nodes[0].SchedulingEligibility != "eligible" {
		t.Fatalf("nodes %+v", nodes)
	}
	n, _, err := c.Nodes().Info("n1", nil)
	w.check(err)
	if n.NodeResources.Memory.MemoryMB != 1000 || n.NodeClass != "small" || n.Attributes["kernel.name"] != "linux" {
		t.Errorf("node %+v", n)
	}
	if _, err = c.Nodes().ToggleEligibility("n1", false, nil); err != nil {
		t.Fatal(err)
	}
	if n, _, _ = c.Nodes().Info("n1", nil); n.SchedulingEligibility != "ineligible" || n.Drain {
		t.Errorf("node %+v", n)
	}
	if _, err = c.Nodes().UpdateDrain("n1", &nomad.DrainSpec{Deadline: time.Hour}, false, nil); err != nil {
		t.Fatal(err)
	}
	if n, _, _ = c.Nodes().Info("n1", nil); !n.Drain {
		t.Error("the node is not draining")
	}
	if _, err = c.Nodes().UpdateDrain("n1", nil, true, nil); err != nil {
		t.Fatal(err)
	}
	if n, _, _ = c.Nodes().Info("n1", nil); n.Drain || n.SchedulingEligibility != "eligible" {
		t.Errorf("node %+v", n)
	}
	total := 0
	for _, id := range []string{"n1", "n2"} {
		list, _, err := c.Nodes().Allocations(id, nil)
		w.check(err)
		for _, a := range list {
			if a.Job == nil || len(a.Job.TaskGroups[0].Tasks) != 1 {
				t.Errorf("allocation without its tasks: %+v", a)
			}
		}
		total += len(list)
	}
	if total == 0 {
		t.Error("no node has an allocation")
	}
}

func TestNomadClient_ListsServers(t *testing.T) {
	w := start(t)
	c := w.nomadClient()
	leader, err := c.Status().Leader()
	w.check(err)
	peers, err := c.Status().Peers()
	w.check(err)
	if leader == "" || !slices.Equal(peers, []string{leader}) {
		t.Errorf("leader %q of %v", leader, peers)
	}
	members, err := c.Agent().Members()
	w.check(err)
	self, err := c.Agent().Self()
	w.check(err)
	if len(members.Members) != 1 || members.ServerRegion != "global" || self.Member.Name != "s1" || self.Stats["cede"]["leader"] != "true" {
		t.Errorf("members %+v, self %+v", members, self)
	}
	region, err := c.Agent().Region()
	w.check(err)
	name, err := c.Agent().NodeName()
	w.check(err)
	if region != "global" || name != "s1" {
		t.Errorf("region %q, name %q", region, name)
	}
	raft, err := c.Operator().RaftGetConfiguration(nil)
	w.check(err)
	if len(raft.Servers) != 1 || !raft.Servers[0].Leader || !raft.Servers[0].Voter {
		t.Errorf("raft %+v", raft.Servers)
	}
}

// Nomad's client receives the health of the node if one runs in the process, and the port of
// the address that the leader is listed with.
func TestNomadClient_ReadsHealthOfNodeAndPort(t *testing.T) {
	var node atomic.Pointer[client.AgentHealth]
	w := start(t, func(c *Config) {
		c.Process.NodeHealth = node.Load
		c.Process.Members = func() []Member {
			return []Member{{Name: "s1", Address: "10.0.0.1:4648", Status: "alive", Tags: map[string]string{"raft": "10.0.0.1:4647"}}}
		}
	})
	c := w.nomadClient()
	h, err := c.Agent().Health()
	if w.check(err); h.Client != nil || !h.Server.Ok {
		t.Errorf("health without a node: %+v", h)
	}
	node.Store(&client.AgentHealth{Ok: true, Message: "ok"})
	h, err = c.Agent().Health()
	if w.check(err); h.Client == nil || !h.Client.Ok {
		t.Errorf("health with a node: %+v", h)
	}
	node.Store(&client.AgentHealth{Message: "the node has not started yet"})
	if h, err = c.Agent().Health(); err == nil && (h.Client == nil || h.Client.Ok) {
		t.Errorf("health with a node that has not started: %+v, %v", h, err)
	}
	m, err := c.Agent().Members()
	w.check(err)
	if self := m.Members[0]; self.Addr != "10.0.0.1" || self.Port != 4648 || self.Tags["port"] != "4647" {
		t.Errorf("member %+v", self)
	}
}

func TestNomadClient_ReadsEventStream(t *testing.T) {
	w := start(t, func(c *Config) { c.Limits.Beat = 20 * time.Millisecond })
	c := w.nomadClient()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	stream, err := c.EventStream().Stream(ctx, map[nomad.Topic][]string{nomad.TopicJob: {"web"}, nomad.TopicNode: nil}, 0, nil)
	w.check(err)
	w.addNode("n1", 1000, 1000)
	w.register(job("other", 50, 1, 10, 10))
	w.register(job("web", 50, 1, 100, 100))
	var nodes, jobs int
	for jobs == 0 || nodes == 0 {
		events, ok := <-stream
		if !ok || events.Err != nil {
			t.Fatalf("the stream ended: %+v", events)
		}
		for _, e := range events.Events {
			switch e.Topic {
			case nomad.TopicNode:
				n, err := e.Node()
				w.check(err)
				if n == nil || n.ID != "n1" {
					t.Errorf("node %+v", n)
				}
				nodes++
			case nomad.TopicJob:
				j, err := e.Job()
				w.check(err)
				if e.Key != "web" || j == nil || *j.ID != "web" {
					t.Errorf("job %q: %+v", e.Key, j)
				}
				jobs++
			default:
				t.Errorf("unexpected topic %s", e.Topic)
			}
		}
	}
}

// Every field of a Nomad job that has no effect is reported in a warning.
func TestNomadClient_ReceivesWarningsForIgnoredFields(t *testing.T) {
	w := start(t)
	c := w.nomadClient()
	j := nomadJob("web", 50, 1, 100, 100)
	attempts := 3
	j.TaskGroups[0].RestartPolicy = &nomad.RestartPolicy{Attempts: &attempts}
	j.TaskGroups[0].Services = []*nomad.Service{{Name: "web"}}
	j.Update = &nomad.UpdateStrategy{Canary: &attempts}
	r, _, err := c.Jobs().Register(j, nil)
	w.check(err)
	for _, name := range []string{"Job.Update is", "Job.TaskGroups[0].RestartPolicy is", "Job.TaskGroups[0].Services is"} {
		if !strings.Contains(r.Warnings, name) {
			t.Errorf("no warning about %s: %q", name, r.Warnings)
		}
	}
	if strings.Contains(r.Warnings, "Job.ID ") || strings.Contains(r.Warnings, "Periodic") {
		t.Errorf("warnings about empty fields: %q", r.Warnings)
	}
	bad := nomadJob("bad", 50, 1, 100, 100)
	bad.TaskGroups[0].Tasks[0].Driver = "docker"
	v, _, err := c.Jobs().Validate(bad, nil)
	w.check(err)
	if len(v.ValidationErrors) == 0 || v.Error == "" {
		t.Errorf("an unknown driver was accepted: %+v", v)
	}
	if _, _, err := c.Jobs().Register(bad, nil); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("registered: %v", err)
	}
}

// Bodies of searches and scalings are validated. Only a scaling event, which is valid
// in Nomad, is unsupported.
func TestNomad_ValidatesSearchAndScale(t *testing.T) {
	w := start(t)
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/v1/search", `{"Prefix":"` + strings.Repeat("x", maxPrefix+1) + `"}`, http.StatusBadRequest, "invalid Prefix of 257 bytes"},
		{"/v1/search", `{"Context":"planets"}`, http.StatusBadRequest, "unknown context"},
		{"/v1/search", `{"Prefix":"web","Contxt":"jobs"}`, http.StatusBadRequest, "Contxt"},
		{"/v1/search", `{"Prefix":"web","Context":"jobs","AllowStale":false,"WaitTime":0}`, http.StatusOK, "Matches"},
		{"/v1/job/web/scale", `{}`, http.StatusBadRequest, "Count is required"},
		{"/v1/job/web/scale", `{"Count":-1}`, http.StatusBadRequest, "invalid Count -1"},
		{"/v1/job/web/scale", `{"Count":1,"Target":{"Job":"other"}}`, http.StatusBadRequest, "the body names"},
		{"/v1/job/web/scale", `{"Message":"full","Error":true}`, http.StatusNotImplemented, "scaling events"},
		{"/v1/job/web/scale", `{"Count":1,"Message":"full","Target":{"Job":"web"}}`, http.StatusNotFound, "no job"},
	} {
		resp, text := w.send("PUT", c.path, c.body)
		if resp.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %.80s: %d %s", c.path, c.body, resp.StatusCode, text)
		}
	}
}
