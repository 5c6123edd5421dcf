package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"
	"github.com/hashicorp/nomad/api/contexts"
)

// nomadPage is the page with the calls of Nomad's client and the commands that make
// them. TestNomadClient_CallsHaveDocumentedEffect writes it with -write.
const nomadPage = "../../docs/reference/nomad-api.md"

// A nomadCall is a call of Nomad's client that is served.
type nomadCall struct {
	effect string // differences from Nomad; "": as in Nomad
	run    func(t *nomadTour) error
}

// nomadTour makes the calls against one server, in the order of their names.
type nomadTour struct {
	*fixture
	c        *nomad.Client
	job      *nomad.Job
	alloc    *nomad.Allocation
	eval     string
	snapshot []byte
	requests atomic.Int64 // sent by c
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// check returns an error if a value of a response is wrong.
func expect(err error, ok bool, format string, args ...any) error {
	if err == nil && !ok {
		err = fmt.Errorf(format, args...)
	}
	return err
}

// nomadCalls holds the calls that are served. Every other call of these handles returns
// the error unsupported.
var nomadCalls = map[string]nomadCall{
	"Agent.Datacenter": {"", func(n *nomadTour) error {
		dc, err := n.c.Agent().Datacenter()
		return expect(err, dc == "dc1", "datacenter %q", dc)
	}},
	"Agent.Health": {"", func(n *nomadTour) error {
		h, err := n.c.Agent().Health()
		return expect(err, err == nil && h.Server != nil && h.Server.Ok && h.Client == nil, "health %+v", h)
	}},
	"Agent.Join": {"a server without gossip refuses", func(n *nomadTour) error {
		_, err := n.c.Agent().Join("127.0.0.1:1")
		return expectError(err, "gossip is disabled on this server")
	}},
	"Agent.Members": {"`Name` is the ID of the server; the tag `name` is the name that operators set", func(n *nomadTour) error {
		m, err := n.c.Agent().Members()
		if err != nil {
			return err
		}
		self := m.Members[0]
		for _, tag := range []string{"id", "role", "region", "dc", "build", "raft_vsn"} {
			if self.Tags[tag] == "" {
				return fmt.Errorf("no tag %s in %v", tag, self.Tags)
			}
		}
		// The command marks the leader by its address, which has no port in this test.
		leader, err := n.c.Status().RegionLeader(self.Tags["region"])
		return expect(err, self.Addr == leader && self.Tags["port"] == "" && self.Tags["id"] == "s1" && self.Tags["build"] == "0.0.0" && self.Status == "alive", "member %+v, leader %s", self, leader)
	}},
	"Agent.MembersOpts": {"", func(n *nomadTour) error {
		m, err := n.c.Agent().MembersOpts(&nomad.QueryOptions{Region: "global"})
		return expect(err, err == nil && len(m.Members) == 1, "members %+v", m)
	}},
	"Agent.NodeName": {"", func(n *nomadTour) error {
		name, err := n.c.Agent().NodeName()
		return expect(err, name == "s1", "name %q", name)
	}},
	"Agent.Region": {"", func(n *nomadTour) error {
		region, err := n.c.Agent().Region()
		return expect(err, region == "global", "region %q", region)
	}},
	"Agent.Reload": {"", func(n *nomadTour) error {
		return expectError(n.c.Agent().Reload(nil, nil), "no configuration to reload") // the process of the test has none
	}},
	"Agent.Self": {"", func(n *nomadTour) error {
		self, err := n.c.Agent().Self()
		if err != nil {
			return err
		}
		ui, _ := self.Config["UI"].(map[string]any)
		return expect(nil, self.Member.Name == "s1" && self.Stats["cede"]["leader"] == "true" && ui["ShowCLIHints"] == false, "self %+v", self)
	}},
	"AllocFS.Logs": {"served by the agent of the node; frames have no heartbeats", func(n *nomadTour) error {
		_, errs := n.c.AllocFS().Logs(n.alloc, false, "main", "stdout", "start", 0, nil, nil)
		return expectError(<-errs, "501") // the server of the test has no node; core/agent tests the frames
	}},
	"Allocations.Info": {"`TaskStates` are derived from the status of the allocation", func(n *nomadTour) error {
		a, _, err := n.c.Allocations().Info(n.alloc.ID, nil)
		if err != nil {
			return err
		}
		if stub := a.Stub(); stub.JobType != "service" || *a.Job.Version != 0 || a.NodeName == "" || a.Job.LookupTaskGroup(a.TaskGroup) == nil {
			return fmt.Errorf("allocation %+v of job %+v", a, a.Job) // the commands dereference them
		}
		s := a.TaskStates["main"]
		ok := s != nil && s.State == "running" && !s.StartedAt.IsZero() && len(s.Events) == 2 && s.Events[1].Type == nomad.TaskStarted
		return expect(nil, ok && *a.Job.ID == *n.job.ID && a.AllocatedResources.Tasks["main"].Cpu.CpuShares == 100 && *a.Resources.CPU == 100, "allocation %+v, task %+v", a, s)
	}},
	"Allocations.List": {"", func(n *nomadTour) error {
		list, _, err := n.c.Allocations().List(&nomad.QueryOptions{Namespace: "*"})
		return expect(err, len(list) > 0 && list[0].TaskStates["main"] != nil, "allocations %+v", list)
	}},
	"Allocations.PrefixList": {"", func(n *nomadTour) error {
		list, _, err := n.c.Allocations().PrefixList(n.alloc.ID[:8])
		return expect(err, len(list) == 1, "allocations %+v", list)
	}},
	"Allocations.Stop": {"", func(n *nomadTour) error {
		r, err := n.c.Allocations().Stop(n.alloc, nil)
		return expect(err, err == nil && r.EvalID != "", "%+v", r)
	}},
	"CSIVolumes.List": {"empty", func(n *nomadTour) error {
		list, _, err := n.c.CSIVolumes().List(nil)
		return expect(err, len(list) == 0, "volumes %+v", list)
	}},
	"CSIVolumes.PluginList": {"empty", func(n *nomadTour) error {
		list, _, err := n.c.CSIVolumes().PluginList("x")
		return expect(err, len(list) == 0, "volumes %+v", list)
	}},
	"HostVolumes.List": {"empty", func(n *nomadTour) error {
		list, _, err := n.c.HostVolumes().List(nil, nil)
		return expect(err, len(list) == 0, "volumes %+v", list)
	}},
	"Deployments.List": {"empty", func(n *nomadTour) error {
		list, _, err := n.c.Deployments().List(nil)
		return expect(err, len(list) == 0, "deployments %+v", list)
	}},
	"Deployments.PrefixList": {"empty", func(n *nomadTour) error {
		list, _, err := n.c.Deployments().PrefixList("a")
		return expect(err, len(list) == 0, "deployments %+v", list)
	}},
	"Evaluations.Allocations": {"", func(n *nomadTour) error {
		list, _, err := n.c.Evaluations().Allocations(n.alloc.EvalID, nil)
		return expect(err, len(list) > 0, "allocations %+v", list)
	}},
	"Evaluations.Delete": {"cancels pending and blocked evaluations; others are refused, and those that were cancelled remain visible", func(n *nomadTour) error {
		_, err := n.c.Evaluations().Delete([]string{n.eval}, nil)
		if err := expectError(err, n.eval+" of job tour is complete"); err != nil {
			return err
		}
		r, _, err := n.c.Jobs().Register(nomadJob("large", 50, 1, 100_000, 1), nil)
		if err != nil {
			return err
		}
		blocked := n.awaitNomadJob(n.c, r.EvalID).BlockedEval
		_, err = n.c.Evaluations().Delete([]string{blocked}, nil)
		_, _, stopErr := n.c.Jobs().Deregister("large", true, nil)
		return errors.Join(err, stopErr)
	}},
	"Evaluations.Info": {"", func(n *nomadTour) error {
		e, _, err := n.c.Evaluations().Info(n.eval, nil)
		return expect(err, err == nil && e.JobID == *n.job.ID, "evaluation %+v", e)
	}},
	"Evaluations.List": {"", func(n *nomadTour) error {
		list, _, err := n.c.Evaluations().List(nil)
		return expect(err, len(list) > 0, "evaluations %+v", list)
	}},
	"Evaluations.PrefixList": {"", func(n *nomadTour) error {
		list, _, err := n.c.Evaluations().PrefixList(n.eval[:8])
		return expect(err, len(list) == 1, "evaluations %+v", list)
	}},
	"EventStream.Stream": {"`Payload` also has the event of cede, as `Event`", func(n *nomadTour) error {
		ctx, cancel := context.WithTimeout(n.t.Context(), 20*time.Second)
		defer cancel()
		stream, err := n.c.EventStream().Stream(ctx, map[nomad.Topic][]string{nomad.TopicJob: {"gone"}}, 0, nil)
		if err != nil {
			return err
		}
		if _, _, err := n.c.Jobs().Register(nomadJob("gone", 50, 1, 10, 10), nil); err != nil {
			return err
		}
		if _, _, err := n.c.Jobs().Deregister("gone", true, nil); err != nil {
			return err
		}
		for list := range stream {
			for i := range list.Events {
				e := &list.Events[i]
				job, deleted, err := e.DeregisteredJob()
				if err != nil || job == nil || *job.ID != "gone" {
					return fmt.Errorf("event %s: job %+v, %w", e.Type, job, err)
				}
				if e.Type == "JobStopped" {
					return expect(nil, deleted && *job.Stop, "the event of a purge: deleted %t, %+v", deleted, job)
				}
			}
		}
		return errors.New("the stream ended")
	}},
	"Jobs.Allocations": {"", func(n *nomadTour) error {
		list, _, err := n.c.Jobs().Allocations(*n.job.ID, true, nil)
		return expect(err, len(list) > 0, "allocations %+v", list)
	}},
	"Jobs.Deployments": {"empty", func(n *nomadTour) error {
		list, _, err := n.c.Jobs().Deployments(*n.job.ID, true, nil)
		return expect(err, len(list) == 0, "deployments %+v", list)
	}},
	"Jobs.Deregister": {"", func(n *nomadTour) error {
		_, _, err := n.c.Jobs().Register(nomadJob("d1", 50, 1, 10, 10), nil)
		n.must(err)
		eval, _, err := n.c.Jobs().Deregister("d1", false, nil)
		return expect(err, eval != "", "no evaluation")
	}},
	"Jobs.DeregisterOpts": {"`EvalPriority`, `Global` and `NoShutdownDelay` are ignored", func(n *nomadTour) error {
		_, _, err := n.c.Jobs().Register(nomadJob("d2", 50, 1, 10, 10), nil)
		n.must(err)
		eval, _, err := n.c.Jobs().DeregisterOpts("d2", &nomad.DeregisterOptions{Purge: true}, nil)
		return expect(err, eval != "", "no evaluation")
	}},
	"Jobs.EnforceRegister": {"", func(n *nomadTour) error {
		_, _, err := n.c.Jobs().EnforceRegister(n.job, 3, nil)
		return expectError(err, "("+nomad.RegisterEnforceIndexErrPrefix)
	}},
	"Jobs.EvaluateWithOpts": {"`ForceReschedule` is ignored", func(n *nomadTour) error {
		eval, _, err := n.c.Jobs().EvaluateWithOpts(*n.job.ID, nomad.EvalOptions{}, nil)
		return expect(err, eval != "", "no evaluation")
	}},
	"Jobs.Evaluations": {"", func(n *nomadTour) error {
		list, _, err := n.c.Jobs().Evaluations(*n.job.ID, nil)
		return expect(err, len(list) > 0, "evaluations %+v", list)
	}},
	"Jobs.ForceEvaluate": {"", func(n *nomadTour) error {
		eval, _, err := n.c.Jobs().ForceEvaluate(*n.job.ID, nil)
		return expect(err, eval != "", "no evaluation")
	}},
	"Jobs.Info": {"", func(n *nomadTour) error {
		j, _, err := n.c.Jobs().Info(*n.job.ID, nil)
		return expect(err, err == nil && j.Stable != nil && *j.Status == "running" && j.Name != nil && j.Namespace != nil && j.SubmitTime != nil, "job %+v", j)
	}},
	"Jobs.LatestDeployment": {"none", func(n *nomadTour) error {
		d, _, err := n.c.Jobs().LatestDeployment(*n.job.ID, nil)
		return expect(err, d == nil, "deployment %+v", d)
	}},
	"Jobs.List": {"", func(n *nomadTour) error {
		list, _, err := n.c.Jobs().List(nil)
		return expect(err, len(list) > 0, "jobs %+v", list)
	}},
	"Jobs.ListOptions": {"", func(n *nomadTour) error {
		list, _, err := n.c.Jobs().ListOptions(&nomad.JobListOptions{Fields: &nomad.JobListFields{Meta: true}}, nil)
		return expect(err, len(list) > 0, "jobs %+v", list)
	}},
	"Jobs.ParseHCL": {"variables have the values of the file; the dialect of cede is accepted as well", func(n *nomadTour) error {
		j, err := n.c.Jobs().ParseHCL(nomadJobFile, true)
		return expect(err, err == nil && *j.ID == "p", "job %+v", j)
	}},
	"Jobs.ParseHCLOpts": {"", func(n *nomadTour) error {
		j, err := n.c.Jobs().ParseHCLOpts(&nomad.JobsParseRequest{JobHCL: nomadJobFile})
		return expect(err, err == nil && *j.ID == "p", "job %+v", j)
	}},
	"Jobs.Plan": {"`Diff` lists changed fields only", func(n *nomadTour) error {
		changed := nomadJob(*n.job.ID, 50, 3, 100, 100)
		changed.SetMeta("team", "x")
		p, _, err := n.c.Jobs().Plan(changed, true, nil)
		if err != nil {
			return err
		}
		if p.Diff == nil || p.Diff.Type != "Edited" || len(p.Diff.Fields) != 1 || p.Diff.Fields[0].Name != "Meta[team]" || len(p.Diff.TaskGroups) != 1 {
			return fmt.Errorf("difference %+v", p.Diff)
		}
		g := p.Diff.TaskGroups[0]
		return expect(nil, len(g.Fields) == 1 && g.Fields[0].Name == "Count" && g.Fields[0].Old == "1" && g.Fields[0].New == "3" && g.Updates["create"] == 2, "group %+v", g)
	}},
	"Jobs.PlanOpts": {"`PolicyOverride` is ignored", func(n *nomadTour) error {
		p, _, err := n.c.Jobs().PlanOpts(nomadJob("new", 50, 2, 100, 100), &nomad.PlanOptions{Diff: true}, nil)
		if err != nil || p.Diff == nil || p.Diff.Type != "Added" || len(p.Diff.TaskGroups) != 1 {
			return fmt.Errorf("plan %+v, %w", p, err)
		}
		g := p.Diff.TaskGroups[0]
		return expect(nil, g.Type == "Added" && len(g.Tasks) == 1 && slices.Equal(g.Tasks[0].Annotations, []string{"forces create"}) && g.Updates["create"] == 2, "group %+v", g)
	}},
	"Jobs.PrefixList": {"", func(n *nomadTour) error {
		list, _, err := n.c.Jobs().PrefixList("tou")
		return expect(err, len(list) == 1, "jobs %+v", list)
	}},
	"Jobs.Register": {"", func(n *nomadTour) error {
		r, _, err := n.c.Jobs().Register(n.job, nil)
		return expect(err, err == nil && r.JobModifyIndex > 0, "%+v", r)
	}},
	"Jobs.RegisterOpts": {"`PreserveCounts`, `EvalPriority` and `Submission` are ignored", func(n *nomadTour) error {
		r, _, err := n.c.Jobs().RegisterOpts(n.job, &nomad.RegisterOptions{Submission: &nomad.JobSubmission{Source: "x", Format: "hcl2"}}, nil)
		return expect(err, err == nil && r.JobModifyIndex > 0 && r.Warnings == "", "%+v", r)
	}},
	"Jobs.Revert": {"the last 6 versions are stored", func(n *nomadTour) error {
		_, _, err := n.c.Jobs().Register(nomadJob("reverted", 50, 1, 10, 10), nil)
		n.must(err)
		_, _, err = n.c.Jobs().Register(nomadJob("reverted", 50, 2, 10, 10), nil)
		n.must(err)
		if _, _, err := n.c.Jobs().Revert("reverted", 0, new(uint64(7)), nil, "", ""); err == nil {
			return errors.New("a wrong EnforcePriorVersion was accepted")
		}
		r, _, err := n.c.Jobs().Revert("reverted", 0, new(uint64(1)), nil, "", "")
		n.must(err)
		j, _, err := n.c.Jobs().Info("reverted", nil)
		return expect(err, r.EvalID != "" && *j.TaskGroups[0].Count == 1 && *j.Version == 2, "job %+v", j)
	}},
	"Jobs.Scale": {"scaling events are not stored", func(n *nomadTour) error {
		_, _, err := n.c.Jobs().Register(nomadJob("scaled", 50, 1, 10, 10), nil)
		n.must(err)
		r, _, err := n.c.Jobs().Scale("scaled", "app", new(3), "", false, nil, nil)
		n.must(err)
		j, _, err := n.c.Jobs().Info("scaled", nil)
		return expect(err, r.EvalID != "" && *j.TaskGroups[0].Count == 3, "job %+v", j)
	}},
	"Jobs.ScaleStatus": {"without events", func(n *nomadTour) error {
		s, _, err := n.c.Jobs().ScaleStatus(*n.job.ID, nil)
		return expect(err, err == nil && s.TaskGroups["app"].Desired == 1, "%+v", s)
	}},
	"Jobs.ScaleWithRequest": {"", func(n *nomadTour) error {
		// As the command does it.
		request := &nomad.ScalingRequest{
			Count: new(int64(2)), Target: map[string]string{"Job": "scaled", "Group": "app"}, Message: "submitted using the Nomad CLI",
		}
		w := &nomad.WriteOptions{Namespace: "default"}
		r, _, err := n.c.Jobs().ScaleWithRequest("scaled", request, w)
		n.must(err)
		j, _, err := n.c.Jobs().Info("scaled", nil)
		if err := expect(err, r.EvalID != "" && *j.TaskGroups[0].Count == 2, "job %+v", j); err != nil {
			return err
		}
		request.JobModifyIndex = 1
		_, _, err = n.c.Jobs().ScaleWithRequest("scaled", request, w)
		return expectError(err, "("+nomad.RegisterEnforceIndexErrPrefix)
	}},
	"Jobs.Summary": {"", func(n *nomadTour) error {
		s, _, err := n.c.Jobs().Summary(*n.job.ID, nil)
		return expect(err, err == nil && s.Summary["app"].Running > 0, "%+v", s)
	}},
	"Jobs.Validate": {"", func(n *nomadTour) error {
		v, _, err := n.c.Jobs().Validate(n.job, nil)
		return expect(err, err == nil && len(v.ValidationErrors) == 0, "%+v", v)
	}},
	"Jobs.Versions": {"`Stable` is always false", func(n *nomadTour) error {
		versions, diffs, _, err := n.c.Jobs().Versions("scaled", true, nil)
		n.must(err)
		return expect(nil, len(versions) == len(diffs)+1 && len(diffs) > 0 && diffs[0].Type == "Edited" && versions[0].Stable != nil, "%d versions, differences %+v", len(versions), diffs)
	}},
	"Jobs.VersionsOpts": {"without tags", func(n *nomadTour) error {
		versions, diffs, _, err := n.c.Jobs().VersionsOpts("scaled", &nomad.VersionsOptions{Diffs: true, DiffVersion: new(uint64)}, nil)
		n.must(err)
		return expect(nil, len(versions) == len(diffs) && diffs[len(diffs)-1].Type == "None", "%d versions, differences %+v", len(versions), diffs)
	}},
	"Namespaces.Delete": {"a namespace that contains a job, binding, budget or token is refused", deleteNomadNamespace},
	"Namespaces.Info":   {"", changeNomadNamespace},
	"Namespaces.List": {"", func(n *nomadTour) error {
		list, meta, err := n.c.Namespaces().List(nil)
		if err != nil || len(list) != 2 || list[0].Name != "team" || list[1].Name != "default" { // the client sorts by CreateIndex
			return fmt.Errorf("namespaces %+v, %w", list, err)
		}
		// A blocking query returns when its wait ends, not at once.
		begun := time.Now()
		_, again, err := n.c.Namespaces().List(&nomad.QueryOptions{WaitIndex: meta.LastIndex, WaitTime: 50 * time.Millisecond})
		return expect(err, again.LastIndex >= meta.LastIndex && time.Since(begun) >= 50*time.Millisecond, "the query did not block")
	}},
	"Namespaces.PrefixList": {"", func(n *nomadTour) error {
		list, _, err := n.c.Namespaces().PrefixList("def", nil)
		return expect(err, len(list) == 1, "namespaces %+v", list)
	}},
	"Namespaces.Register": {"the weight remains; `Meta`, `Quota` and `Capabilities` are refused", registerNomadNamespace},
	"Nodes.Allocations": {"", func(n *nomadTour) error {
		list, _, err := n.c.Nodes().Allocations("n1", nil)
		return expect(err, len(list) > 0 && list[0].Job != nil, "allocations %+v", list)
	}},
	"Nodes.CSIVolumes": {"empty", func(n *nomadTour) error {
		list, err := n.c.Nodes().CSIVolumes("n1", nil)
		return expect(err, len(list) == 0, "volumes %+v", list)
	}},
	"Nodes.Info": {"", func(n *nomadTour) error {
		node, _, err := n.c.Nodes().Info("n1", nil)
		return expect(err, err == nil && node.NodeResources.Cpu.CpuShares == 1000 && node.ReservedResources != nil, "node %+v", node)
	}},
	"Nodes.List": {"", func(n *nomadTour) error {
		list, _, err := n.c.Nodes().List(nil)
		return expect(err, len(list) == 1, "nodes %+v", list)
	}},
	"Nodes.MonitorDrain": {"", (*nomadTour).drain},
	"Nodes.PrefixList": {"", func(n *nomadTour) error {
		list, _, err := n.c.Nodes().PrefixList("n")
		return expect(err, len(list) == 1, "nodes %+v", list)
	}},
	"Nodes.PrefixListOpts": {"", func(n *nomadTour) error {
		list, _, err := n.c.Nodes().PrefixListOpts("n", nil)
		return expect(err, len(list) == 1, "nodes %+v", list)
	}},
	"Nodes.Purge": {"a node with running allocations is refused", func(n *nomadTour) error {
		_, _, err := n.c.Nodes().Purge("n1", nil)
		return expectError(err, "drain it first")
	}},
	"Nodes.ToggleEligibility": {"", func(n *nomadTour) error {
		_, err := n.c.Nodes().ToggleEligibility("n1", false, nil)
		n.must(err)
		_, err = n.c.Nodes().ToggleEligibility("n1", true, nil)
		return err
	}},
	"Nodes.UpdateDrain": {"allocations that have a place elsewhere move at once; the others stay until the deadline", func(n *nomadTour) error {
		_, err := n.c.Nodes().UpdateDrain("n1", &nomad.DrainSpec{Deadline: time.Hour, IgnoreSystemJobs: true}, false, nil)
		n.must(err)
		node, _, err := n.c.Nodes().Info("n1", nil)
		if s := node.DrainStrategy; err != nil || s == nil || !s.IgnoreSystemJobs || s.Deadline.Round(time.Second) != time.Hour || s.StartedAt.IsZero() {
			return fmt.Errorf("drain %+v, %w", node.DrainStrategy, err)
		}
		_, err = n.c.Nodes().UpdateDrain("n1", &nomad.DrainSpec{Deadline: math.MaxInt64}, false, nil)
		n.must(err)
		node, _, err = n.c.Nodes().Info("n1", nil)
		n.must(err)
		if s := node.DrainStrategy; s == nil || !s.ForceDeadline.After(time.Now()) || s.Deadline <= 0 {
			return fmt.Errorf("drain with the longest deadline: %+v", s)
		}
		_, err = n.c.Nodes().UpdateDrain("n1", nil, true, nil)
		return err
	}},
	"Nodes.UpdateDrainOpts": {"`Meta` is ignored", func(n *nomadTour) error {
		_, err := n.c.Nodes().UpdateDrainOpts("n1", &nomad.DrainOptions{MarkEligible: true}, nil)
		return err
	}},
	"Operator.AutopilotServerHealth": {"", func(n *nomadTour) error {
		h, _, err := n.c.Operator().AutopilotServerHealth(nil)
		return expect(err, err == nil && h.Healthy && len(h.Servers) == 1 && h.Servers[0].Leader && h.Leader == "s1", "%+v", h)
	}},
	"Operator.RaftGetConfiguration": {"", func(n *nomadTour) error {
		r, err := n.c.Operator().RaftGetConfiguration(nil)
		return expect(err, err == nil && len(r.Servers) == 1, "%+v", r)
	}},
	"Operator.RaftRemovePeerByAddress": {"", func(n *nomadTour) error {
		return expectError(n.c.Operator().RaftRemovePeerByAddress("10.0.0.1:1", nil), "gossip is disabled on this server")
	}},
	"Operator.RaftRemovePeerByID": {"", func(n *nomadTour) error {
		return expectError(n.c.Operator().RaftRemovePeerByID("x", nil), "gossip is disabled on this server")
	}},
	"Operator.SchedulerCASConfiguration": {"", func(n *nomadTour) error {
		r, _, err := n.c.Operator().SchedulerCASConfiguration(&nomad.SchedulerConfiguration{SchedulerAlgorithm: "binpack", ModifyIndex: 1 << 40}, nil)
		return expect(err, err == nil && !r.Updated, "%+v", r)
	}},
	"Operator.SchedulerGetConfiguration": {"", func(n *nomadTour) error {
		r, _, err := n.c.Operator().SchedulerGetConfiguration(nil)
		return expect(err, err == nil && r.SchedulerConfig.SchedulerAlgorithm == "binpack", "%+v", r)
	}},
	"Operator.SchedulerSetConfiguration": {"fields that Nomad does not have keep their value", func(n *nomadTour) error {
		r, _, err := n.c.Operator().SchedulerSetConfiguration(&nomad.SchedulerConfiguration{SchedulerAlgorithm: "binpack"}, nil)
		return expect(err, err == nil && r.Updated, "%+v", r)
	}},
	"Operator.Snapshot": {"the format is that of cede", func(n *nomadTour) error {
		r, err := n.c.Operator().Snapshot(nil)
		n.must(err)
		n.snapshot, err = io.ReadAll(r) // verifies the digest
		return expect(errors.Join(err, r.Close()), len(n.snapshot) > 0, "the snapshot is empty")
	}},
	"Operator.SnapshotRestore": {"only snapshots of cede", func(n *nomadTour) error {
		_, err := n.c.Operator().SnapshotRestore(bytes.NewReader(n.snapshot), nil)
		return err
	}},
	"Regions.List": {"one region", func(n *nomadTour) error {
		list, err := n.c.Regions().List()
		return expect(err, slices.Equal(list, []string{"global"}), "regions %v", list)
	}},
	"Scaling.ListPolicies": {"empty", func(n *nomadTour) error {
		list, _, err := n.c.Scaling().ListPolicies(nil)
		return expect(err, len(list) == 0, "policies %+v", list)
	}},
	"Search.PrefixSearch": {"", func(n *nomadTour) error {
		r, _, err := n.c.Search().PrefixSearch(n.alloc.ID[:6], contexts.All, nil)
		if err != nil || !slices.Equal(r.Matches[contexts.Allocs], []string{n.alloc.ID}) || len(r.Matches[contexts.Jobs]) > 0 {
			return fmt.Errorf("matches %+v, %w", r, err)
		}
		r, _, err = n.c.Search().PrefixSearch("tour", contexts.Jobs, nil)
		return expect(err, slices.Equal(r.Matches[contexts.Jobs], []string{"tour"}) && len(r.Matches) == 1, "matches %+v", r)
	}},
	"Status.Leader": {"", func(n *nomadTour) error {
		leader, err := n.c.Status().Leader()
		return expect(err, leader != "", "no leader")
	}},
	"Status.Peers": {"", func(n *nomadTour) error {
		peers, err := n.c.Status().Peers()
		return expect(err, len(peers) == 1, "peers %v", peers)
	}},
	"Status.RegionLeader": {"", func(n *nomadTour) error {
		leader, err := n.c.Status().RegionLeader("global")
		return expect(err, leader != "", "no leader")
	}},
	"System.GarbageCollect": {"", func(n *nomadTour) error { return n.c.System().GarbageCollect() }},
}

// nomadJobFile is a job file without resources.
const nomadJobFile = `
job "p" {
  group "g" {
    task "t" {
      driver = "sim"
    }
  }
}`

// localCalls send no request, or only call others.
var localCalls = []string{"Jobs.VersionByTag", "Nodes.Identity", "Nodes.Meta"}

// socketCalls open a web socket after requests that are served.
var socketCalls = []string{"Allocations.Exec", "Jobs.ActionExec"}

func expectError(err error, text string) error {
	if err == nil || !strings.Contains(err.Error(), text) {
		return fmt.Errorf("error %w does not contain %q", err, text)
	}
	return nil
}

// must ends the test if a preparation fails.
func (n *nomadTour) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// drain drains the only node. The allocation has no other place, so that the drain is
// complete only when its deadline has passed and the node has stopped the allocation.
func (n *nomadTour) drain() error {
	n.reportRunning()
	r, err := n.c.Nodes().UpdateDrain("n1", &nomad.DrainSpec{Deadline: 30 * time.Millisecond}, false, nil)
	n.must(err)
	ctx, cancel := context.WithTimeout(n.t.Context(), 20*time.Second)
	defer cancel()
	messages := n.c.Nodes().MonitorDrain(ctx, "n1", r.NodeModifyIndex, false)
	select {
	case m := <-messages:
		if strings.Contains(m.Message, "omplete") {
			return fmt.Errorf("the drain ended before its allocations: %s", m)
		}
	case <-time.After(100 * time.Millisecond):
	}
	n.waitFor("the allocations are stopped", func() bool {
		list, _, err := n.c.Nodes().Allocations("n1", nil)
		n.must(err)
		return !slices.ContainsFunc(list, func(a *nomad.Allocation) bool { return a.DesiredStatus == "run" })
	})
	n.reportStopped()
	complete := false
	for m := range messages {
		complete = complete || m.Message == "Drain complete for node n1"
	}
	if _, err := n.c.Nodes().UpdateDrain("n1", nil, true, nil); err != nil {
		return err
	}
	return expect(ctx.Err(), complete, "the drain was not reported as complete")
}

// Every call of Nomad's client is served, or returns the error unsupported. The page for
// users lists both, and the commands that make the calls.
func TestNomadClient_CallsHaveDocumentedEffect(t *testing.T) {
	w := start(t)
	n := &nomadTour{fixture: w, job: nomadJob("tour", 50, 1, 100, 100)}
	counted := *w.http
	counted.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		n.requests.Add(1)
		return w.http.Transport.RoundTrip(r)
	})
	c, err := nomad.NewClient(&nomad.Config{Address: w.url, HttpClient: &counted})
	n.must(err)
	n.c = c
	w.addNode("n1", 1000, 1000)
	r, _, err := n.c.Jobs().Register(n.job, nil)
	n.must(err)
	n.eval = r.EvalID
	w.awaitNomadJob(n.c, r.EvalID)
	w.reportRunning()
	list, _, err := n.c.Jobs().Allocations("tour", true, nil)
	n.must(err)
	n.alloc, _, err = n.c.Allocations().Info(list[0].ID, nil)
	n.must(err)

	unsupported := map[string][]string{}
	methods := nomadMethods(n.c)
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		call, served := nomadCalls[name]
		if name == "Nodes.MonitorDrain" || name == "Operator.SnapshotRestore" {
			continue // after the others
		}
		if served {
			if err := call.run(n); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if slices.Contains(localCalls, name) {
			continue
		}
		handle, method, _ := strings.Cut(name, ".")
		n.requests.Store(0)
		err := callBlindly(n, methods[name])
		refused := err != nil && strings.Contains(err.Error(), "501") && strings.Contains(err.Error(), `"Code":"unsupported"`)
		if n.requests.Load() > 0 && !refused && !slices.Contains(socketCalls, name) { // some calls reject the arguments before they send them
			t.Errorf("%s is neither in the table nor unsupported: %v", name, err)
		}
		unsupported[handle] = append(unsupported[handle], method)
	}
	for _, last := range []string{"Nodes.MonitorDrain", "Operator.SnapshotRestore"} {
		if err := nomadCalls[last].run(n); err != nil {
			t.Errorf("%s: %v", last, err)
		}
	}
	for name := range nomadCalls {
		if !methods[name].IsValid() {
			t.Errorf("%s is in the table, but not in Nomad's client", name)
		}
	}
	commands := nomadCommandCalls(t)
	checkNomadCommands(t, commands, methods)
	comparePage(t, nomadPage, nomadPageText(nomadClientVersion(t), commands, unsupported))
}

// comparePage compares a generated page with its file, or writes it with -write.
func comparePage(t *testing.T, file, text string) {
	t.Helper()
	if *write {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != text {
		t.Errorf("%s is out of date: run go generate ./core/api", file)
	}
}
