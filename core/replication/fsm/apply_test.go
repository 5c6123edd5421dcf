package fsm_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/replication/fsm"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// refuses applies a command that must be refused with a code and a text, and leave
// the state unchanged apart from its index.
func refuses(t *testing.T, s *server, code, text string, c replication.Command) {
	t.Helper()
	before := snapshot.Hash(s.Snapshot())
	r := s.Do(t, c)
	if r.Err == nil || r.Err.Code != code || !strings.Contains(r.Err.Message, text) {
		t.Fatalf("%T: refused with %v, want %s: ...%s...", c, r.Err, code, text)
	}
	if snapshot.Hash(s.Snapshot()) != before {
		t.Fatalf("%T was refused and changed the state", c)
	}
	if s.Snapshot().Index() != s.Index {
		t.Fatalf("%T was refused and the state is at index %d, want %d", c, s.Snapshot().Index(), s.Index)
	}
}

// withJob returns a server with nodes n0 and n1, and the job web at index 2.
func withJob(t *testing.T) *server {
	t.Helper()
	s := newServer()
	s.MustDo(t, &replication.RegisterNodes{Nodes: []*model.Node{replicationtest.Node("n0"), replicationtest.Node("n1")}})
	s.MustDo(t, &replication.RegisterJob{Job: replicationtest.WebJob(50), Eval: replicationtest.Eval("e1", replicationtest.WebKey)})
	return s
}

func TestRegisterJob_NewVersionOnlyIfTheSpecificationChanged(t *testing.T) {
	s := withJob(t)
	first := s.Store.Snapshot().Job(replicationtest.WebKey)
	if first.Version != 0 || first.ModifyIndex != 2 || first.SubmitTime != 1000 {
		t.Errorf("version %d at %d, submitted %d", first.Version, first.ModifyIndex, first.SubmitTime)
	}
	again := s.MustDo(t, &replication.RegisterJob{Job: replicationtest.WebJob(50), Eval: replicationtest.Eval("e2", replicationtest.WebKey)})
	sn := s.Store.Snapshot()
	if sn.Job(replicationtest.WebKey) != first || sn.DirtyIndex(replicationtest.WebKey) != 3 || len(again.Evals) != 1 {
		t.Error("an unchanged job has a new version, or was not marked dirty")
	}
	s.MustDo(t, &replication.RegisterJob{Job: replicationtest.WebJob(60)})
	j := s.Store.Snapshot().Job(replicationtest.WebKey)
	if j.Version != 1 || j.CreateIndex != 2 || j.ModifyIndex != 4 || j.SubmitTime != 1000 {
		t.Errorf("version %d, created %d, modified %d, submitted %d", j.Version, j.CreateIndex, j.ModifyIndex, j.SubmitTime)
	}
	s.MustDo(t, &replication.StopJob{Key: replicationtest.WebKey})
	if j := s.Store.Snapshot().Job(replicationtest.WebKey); !j.Stopped || j.Version != 2 {
		t.Errorf("stopped %t at version %d", j.Stopped, j.Version)
	}
	s.MustDo(t, &replication.RegisterJob{Job: replicationtest.WebJob(60)})
	if j := s.Store.Snapshot().Job(replicationtest.WebKey); j.Stopped || j.Version != 3 {
		t.Error("registering a stopped job does not start it")
	}
	if got := len(s.Store.Snapshot().JobVersions(replicationtest.WebKey)); got != 4 {
		t.Errorf("%d versions", got)
	}
}

func TestRegisterJob_RefusesFailedChecks(t *testing.T) {
	s := withJob(t)
	other := replicationtest.WebJob(50)
	other.ID = "other"
	refuses(t, s, replication.CodeConflict, "already exists (Enforcing job modify index 0: it is at index 2)", &replication.RegisterJob{Job: replicationtest.WebJob(1), Check: new(uint64(0))})
	refuses(t, s, replication.CodeConflict, "was changed (Enforcing job modify index 1: it is at index 2)", &replication.RegisterJob{Job: replicationtest.WebJob(1), Check: new(uint64(1))})
	refuses(t, s, replication.CodeConflict, "does not exist", &replication.RegisterJob{Job: other, Check: new(uint64(7))})
	refuses(t, s, replication.CodeInvalid, "namespace and ID are required", &replication.RegisterJob{Job: &model.Job{ID: "x"}})
	refuses(t, s, replication.CodeInvalid, "want job", &replication.RegisterJob{Job: other, Eval: replicationtest.Eval("e9", replicationtest.WebKey)})
	refuses(t, s, replication.CodeInvalid, "is for job default/web", &replication.RegisterJob{Job: other, Eval: replicationtest.Eval("e1", other.Key())})
	wide := replicationtest.WebJob(1)
	wide.Groups[0].Resources = model.Resources{}
	for i := range 20 {
		wide.Groups[0].Resources[fmt.Sprint("r", i)] = 1
	}
	refuses(t, s, replication.CodeInvalid, "16 resource names", &replication.RegisterJob{Job: wide})
	s.MustDo(t, &replication.RegisterJob{Job: replicationtest.WebJob(1), Check: new(uint64(2))})
	s.MustDo(t, &replication.RegisterJob{Job: other, Check: new(uint64(0))})
	refuses(t, s, replication.CodeNotFound, "job default/missing not found", &replication.StopJob{Key: model.JobKey{Namespace: "default", ID: "missing"}})
	refuses(t, s, replication.CodeConflict, "was changed", &replication.StopJob{Key: replicationtest.WebKey, Check: new(uint64(2))})
	s.MustDo(t, &replication.StopJob{Key: replicationtest.WebKey, Purge: true, Eval: replicationtest.Eval("e3", replicationtest.WebKey)})
	if s.Store.Snapshot().Job(replicationtest.WebKey) != nil {
		t.Error("a purged job exists")
	}
}

func TestApplyPlans_PlacesTheReferencedVersion(t *testing.T) {
	s := withJob(t)
	j := s.Store.Snapshot().Job(replicationtest.WebKey)
	s.MustDo(t, &replication.RegisterJob{Job: replicationtest.WebJob(60)})
	r := s.MustDo(t, &replication.ApplyPlans{Batch: batchOf(j, placement(j, "a0", "n0"), placement(j, "a1", "n1"))})
	if len(r.Dropped) > 0 {
		t.Fatalf("dropped %v", r.Dropped)
	}
	a := s.Store.Snapshot().Alloc("a0")
	if a.Job != j || a.Group != j.Groups[0] || a.CreateTime != 77 || a.CreateIndex != 4 {
		t.Errorf("allocation %+v", a)
	}
	// A repetition, as after an unknown outcome, changes nothing.
	r = s.MustDo(t, &replication.ApplyPlans{Batch: batchOf(j, placement(j, "a0", "n0"))})
	if len(r.Dropped) != 1 || s.Store.Snapshot().Alloc("a0") != a {
		t.Error("an existing placement was written again")
	}
	for version := range int32(8) {
		s.MustDo(t, &replication.RegisterJob{Job: replicationtest.WebJob(10 + version)})
	}
	// A version that the job no longer retains is found through its allocations.
	r = s.MustDo(t, &replication.ApplyPlans{Batch: batchOf(j, placement(j, "a2", "n0"))})
	if len(r.Dropped) > 0 || s.Store.Snapshot().Alloc("a2").Job != j {
		t.Error("the version of a running allocation is not found")
	}
	gone := *j
	gone.ModifyIndex = 3
	r = s.MustDo(t, &replication.ApplyPlans{Batch: batchOf(&gone, placement(&gone, "a3", "n0"))})
	if len(r.Dropped) != 1 || s.Store.Snapshot().DirtyIndex(replicationtest.WebKey) != s.Index {
		t.Error("a placement of a deleted version was written, or its job was not marked dirty")
	}
}

// If a member of a cohort ends, the other members may be evicted, on their nodes.
func TestUpdateAllocs_FreesTheNodesOfTheCohort(t *testing.T) {
	s := withJob(t)
	whole := replicationtest.WebJob(10)
	whole.ID, whole.AllOrNone = "whole", true
	s.MustDo(t, &replication.RegisterJob{Job: whole})
	whole = s.Store.Snapshot().Job(whole.Key())
	s.MustDo(t, &replication.ApplyPlans{Batch: batchOf(whole, placement(whole, "a", "n0"), placement(whole, "b", "n1"))})
	r := s.MustDo(t, &replication.UpdateAllocs{Updates: []apply.ClientUpdate{{AllocID: "a", Status: model.ClientFailed}}})
	if !slices.Equal(r.Freed, []string{"n0", "n1"}) {
		t.Errorf("freed %v", r.Freed)
	}
}

func TestApplyPlans_ReportsFreedNodesAndFollowUpEvaluations(t *testing.T) {
	s := withJob(t)
	low := replicationtest.WebJob(10)
	low.ID = "low"
	low.Groups[0].Labels = map[string]string{"a": "b"}
	s.MustDo(t, &replication.RegisterJob{Job: low})
	low = s.Store.Snapshot().Job(low.Key())
	r := s.MustDo(t, &replication.ApplyPlans{Batch: batchOf(low, placement(low, "v", "n1"))})
	if !slices.Equal(r.Placed, []string{"n1"}) {
		t.Errorf("placed on %v", r.Placed)
	}
	web := s.Store.Snapshot().Job(replicationtest.WebKey)
	r = s.MustDo(t, &replication.ApplyPlans{Batch: batchOf(web, placement(web, "a", "n1", "v"))})
	if !slices.Equal(r.Freed, []string{"n1"}) || len(r.Placed) > 0 {
		t.Errorf("freed %v, placed on %v", r.Freed, r.Placed)
	}
	if len(r.Evals) != 1 || r.Evals[0].JobID != "low" || r.Evals[0].TriggeredBy != model.TriggerPreemption {
		t.Errorf("evaluations %v", r.Evals)
	}
	r = s.MustDo(t, &replication.UpdateAllocs{Updates: []apply.ClientUpdate{{AllocID: "a", Status: model.ClientFailed, EvictedBy: "pressure"}}})
	if !slices.Equal(r.Freed, []string{"n1"}) || len(r.Evals) != 1 {
		t.Errorf("freed %v, evaluations %v", r.Freed, r.Evals)
	}
	if got := s.Store.Snapshot().Alloc("a").ClientText; got != "evicted by its node: pressure" {
		t.Errorf("text %q", got)
	}
}

// A confirmed plan is written with its job, all of it or nothing.
func TestRegisterJob_WithPlanIsAllOrNone(t *testing.T) {
	s := withJob(t)
	low := replicationtest.WebJob(10)
	low.ID = "low"
	s.MustDo(t, &replication.RegisterJob{Job: low})
	low = s.Store.Snapshot().Job(low.Key())
	s.MustDo(t, &replication.ApplyPlans{Batch: batchOf(low, placement(low, "v", "n1"))})
	confirm := func(groups ...model.CommitGroup) replication.Command {
		j := replicationtest.WebJob(90)
		for _, g := range groups {
			for _, a := range g.Placements {
				a.Job, a.Group = j, j.Groups[0]
			}
		}
		return &replication.RegisterJob{Job: j, Eval: replicationtest.Eval("e5", replicationtest.WebKey), Batch: batchOf(j, groups...)}
	}
	any := replicationtest.WebJob(90)
	refuses(t, s, replication.CodeConflict, "node n1 lacks cpu", confirm(placement(any, "b0", "n0"), placement(any, "b1", "n1")))
	refuses(t, s, replication.CodeConflict, "allocation gone to be evicted is not running", confirm(placement(any, "b1", "n1", "gone")))
	refuses(t, s, replication.CodeConflict, "node n9 no longer exists", confirm(placement(any, "b0", "n0"), placement(any, "b1", "n9")))
	refuses(t, s, replication.CodeConflict, "allocation v already exists", confirm(placement(any, "v", "n1", "v")))
	refuses(t, s, replication.CodeConflict, "to be stopped is not running", confirm(model.CommitGroup{Stops: []model.Stop{{AllocID: "x"}}}))
	s.MustDo(t, &replication.ChangeNodes{IDs: []string{"n0"}, Change: apply.NodeChange{Drain: new(true)}})
	refuses(t, s, replication.CodeConflict, "node n0 is ineligible", confirm(placement(any, "b0", "n0")))
	r := s.MustDo(t, confirm(placement(any, "b1", "n1", "v")))
	sn := s.Store.Snapshot()
	j := sn.Job(replicationtest.WebKey)
	if a := sn.Alloc("b1"); a == nil || a.Job != j || j.ModifyIndex != s.Index || j.Version != 1 {
		t.Errorf("placed %+v of version %d", a, j.Version)
	}
	if sn.Alloc("v").Live() || len(r.Evals) != 2 {
		t.Errorf("the victim is running, or evaluations %v", r.Evals)
	}
}

func TestIdempotencyKey_RepeatsTheResultAndRefusesAnotherRequest(t *testing.T) {
	s := withJob(t)
	e := &replication.Entry{Time: 5, Key: "k", Hash: [32]byte{1}, Command: &replication.RegisterJob{Job: replicationtest.WebJob(70), Eval: replicationtest.Eval("e7", replicationtest.WebKey)}}
	first := s.Apply(t, e)
	again := s.Apply(t, e)
	if first.Err != nil || again.Err != nil || first.Replayed || !again.Replayed || again.Index != first.Index {
		t.Fatalf("first %+v, again %+v", first, again)
	}
	if len(again.Evals) != 1 || again.Evals[0] != s.Store.Snapshot().Eval("e7") {
		t.Errorf("evaluations %v", again.Evals)
	}
	if j := s.Store.Snapshot().Job(replicationtest.WebKey); j.Version != 1 || s.Store.Snapshot().DirtyIndex(replicationtest.WebKey) != first.Index {
		t.Error("the request was applied twice")
	}
	other := s.Apply(t, &replication.Entry{Time: 5, Key: "k", Hash: [32]byte{2}, Command: &replication.StopJob{Key: replicationtest.WebKey}})
	if other.Err == nil || other.Err.Code != replication.CodeConflict || s.Store.Snapshot().Job(replicationtest.WebKey).Stopped {
		t.Errorf("another request under the key: %+v", other)
	}
	// A refusal is stored too.
	bad := &replication.Entry{Time: 6, Key: "bad", Hash: [32]byte{3}, Command: &replication.DeleteToken{Accessor: "x"}}
	s.Apply(t, bad)
	if r := s.Apply(t, bad); !r.Replayed || r.Err == nil || r.Err.Code != replication.CodeNotFound {
		t.Errorf("again: %+v", r)
	}
	// The key expires after a day.
	e.Time += state.IdempotencyWindow + 1
	if r := s.Apply(t, e); r.Replayed {
		t.Error("the key has not expired after a day")
	}
}

func TestWriteEvals_FinalEvaluationsStayFinal(t *testing.T) {
	s := withJob(t)
	done := replicationtest.Eval("e1", replicationtest.WebKey)
	done.Status = model.EvalComplete
	s.MustDo(t, &replication.WriteEvals{Evals: []*model.Evaluation{done}})
	r := s.MustDo(t, &replication.WriteEvals{Evals: []*model.Evaluation{replicationtest.Eval("e1", replicationtest.WebKey)}})
	if len(r.Evals) != 0 || s.Store.Snapshot().Eval("e1").Status != model.EvalComplete {
		t.Error("a complete evaluation is pending again")
	}
	refuses(t, s, replication.CodeInvalid, "duplicate evaluation", &replication.WriteEvals{Evals: []*model.Evaluation{replicationtest.Eval("x", replicationtest.WebKey), replicationtest.Eval("x", replicationtest.WebKey)}})
	refuses(t, s, replication.CodeInvalid, "ID, namespace and job are required", &replication.WriteEvals{Evals: []*model.Evaluation{{}}})
}

func TestRegisterNodes_RetainsOperatorSettings(t *testing.T) {
	s := withJob(t)
	s.MustDo(t, &replication.ChangeNodes{IDs: []string{"n0"}, Change: apply.NodeChange{Drain: new(true), Ineligible: new(true)}})
	n := replicationtest.Node("n0")
	n.SecretHash = [32]byte{1}
	r := s.MustDo(t, &replication.RegisterNodes{Nodes: []*model.Node{n}})
	if n := s.Store.Snapshot().Node("n0"); !n.Drain || !n.Ineligible || len(r.Freed) > 0 {
		t.Error("a registration ended a drain")
	}
	thief := replicationtest.Node("n0")
	thief.SecretHash = [32]byte{2}
	refuses(t, s, replication.CodeConflict, "another secret", &replication.RegisterNodes{Nodes: []*model.Node{thief}})
	refuses(t, s, replication.CodeNotFound, "node missing not found", &replication.ChangeNodes{IDs: []string{"missing"}})
	refuses(t, s, replication.CodeNotFound, "node missing not found", &replication.DeleteNodes{IDs: []string{"missing"}})
	r = s.MustDo(t, &replication.ChangeNodes{IDs: []string{"n0"}, Change: apply.NodeChange{Drain: new(false), Ineligible: new(false)}})
	if !slices.Equal(r.Freed, []string{"n0"}) {
		t.Errorf("freed %v", r.Freed)
	}
}

// A node that leaves takes its domain out of hard spreads, which may unblock evaluations.
func TestNodes_AreReportedWhenTheyLeave(t *testing.T) {
	for _, tt := range []struct {
		name    string
		command replication.Command
	}{
		{"down", &replication.ChangeNodes{IDs: []string{"n0"}, Change: apply.NodeChange{Status: new(model.NodeDown)}}},
		{"drain", &replication.ChangeNodes{IDs: []string{"n0"}, Change: apply.NodeChange{Drain: new(true)}}},
		{"ineligible", &replication.ChangeNodes{IDs: []string{"n0"}, Change: apply.NodeChange{Ineligible: new(true)}}},
		{"deleted", &replication.DeleteNodes{IDs: []string{"n0"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := withJob(t)
			if r := s.MustDo(t, tt.command); !slices.Equal(r.Left, []string{"n0"}) || len(r.Freed) > 0 {
				t.Errorf("left %v, freed %v", r.Left, r.Freed)
			}
			if s.Store.Snapshot().Node("n0") == nil {
				return
			}
			if r := s.MustDo(t, &replication.ChangeNodes{IDs: []string{"n0"}, Change: apply.NodeChange{Ineligible: new(true)}}); len(r.Left) > 0 {
				t.Errorf("left %v, and the node was not eligible", r.Left)
			}
		})
	}
}

func TestCollect_DeletesOnlyTerminalObjects(t *testing.T) {
	s := withJob(t)
	batch := replicationtest.WebJob(50)
	batch.ID, batch.Type = "batch", model.JobBatch
	s.MustDo(t, &replication.RegisterJob{Job: batch})
	web, batch := s.Store.Snapshot().Job(replicationtest.WebKey), s.Store.Snapshot().Job(batch.Key())
	s.MustDo(t, &replication.ApplyPlans{Batch: batchOf(web, placement(web, "w", "n0"))})
	s.MustDo(t, &replication.ApplyPlans{Batch: batchOf(batch, placement(batch, "b", "n1"))})
	s.MustDo(t, &replication.UpdateAllocs{Updates: []apply.ClientUpdate{{AllocID: "b", Status: model.ClientComplete}}})
	all := &replication.Collect{
		Evals: []string{"e1"}, Allocs: []string{"w", "b"}, Jobs: []model.JobKey{replicationtest.WebKey}, Nodes: []string{"n0", "n1"},
	}
	s.MustDo(t, all)
	sn := s.Store.Snapshot()
	if sn.Alloc("w") == nil || sn.Eval("e1") == nil || sn.Job(replicationtest.WebKey) == nil || sn.NodeCount() != 2 {
		t.Error("something that has not ended was deleted")
	}
	if sn.Alloc("b") == nil {
		t.Error("a completed allocation was deleted while its job exists: it would run again")
	}
	s.MustDo(t, &replication.Collect{Jobs: []model.JobKey{batch.Key()}})
	if sn := s.Store.Snapshot(); sn.Job(batch.Key()) != nil || sn.Alloc("b") != nil {
		t.Error("a finished batch job was not deleted with its allocations")
	}
	s.MustDo(t, &replication.StopJob{Key: replicationtest.WebKey})
	s.MustDo(t, &replication.StopAllocs{IDs: []string{"w"}, Reason: "by hand"})
	s.MustDo(t, &replication.UpdateAllocs{Updates: []apply.ClientUpdate{{AllocID: "w", Status: model.ClientComplete}}})
	var evals []*model.Evaluation
	for e := range s.Store.Snapshot().Evals() {
		over := *e
		over.Status = model.EvalComplete
		evals = append(evals, &over)
	}
	s.MustDo(t, &replication.WriteEvals{Evals: evals})
	s.MustDo(t, &replication.ChangeNodes{IDs: []string{"n0"}, Change: apply.NodeChange{Status: new(model.NodeDown)}})
	s.MustDo(t, all)
	sn = s.Store.Snapshot()
	if sn.Alloc("w") != nil || sn.EvalCount() != 0 || sn.Job(replicationtest.WebKey) != nil || sn.Node("n0") != nil || sn.Node("n1") == nil {
		t.Error("something that has ended was not deleted")
	}
}

// A completed allocation is retained while it prevents that its instance runs again, and not after
// another version has required that.
func TestCollect_RetainsCompletedInstancesOfTheCurrentRun(t *testing.T) {
	for _, kind := range []model.JobType{model.JobService, model.JobBatch} {
		s := withJob(t)
		s.MustDo(t, &replication.Bootstrap{ClusterID: "c", Version: replication.Newest})
		register := func(duration int64) *model.Job {
			j := replicationtest.WebJob(50)
			j.ID, j.Type, j.Groups[0].Duration = "j", kind, duration
			s.MustDo(t, &replication.RegisterJob{Job: j})
			return s.Store.Snapshot().Job(j.Key())
		}
		s.MustDo(t, &replication.ApplyPlans{Batch: batchOf(register(1), placement(register(1), "a", "n0"))})
		s.MustDo(t, &replication.UpdateAllocs{Updates: []apply.ClientUpdate{{AllocID: "a", Status: model.ClientComplete}}})
		s.MustDo(t, &replication.Collect{Allocs: []string{"a"}})
		if s.Store.Snapshot().Alloc("a") == nil {
			t.Errorf("%v: a completed allocation was deleted: its instance would run again", kind)
		}
		register(2)
		s.MustDo(t, &replication.Collect{Allocs: []string{"a"}})
		if s.Store.Snapshot().Alloc("a") != nil {
			t.Errorf("%v: an allocation of an earlier version was retained", kind)
		}
	}
}

func TestOperatorCommands(t *testing.T) {
	s := newServer()
	s.MustDo(t, &replication.Bootstrap{ClusterID: "c", Version: 2})
	s.MustDo(t, &replication.Bootstrap{ClusterID: "other", Version: 9})
	if m := s.Store.Snapshot().Meta(); m != (state.Meta{ClusterID: "c", Version: 2}) {
		t.Errorf("meta %v", m)
	}
	refuses(t, s, replication.CodeConflict, "cannot lower the cluster version", &replication.SetVersion{Version: 1})
	s.MustDo(t, &replication.SetVersion{Version: replication.Newest})
	s.MustDo(t, &replication.SetConfig{Config: &model.SchedulerConfig{Policy: "x"}, Check: new(uint64(0))})
	refuses(t, s, replication.CodeConflict, "was changed", &replication.SetConfig{Config: &model.SchedulerConfig{}, Check: new(uint64(0))})
	s.MustDo(t, &replication.UpsertPriorityClass{Class: &model.PriorityClass{Name: "a", GlobalDefault: true}})
	refuses(t, s, replication.CodeConflict, "already the global default", &replication.UpsertPriorityClass{Class: &model.PriorityClass{Name: "b", GlobalDefault: true}})
	refuses(t, s, replication.CodeNotFound, "not found", &replication.DeletePriorityClass{Name: "b"})
	s.MustDo(t, &replication.PutToken{Token: &model.Token{Accessor: "t", Hash: [32]byte{1}}, Bootstrap: true})
	refuses(t, s, replication.CodeConflict, "tokens already exist", &replication.PutToken{Token: &model.Token{Accessor: "u"}, Bootstrap: true})
	refuses(t, s, replication.CodeExists, "already has this secret", &replication.PutToken{Token: &model.Token{Accessor: "u", Hash: [32]byte{1}}})
	s.MustDo(t, &replication.PutSigner{Signer: &model.Signer{ServerID: "s1", Key: [32]byte{1}}})
	s.MustDo(t, &replication.PutSigner{Signer: &model.Signer{ServerID: "s1", Key: [32]byte{1}, Time: 7}})
	if list := s.Store.Snapshot().Signers(); len(list) != 1 || list[0].Time != 0 || list[0].CreateIndex == 0 {
		t.Errorf("signers %+v", list)
	}
	refuses(t, s, replication.CodeExists, "server s1 already has this key", &replication.PutSigner{Signer: &model.Signer{ServerID: "s2", Key: [32]byte{1}}})
	refuses(t, s, replication.CodeInvalid, "server and key are required", &replication.PutSigner{Signer: &model.Signer{ServerID: "s2"}})
	refuses(t, s, replication.CodeInvalid, "labels are required", &replication.UpsertBudget{Budget: &model.Budget{Namespace: "n", Name: "b"}})
	refuses(t, s, replication.CodeNotFound, "not found", &replication.DeleteBudget{Key: model.BudgetKey{Namespace: "n", Name: "b"}})
}

// A server that does not understand an entry halts: it does not skip the entry, and
// takes no snapshot of the state without it.
func TestFSM_HaltsAtUnsupportedEntries(t *testing.T) {
	newer := &pb.Entry{Format: 1, Kind: 99}
	for what, data := range map[string][]byte{
		"command of a newer release": marshal(t, newer),
		"newer format":               marshal(t, &pb.Entry{Format: 2, Kind: 10, Command: &pb.Entry_Bootstrap{}}),
		"damage":                     {0xff, 0xff},
		"unknown value of an enumeration": marshal(t, &pb.Entry{Format: 1, Kind: uint32(replication.KindUpdateAllocs), Command: &pb.Entry_UpdateAllocs{
			UpdateAllocs: &pb.UpdateAllocs{Updates: []*pb.ClientUpdate{{Status: 200}}},
		}}),
	} {
		s := newServer()
		s.MustDo(t, &replication.Bootstrap{ClusterID: "c"})
		before := s.Store.Snapshot()
		answers := s.FSM.ApplyBatch([]*raft.Log{
			{Index: 2, Data: data}, {Index: 3, Data: codec.Encode(&replication.Entry{Command: &replication.SetVersion{Version: 7}})},
		})
		for _, a := range answers {
			err, _ := a.(error)
			if _, ok := errors.AsType[*replication.FormatError](err); !ok {
				t.Errorf("%s: response %v", what, a)
			}
		}
		if s.Store.Snapshot() != before {
			t.Errorf("%s: the state changed", what)
		}
		if _, err := s.FSM.Snapshot(); err == nil {
			t.Errorf("%s: a snapshot was taken", what)
		}
		select {
		case <-s.FSM.Halted():
		default:
			t.Errorf("%s: Halted is not closed", what)
		}
	}
}

// Preemption is held for what a confirmed plan does not place: from its registration,
// in snapshots, and until the job is registered without a plan.
func TestRegisterJob_HoldsPreemptionAfterAConfirmedPlan(t *testing.T) {
	s := withJob(t)
	low := replicationtest.WebJob(10)
	low.ID = "low"
	s.MustDo(t, &replication.RegisterJob{Job: low})
	low = s.Store.Snapshot().Job(low.Key())
	s.MustDo(t, &replication.ApplyPlans{Batch: batchOf(low, placement(low, "v", "n1"), placement(low, "u", "n0"))})
	run := func(id, victim string, rules uint64, status model.EvalStatus) replication.Command {
		j := replicationtest.WebJob(90)
		j.Meta = map[string]string{"run": id}
		g := placement(j, id, "n1", victim)
		eval := replicationtest.Eval("e-"+id, replicationtest.WebKey)
		eval.Status = status
		return &replication.RegisterJob{Job: j, Eval: eval, Batch: batchOf(j, g), Rules: rules}
	}
	held := func() state.PreemptionHold { return s.Store.Snapshot().PreemptionHold(replicationtest.WebKey) }

	s.MustDo(t, run("b1", "v", 0, model.EvalPending))
	if held() != (state.PreemptionHold{}) {
		t.Error("a hold was set although the cluster version lacks holds")
	}
	s.MustDo(t, &replication.Bootstrap{ClusterID: "c", Version: fsm.HeldFrom})
	s.MustDo(t, &replication.ChangePolicy{Name: "default", Op: replication.OpReset})
	s.MustDo(t, &replication.SetConfig{Config: &model.SchedulerConfig{Algorithm: model.SpreadRank}})
	changed := s.Index
	refuses(t, s, replication.CodeConflict, fmt.Sprint("changed at index ", changed), run("b2", "b1", changed-1, model.EvalPending))
	s.MustDo(t, run("b2", "b1", changed, model.EvalPending))
	since := s.Index
	if got := held(); got.Index != since || got.Time == 0 || s.Store.Snapshot().Alloc("b1").Live() {
		t.Errorf("hold %+v, want index %d; victim %+v", got, since, s.Store.Snapshot().Alloc("b1"))
	}

	// An older plan would evict victims that the user did not confirm.
	web := s.Store.Snapshot().Job(replicationtest.WebKey)
	early := batchOf(web, placement(web, "c1", "n0", "u"))
	early.Plans[0].Plan.SnapshotIndex = since - 1
	if r := s.MustDo(t, &replication.ApplyPlans{Batch: early}); len(r.Dropped) != 1 || !s.Store.Snapshot().Alloc("u").Live() {
		t.Errorf("dropped %v", r.Dropped)
	}

	other := newServer()
	if err := other.FSM.Restore(io.NopCloser(bytes.NewReader(s.Persist(t)))); err != nil {
		t.Fatal(err)
	}
	if got := other.Store.Snapshot().PreemptionHold(replicationtest.WebKey); got != held() {
		t.Errorf("hold %+v after a restore", got)
	}
	if snapshot.Hash(other.Store.Snapshot()) != snapshot.Hash(s.Store.Snapshot()) {
		t.Error("the restored state differs")
	}

	again := replicationtest.WebJob(90)
	again.Meta = web.Meta
	s.MustDo(t, &replication.RegisterJob{Job: again})
	if held() != (state.PreemptionHold{}) || s.Store.Snapshot().Job(replicationtest.WebKey) != web {
		t.Error("registering without a plan did not end the hold, or changed the version")
	}
	s.MustDo(t, run("b3", "b2", 0, model.EvalComplete))
	if held() != (state.PreemptionHold{}) {
		t.Error("a plan that placed everything set a hold")
	}
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A namespace is stored with its weight, checked by its index, and deleted only while
// nothing is in it. A snapshot restores it.
func TestNamespaceCommands(t *testing.T) {
	s := newServer()
	put := func(name string, weight float64, check *uint64) *replication.UpsertNamespace {
		return &replication.UpsertNamespace{Namespace: &model.Namespace{Name: name, Weight: weight}, Check: check}
	}
	s.MustDo(t, put("team", 3, new(uint64(0))))
	refuses(t, s, replication.CodeConflict, "namespace team was changed: it is at index 1, want 0", put("team", 1, new(uint64(0))))
	refuses(t, s, replication.CodeInvalid, "-1 is not a valid weight", put("team", -1, nil))
	refuses(t, s, replication.CodeInvalid, "name is required", put("", 1, nil))
	s.MustDo(t, put("team", 0, new(uint64(1))))
	s.MustDo(t, put("plain", 0, nil))
	n, plain := s.Store.Snapshot().Namespace("team"), s.Store.Snapshot().Namespace("plain")
	if n.Weight != 3 || n.CreateIndex != 1 || n.ModifyIndex != 5 || n.WeightIndex != 1 || plain.Weight != 1 {
		t.Errorf("namespaces %+v %+v", n, plain)
	}
	other := newServer()
	if err := other.FSM.Restore(io.NopCloser(bytes.NewReader(s.Persist(t)))); err != nil {
		t.Fatal(err)
	}
	if got := other.Store.Snapshot().Namespace("team"); *got != *n {
		t.Errorf("restored %+v, want %+v", got, n)
	}
	refuses(t, s, replication.CodeInvalid, "cannot be deleted", &replication.DeleteNamespace{Name: "default"})
	refuses(t, s, replication.CodeNotFound, "not found", &replication.DeleteNamespace{Name: "other"})
	s.MustDo(t, &replication.UpsertBudget{Budget: &model.Budget{Namespace: "team", Name: "b", Labels: map[string]string{"app": "x"}, MinAvailable: &model.Bound{Number: 1}}})
	s.MustDo(t, &replication.PutToken{Token: &model.Token{Accessor: "ci", Namespace: "team"}})
	refuses(t, s, replication.CodeConflict, "namespace team contains disruption budget b; token ci", &replication.DeleteNamespace{Name: "team"})
	s.MustDo(t, &replication.DeleteBudget{Key: model.BudgetKey{Namespace: "team", Name: "b"}})
	s.MustDo(t, &replication.DeleteToken{Accessor: "ci"})
	refuses(t, s, replication.CodeConflict, "namespace team was changed: it is at index 5, want 1", &replication.DeleteNamespace{Name: "team", Check: new(uint64(1))})
	s.MustDo(t, &replication.DeleteNamespace{Name: "team", Check: new(uint64(5))})
	if sn := s.Store.Snapshot(); sn.Namespace("team") != nil || sn.NamespaceWeight("team") != 1 {
		t.Error("the namespace was not deleted")
	}
}

// A worker that received an evaluation just before an operator cancelled it cannot report
// another result over the cancellation.
func TestWriteEvals_CancelledEvaluationsStayCancelled(t *testing.T) {
	s := newServer()
	with := func(status model.EvalStatus) *replication.WriteEvals {
		e := replicationtest.Eval("e1", replicationtest.WebKey)
		e.Status = status
		return &replication.WriteEvals{Evals: []*model.Evaluation{e}}
	}
	s.MustDo(t, with(model.EvalPending))
	s.MustDo(t, with(model.EvalCancelled))
	for _, status := range []model.EvalStatus{model.EvalComplete, model.EvalFailed, model.EvalBlocked, model.EvalPending} {
		s.MustDo(t, with(status))
		if got := s.Store.Snapshot().Eval("e1").Status; got != model.EvalCancelled {
			t.Fatalf("status %v after a write of %v", got, status)
		}
	}
}
