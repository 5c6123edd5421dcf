package replication

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

var webKey = model.JobKey{Namespace: "default", ID: "web"}

func webJob(priority int32) *model.Job {
	return &model.Job{Namespace: "default", ID: "web", Priority: priority, Groups: []*model.Group{{
		Name: "g", Count: 2, Resources: model.Resources{"cpu": 60},
	}}}
}

func nodeOf(id string) *model.Node {
	return &model.Node{ID: id, Datacenter: "dc1", Capacity: model.Resources{"cpu": 100, "memory": 100}}
}

func evalOf(id string, key model.JobKey) *model.Evaluation {
	return &model.Evaluation{ID: id, Namespace: key.Namespace, JobID: key.ID, TriggeredBy: model.TriggerJobRegister}
}

// withJob is a server with nodes n0 and n1, and the job web at index 2.
func withJob(t *testing.T) *server {
	t.Helper()
	s := newServer()
	s.done(t, &RegisterNodes{Nodes: []*model.Node{nodeOf("n0"), nodeOf("n1")}})
	s.done(t, &RegisterJob{Job: webJob(50), Eval: evalOf("e1", webKey)})
	return s
}

// done is do for what must not be refused.
func (s *server) done(t *testing.T, c Command) *Result {
	t.Helper()
	r := s.do(t, c)
	if r.Err != nil {
		t.Fatalf("%T: %v", c, r.Err)
	}
	return r
}

func (s *server) refuses(t *testing.T, code, words string, c Command) {
	t.Helper()
	before := Hash(s.store.Snapshot())
	r := s.do(t, c)
	if r.Err == nil || r.Err.Code != code || !strings.Contains(r.Err.Message, words) {
		t.Fatalf("%T: refused with %v, want %s: ...%s...", c, r.Err, code, words)
	}
	if Hash(s.store.Snapshot()) != before {
		t.Fatalf("%T was refused and left a trace", c)
	}
	if s.store.Snapshot().Index() != s.index {
		t.Fatalf("%T was refused and the state is at %d, not %d", c, s.store.Snapshot().Index(), s.index)
	}
}

func TestRegisterJob_RaisesTheVersionOfWhatChangedAlone(t *testing.T) {
	s := withJob(t)
	first := s.store.Snapshot().Job(webKey)
	if first.Version != 0 || first.ModifyIndex != 2 || first.SubmitTime != 1000 {
		t.Errorf("version %d at %d, submitted %d", first.Version, first.ModifyIndex, first.SubmitTime)
	}
	again := s.done(t, &RegisterJob{Job: webJob(50), Eval: evalOf("e2", webKey)})
	sn := s.store.Snapshot()
	if sn.Job(webKey) != first || sn.DirtyIndex(webKey) != 3 || len(again.Evals) != 1 {
		t.Error("the same specification stays as it is, and is looked at again")
	}
	s.done(t, &RegisterJob{Job: webJob(60)})
	j := s.store.Snapshot().Job(webKey)
	if j.Version != 1 || j.CreateIndex != 2 || j.ModifyIndex != 4 || j.SubmitTime != 1000 {
		t.Errorf("version %d, created %d, modified %d, submitted %d", j.Version, j.CreateIndex, j.ModifyIndex, j.SubmitTime)
	}
	s.done(t, &StopJob{Key: webKey})
	if j := s.store.Snapshot().Job(webKey); !j.Stopped || j.Version != 2 {
		t.Errorf("stopped %t at version %d", j.Stopped, j.Version)
	}
	s.done(t, &RegisterJob{Job: webJob(60)})
	if j := s.store.Snapshot().Job(webKey); j.Stopped || j.Version != 3 {
		t.Error("a stopped job that is registered again runs again")
	}
	if got := len(s.store.Snapshot().JobVersions(webKey)); got != 4 {
		t.Errorf("%d versions", got)
	}
}

func TestRegisterJob_Checks(t *testing.T) {
	s := withJob(t)
	other := webJob(50)
	other.ID = "other"
	s.refuses(t, CodeConflict, "is there already, at index 2", &RegisterJob{Job: webJob(1), Check: new(uint64(0))})
	s.refuses(t, CodeConflict, "it is at index 2, and 1 was named", &RegisterJob{Job: webJob(1), Check: new(uint64(1))})
	s.refuses(t, CodeConflict, "is not there", &RegisterJob{Job: other, Check: new(uint64(7))})
	s.refuses(t, CodeInvalid, "needs a namespace", &RegisterJob{Job: &model.Job{ID: "x"}})
	s.refuses(t, CodeInvalid, "comes with job", &RegisterJob{Job: other, Eval: evalOf("e9", webKey)})
	s.refuses(t, CodeInvalid, "is of job default/web", &RegisterJob{Job: other, Eval: evalOf("e1", other.Key())})
	wide := webJob(1)
	wide.Groups[0].Resources = model.Resources{}
	for i := range 20 {
		wide.Groups[0].Resources[fmt.Sprint("r", i)] = 1
	}
	s.refuses(t, CodeInvalid, "16 resource names", &RegisterJob{Job: wide})
	s.done(t, &RegisterJob{Job: webJob(1), Check: new(uint64(2))})
	s.done(t, &RegisterJob{Job: other, Check: new(uint64(0))})
	s.refuses(t, CodeNotFound, "no job default/nobody", &StopJob{Key: model.JobKey{Namespace: "default", ID: "nobody"}})
	s.refuses(t, CodeConflict, "was changed", &StopJob{Key: webKey, Check: new(uint64(2))})
	s.done(t, &StopJob{Key: webKey, Purge: true, Eval: evalOf("e3", webKey)})
	if s.store.Snapshot().Job(webKey) != nil {
		t.Error("a purged job is still there")
	}
}

func planFor(j *model.Job, groups ...model.CommitGroup) *apply.Batch {
	plan := &model.Plan{EvalID: "e1", Job: j.Key(), Priority: j.Priority, Groups: groups}
	b := &apply.Batch{Now: 77, Plans: []apply.BatchPlan{{Plan: plan}}}
	for i := range groups {
		b.Plans[0].Groups = append(b.Plans[0].Groups, i)
	}
	return b
}

func placing(j *model.Job, id, node string, victims ...string) model.CommitGroup {
	g := model.CommitGroup{Placements: []*model.Allocation{{ID: id, Job: j, Group: j.Groups[0], NodeID: node, EvalID: "e1"}}}
	for _, v := range victims {
		g.Evictions = append(g.Evictions, model.Eviction{AllocID: v, By: id})
	}
	return g
}

func TestApplyPlans_PlacesTheVersionThatItNames(t *testing.T) {
	s := withJob(t)
	j := s.store.Snapshot().Job(webKey)
	s.done(t, &RegisterJob{Job: webJob(60)})
	r := s.done(t, &ApplyPlans{planFor(j, placing(j, "a0", "n0"), placing(j, "a1", "n1"))})
	if len(r.Dropped) > 0 {
		t.Fatalf("dropped %v", r.Dropped)
	}
	a := s.store.Snapshot().Alloc("a0")
	if a.Job != j || a.Group != j.Groups[0] || a.CreateTime != 77 || a.CreateIndex != 4 {
		t.Errorf("it is %+v", a)
	}
	// Written again, as after an outcome that was not known, it changes nothing.
	r = s.done(t, &ApplyPlans{planFor(j, placing(j, "a0", "n0"))})
	if len(r.Dropped) != 1 || s.store.Snapshot().Alloc("a0") != a {
		t.Error("a placement that is there already was written again")
	}
	for version := range int32(8) {
		s.done(t, &RegisterJob{Job: webJob(10 + version)})
	}
	// Versions that are not remembered are found by what runs of them.
	r = s.done(t, &ApplyPlans{planFor(j, placing(j, "a2", "n0"))})
	if len(r.Dropped) > 0 || s.store.Snapshot().Alloc("a2").Job != j {
		t.Error("a version that runs is not found")
	}
	gone := *j
	gone.ModifyIndex = 3
	r = s.done(t, &ApplyPlans{planFor(&gone, placing(&gone, "a3", "n0"))})
	if len(r.Dropped) != 1 || s.store.Snapshot().DirtyIndex(webKey) != s.index {
		t.Error("a version that is gone is dropped, and its job is looked at again")
	}
}

// What goes with the one that ended may be evicted now, though it runs elsewhere.
func TestUpdateAllocs_SaysWhereMatesAre(t *testing.T) {
	s := withJob(t)
	whole := webJob(10)
	whole.ID, whole.AllOrNone = "whole", true
	s.done(t, &RegisterJob{Job: whole})
	whole = s.store.Snapshot().Job(whole.Key())
	s.done(t, &ApplyPlans{planFor(whole, placing(whole, "a", "n0"), placing(whole, "b", "n1"))})
	r := s.done(t, &UpdateAllocs{[]apply.ClientUpdate{{AllocID: "a", Status: model.ClientFailed}}})
	if !slices.Equal(r.Rooms, []string{"n0", "n1"}) {
		t.Errorf("room on %v", r.Rooms)
	}
}

func TestApplyPlans_SaysWhereRoomCameUpAndWhoFollows(t *testing.T) {
	s := withJob(t)
	low := webJob(10)
	low.ID = "low"
	low.Groups[0].Labels = map[string]string{"a": "b"}
	s.done(t, &RegisterJob{Job: low})
	low = s.store.Snapshot().Job(low.Key())
	r := s.done(t, &ApplyPlans{planFor(low, placing(low, "v", "n1"))})
	if !slices.Equal(r.Placed, []string{"n1"}) {
		t.Errorf("placed on %v", r.Placed)
	}
	web := s.store.Snapshot().Job(webKey)
	r = s.done(t, &ApplyPlans{planFor(web, placing(web, "a", "n1", "v"))})
	if !slices.Equal(r.Rooms, []string{"n1"}) || len(r.Placed) > 0 {
		t.Errorf("room on %v, placed on %v", r.Rooms, r.Placed)
	}
	if len(r.Evals) != 1 || r.Evals[0].JobID != "low" || r.Evals[0].TriggeredBy != model.TriggerPreemption {
		t.Errorf("evaluations %v", r.Evals)
	}
	r = s.done(t, &UpdateAllocs{[]apply.ClientUpdate{{AllocID: "a", Status: model.ClientFailed, EvictedBy: "pressure"}}})
	if !slices.Equal(r.Rooms, []string{"n1"}) || len(r.Evals) != 1 {
		t.Errorf("room on %v, evaluations %v", r.Rooms, r.Evals)
	}
	if got := s.store.Snapshot().Alloc("a").ClientText; got != "evicted by its node: pressure" {
		t.Errorf("text %q", got)
	}
}

// A confirmed plan is written whole, with its job, or not at all.
func TestRegisterJob_WithPlanIsAllOrNothing(t *testing.T) {
	s := withJob(t)
	low := webJob(10)
	low.ID = "low"
	s.done(t, &RegisterJob{Job: low})
	low = s.store.Snapshot().Job(low.Key())
	s.done(t, &ApplyPlans{planFor(low, placing(low, "v", "n1"))})
	confirm := func(groups ...model.CommitGroup) Command {
		j := webJob(90)
		for _, g := range groups {
			for _, a := range g.Placements {
				a.Job, a.Group = j, j.Groups[0]
			}
		}
		return &RegisterJob{Job: j, Eval: evalOf("e5", webKey), Batch: planFor(j, groups...)}
	}
	any := webJob(90)
	s.refuses(t, CodeConflict, "node n1 lacks cpu", confirm(placing(any, "b0", "n0"), placing(any, "b1", "n1")))
	s.refuses(t, CodeConflict, "allocation gone is not there to be evicted", confirm(placing(any, "b1", "n1", "gone")))
	s.refuses(t, CodeConflict, "node n9 is gone", confirm(placing(any, "b0", "n0"), placing(any, "b1", "n9")))
	s.refuses(t, CodeConflict, "allocation v exists", confirm(placing(any, "v", "n1", "v")))
	s.refuses(t, CodeConflict, "not there to be stopped", confirm(model.CommitGroup{Stops: []model.Stop{{AllocID: "x"}}}))
	s.done(t, &ChangeNodes{IDs: []string{"n0"}, Change: apply.NodeChange{Drain: new(true)}})
	s.refuses(t, CodeConflict, "node n0 takes no work", confirm(placing(any, "b0", "n0")))
	r := s.done(t, confirm(placing(any, "b1", "n1", "v")))
	sn := s.store.Snapshot()
	j := sn.Job(webKey)
	if a := sn.Alloc("b1"); a == nil || a.Job != j || j.ModifyIndex != s.index || j.Version != 1 {
		t.Errorf("placed %+v of version %d", a, j.Version)
	}
	if sn.Alloc("v").Live() || len(r.Evals) != 2 {
		t.Errorf("the victim runs on, or evaluations %v", r.Evals)
	}
}

func TestKeys_TheSameRequestIsDoneOnceAndAnotherRefused(t *testing.T) {
	s := withJob(t)
	e := &Entry{Time: 5, Key: "k", Hash: [32]byte{1}, Command: &RegisterJob{Job: webJob(70), Eval: evalOf("e7", webKey)}}
	first := s.apply(t, e)
	again := s.apply(t, e)
	if first.Err != nil || again.Err != nil || first.Replayed || !again.Replayed || again.Index != first.Index {
		t.Fatalf("first %+v, again %+v", first, again)
	}
	if len(again.Evals) != 1 || again.Evals[0] != s.store.Snapshot().Eval("e7") {
		t.Errorf("evaluations %v", again.Evals)
	}
	if j := s.store.Snapshot().Job(webKey); j.Version != 1 || s.store.Snapshot().DirtyIndex(webKey) != first.Index {
		t.Error("it was done twice")
	}
	other := s.apply(t, &Entry{Time: 5, Key: "k", Hash: [32]byte{2}, Command: &StopJob{Key: webKey}})
	if other.Err == nil || other.Err.Code != CodeConflict || s.store.Snapshot().Job(webKey).Stopped {
		t.Errorf("another request under the key: %+v", other)
	}
	// A refusal is remembered too.
	bad := &Entry{Time: 6, Key: "bad", Hash: [32]byte{3}, Command: &DeleteToken{Accessor: "x"}}
	s.apply(t, bad)
	if r := s.apply(t, bad); !r.Replayed || r.Err == nil || r.Err.Code != CodeNotFound {
		t.Errorf("again: %+v", r)
	}
	// After a day the key is free.
	e.Time += state.IdempotencyWindow + 1
	if r := s.apply(t, e); r.Replayed {
		t.Error("the key is remembered for more than a day")
	}
}

func TestWriteEvals_WhatEndedStaysEnded(t *testing.T) {
	s := withJob(t)
	done := evalOf("e1", webKey)
	done.Status = model.EvalComplete
	s.done(t, &WriteEvals{[]*model.Evaluation{done}})
	r := s.done(t, &WriteEvals{[]*model.Evaluation{evalOf("e1", webKey)}})
	if len(r.Evals) != 0 || s.store.Snapshot().Eval("e1").Status != model.EvalComplete {
		t.Error("an evaluation that was complete is pending again")
	}
	s.refuses(t, CodeInvalid, "is written twice", &WriteEvals{[]*model.Evaluation{evalOf("x", webKey), evalOf("x", webKey)}})
	s.refuses(t, CodeInvalid, "needs an id", &WriteEvals{[]*model.Evaluation{{}}})
}

func TestRegisterNodes_KeepsWhatOperatorsDecided(t *testing.T) {
	s := withJob(t)
	s.done(t, &ChangeNodes{IDs: []string{"n0"}, Change: apply.NodeChange{Drain: new(true), Ineligible: new(true)}})
	n := nodeOf("n0")
	n.SecretHash = [32]byte{1}
	r := s.done(t, &RegisterNodes{Nodes: []*model.Node{n}})
	if n := s.store.Snapshot().Node("n0"); !n.Drain || !n.Ineligible || len(r.Rooms) > 0 {
		t.Error("a registration ended a drain")
	}
	thief := nodeOf("n0")
	thief.SecretHash = [32]byte{2}
	s.refuses(t, CodeConflict, "another secret", &RegisterNodes{Nodes: []*model.Node{thief}})
	s.refuses(t, CodeNotFound, "no node nobody", &ChangeNodes{IDs: []string{"nobody"}})
	s.refuses(t, CodeNotFound, "no node nobody", &DeleteNodes{IDs: []string{"nobody"}})
	r = s.done(t, &ChangeNodes{IDs: []string{"n0"}, Change: apply.NodeChange{Drain: new(false), Ineligible: new(false)}})
	if !slices.Equal(r.Rooms, []string{"n0"}) {
		t.Errorf("room on %v", r.Rooms)
	}
}

func TestCollect_TakesWhatIsOverAlone(t *testing.T) {
	s := withJob(t)
	batch := webJob(50)
	batch.ID, batch.Type = "batch", model.JobBatch
	s.done(t, &RegisterJob{Job: batch})
	web, batch := s.store.Snapshot().Job(webKey), s.store.Snapshot().Job(batch.Key())
	s.done(t, &ApplyPlans{planFor(web, placing(web, "w", "n0"))})
	s.done(t, &ApplyPlans{planFor(batch, placing(batch, "b", "n1"))})
	s.done(t, &UpdateAllocs{[]apply.ClientUpdate{{AllocID: "b", Status: model.ClientComplete}}})
	all := &Collect{
		Evals: []string{"e1"}, Allocs: []string{"w", "b"}, Jobs: []model.JobKey{webKey}, Nodes: []string{"n0", "n1"},
	}
	s.done(t, all)
	sn := s.store.Snapshot()
	if sn.Alloc("w") == nil || sn.Eval("e1") == nil || sn.Job(webKey) == nil || sn.NodeCount() != 2 {
		t.Error("something was collected that is not over")
	}
	if sn.Alloc("b") == nil {
		t.Error("work that is done is forgotten while its job is there: it would be done again")
	}
	s.done(t, &Collect{Jobs: []model.JobKey{batch.Key()}})
	if sn := s.store.Snapshot(); sn.Job(batch.Key()) != nil || sn.Alloc("b") != nil {
		t.Error("a batch job that is over was not collected with its work")
	}
	s.done(t, &StopJob{Key: webKey})
	s.done(t, &StopAllocs{IDs: []string{"w"}, Reason: "by hand"})
	s.done(t, &UpdateAllocs{[]apply.ClientUpdate{{AllocID: "w", Status: model.ClientComplete}}})
	var evals []*model.Evaluation
	for e := range s.store.Snapshot().Evals() {
		over := *e
		over.Status = model.EvalComplete
		evals = append(evals, &over)
	}
	s.done(t, &WriteEvals{evals})
	s.done(t, &ChangeNodes{IDs: []string{"n0"}, Change: apply.NodeChange{Status: new(model.NodeDown)}})
	s.done(t, all)
	sn = s.store.Snapshot()
	if sn.Alloc("w") != nil || sn.EvalCount() != 0 || sn.Job(webKey) != nil || sn.Node("n0") != nil || sn.Node("n1") == nil {
		t.Error("what is over was not collected")
	}
}

func TestOperator_Commands(t *testing.T) {
	s := newServer()
	s.done(t, &Bootstrap{ClusterID: "c", Version: 2})
	s.done(t, &Bootstrap{ClusterID: "other", Version: 9})
	if m := s.store.Snapshot().Meta(); m != (state.Meta{ClusterID: "c", Version: 2}) {
		t.Errorf("meta %v", m)
	}
	s.refuses(t, CodeConflict, "does not go back", &SetVersion{1})
	s.done(t, &SetVersion{Newest})
	s.done(t, &SetConfig{Config: &model.SchedulerConfig{Policy: "x"}, Check: new(uint64(0))})
	s.refuses(t, CodeConflict, "was changed", &SetConfig{Config: &model.SchedulerConfig{}, Check: new(uint64(0))})
	s.done(t, &UpsertPriorityClass{&model.PriorityClass{Name: "a", GlobalDefault: true}})
	s.refuses(t, CodeConflict, "global default already", &UpsertPriorityClass{&model.PriorityClass{Name: "b", GlobalDefault: true}})
	s.refuses(t, CodeNotFound, "no priority class", &DeletePriorityClass{"b"})
	s.done(t, &PutToken{Token: &model.Token{Accessor: "t", Hash: [32]byte{1}}, Bootstrap: true})
	s.refuses(t, CodeConflict, "tokens already", &PutToken{Token: &model.Token{Accessor: "u"}, Bootstrap: true})
	s.refuses(t, CodeExists, "same secret", &PutToken{Token: &model.Token{Accessor: "u", Hash: [32]byte{1}}})
	s.refuses(t, CodeInvalid, "needs labels", &UpsertBudget{&model.Budget{Namespace: "n", Name: "b"}})
	s.refuses(t, CodeNotFound, "no disruption budget", &DeleteBudget{model.BudgetKey{Namespace: "n", Name: "b"}})
}

// A server that does not understand an entry stops: it does not skip it, and
// takes no snapshot of the state without it.
func TestFSM_StopsAtWhatItDoesNotUnderstand(t *testing.T) {
	newer := &pb.Entry{Format: format, Kind: 99}
	for what, data := range map[string][]byte{
		"a command of a newer server": mustMarshal(sorted, newer),
		"a newer format":              mustMarshal(sorted, &pb.Entry{Format: format + 1, Kind: 10, Command: &pb.Entry_Bootstrap{}}),
		"damage":                      {0xff, 0xff},
		"an enumeration that grew": mustMarshal(sorted, &pb.Entry{Format: format, Kind: uint32(kindUpdateAllocs), Command: &pb.Entry_UpdateAllocs{
			UpdateAllocs: &pb.UpdateAllocs{Updates: []*pb.ClientUpdate{{Status: 200}}},
		}}),
	} {
		s := newServer()
		s.done(t, &Bootstrap{ClusterID: "c"})
		before := s.store.Snapshot()
		answers := s.fsm.ApplyBatch([]*raft.Log{
			{Index: 2, Data: data}, {Index: 3, Data: Encode(&Entry{Command: &SetVersion{7}})},
		})
		for _, a := range answers {
			err, _ := a.(error)
			if _, ok := errors.AsType[*FormatError](err); !ok {
				t.Errorf("%s: answered %v", what, a)
			}
		}
		if s.store.Snapshot() != before {
			t.Errorf("%s: the state went on", what)
		}
		if _, err := s.fsm.Snapshot(); err == nil {
			t.Errorf("%s: a snapshot is taken", what)
		}
		select {
		case <-s.fsm.halt:
		default:
			t.Errorf("%s: nobody is told", what)
		}
	}
}

// What a plan leaves without a place is held back: from when the plan is run, on every
// server and through snapshots, until the job is run without one.
func TestRegisterJob_HoldsBackWhatItsPlanLeftWithoutAPlace(t *testing.T) {
	s := withJob(t)
	low := webJob(10)
	low.ID = "low"
	s.done(t, &RegisterJob{Job: low})
	low = s.store.Snapshot().Job(low.Key())
	s.done(t, &ApplyPlans{planFor(low, placing(low, "v", "n1"), placing(low, "u", "n0"))})
	run := func(id, victim string, rules uint64, status model.EvalStatus) Command {
		j := webJob(90)
		j.Meta = map[string]string{"run": id}
		g := placing(j, id, "n1", victim)
		eval := evalOf("e-"+id, webKey)
		eval.Status = status
		return &RegisterJob{Job: j, Eval: eval, Batch: planFor(j, g), Rules: rules}
	}
	held := func() state.PreemptionHold { return s.store.Snapshot().PreemptionHold(webKey) }

	s.done(t, run("b1", "v", 0, model.EvalPending))
	if held() != (state.PreemptionHold{}) {
		t.Error("servers of a release that knows no hold would have another state")
	}
	s.done(t, &Bootstrap{ClusterID: "c", Version: heldFrom})
	s.done(t, &ChangePolicy{Name: "default", Op: OpReset})
	s.done(t, &SetConfig{Config: &model.SchedulerConfig{Algorithm: model.SpreadRank}})
	changed := s.index
	s.refuses(t, CodeConflict, fmt.Sprint("changed at index ", changed), run("b2", "b1", changed-1, model.EvalPending))
	s.done(t, run("b2", "b1", changed, model.EvalPending))
	since := s.index
	if got := held(); got.Index != since || got.Time == 0 || s.store.Snapshot().Alloc("b1").Live() {
		t.Errorf("it is held since %+v, want index %d; the plan's victim is %+v", got, since, s.store.Snapshot().Alloc("b1"))
	}

	// A plan that was made before it was run would evict whom nobody was shown.
	web := s.store.Snapshot().Job(webKey)
	early := planFor(web, placing(web, "c1", "n0", "u"))
	early.Plans[0].Plan.SnapshotIndex = since - 1
	if r := s.done(t, &ApplyPlans{early}); len(r.Dropped) != 1 || !s.store.Snapshot().Alloc("u").Live() {
		t.Errorf("dropped %v", r.Dropped)
	}

	other := newServer()
	if err := other.fsm.Restore(io.NopCloser(bytes.NewReader(s.persist(t)))); err != nil {
		t.Fatal(err)
	}
	if got := other.store.Snapshot().PreemptionHold(webKey); got != held() {
		t.Errorf("restored it is held since %+v", got)
	}
	if Hash(other.store.Snapshot()) != Hash(s.store.Snapshot()) {
		t.Error("the restored state is another one")
	}

	again := webJob(90)
	again.Meta = web.Meta
	s.done(t, &RegisterJob{Job: again})
	if held() != (state.PreemptionHold{}) || s.store.Snapshot().Job(webKey) != web {
		t.Error("run without a plan it is held back still, or another version")
	}
	s.done(t, run("b3", "b2", 0, model.EvalComplete))
	if held() != (state.PreemptionHold{}) {
		t.Error("a plan that placed everything holds something back")
	}
}
