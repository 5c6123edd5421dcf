package fsm_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// blocks is the plan of the trials of these tests; the trial starts at 0.
var blocks = model.TrialPlan{Block: int64(time.Minute), Washout: int64(10 * time.Second), Seed: 3, StopIf: "worse", PromoteIf: "better"}

const trialUntil = int64(time.Hour)

// at applies a command at a time that must not be refused.
func at(t *testing.T, s *server, now time.Duration, c replication.Command) {
	t.Helper()
	if r := s.Apply(t, &replication.Entry{Time: int64(now), Command: c}); r.Err != nil {
		t.Fatal(r.Err)
	}
}

// onTrial returns a server on which v2 is compared with v1.
func onTrial(t *testing.T) *server {
	t.Helper()
	s := loaded(t)
	s.MustDo(t, &replication.Bootstrap{ClusterID: "c", Version: fsmTrials})
	change(t, s, replication.OpActivate, v1)
	at(t, s, 0, &replication.ChangePolicy{Name: "p", Op: replication.OpTrial, Version: v2, Until: trialUntil, Trial: &blocks, Actor: "alice"})
	return s
}

const fsmTrials = replication.Newest

// nextBlock ends the current block.
func nextBlock(t *testing.T, s *server) *model.PolicyTrial {
	t.Helper()
	end := s.Snapshot().PolicyTrial("p").BlockEnd()
	at(t, s, time.Duration(end), &replication.ChangePolicy{Name: "p", Op: replication.OpBlock, Until: end, Actor: model.TrialActor})
	return s.Snapshot().PolicyTrial("p")
}

// Each version decides once in every pair of blocks, and the other one is its shadow.
func TestChangePolicy_TrialAlternatesVersions(t *testing.T) {
	s, first := onTrial(t), 0
	for block := range 40 {
		trial, p := s.Snapshot().PolicyTrial("p"), s.Snapshot().PolicyState("p")
		active, other := trial.Decides()
		if p.Active != active || p.Shadow != other || p.Previous != other || p.Until != trialUntil || len(trial.Blocks) != block {
			t.Fatalf("block %d: %+v", block, p)
		}
		if block%2 == 1 && trial.Blocks[block-1].Candidate == trial.Current.Candidate {
			t.Fatalf("blocks %d and %d have the same version", block-1, block)
		}
		if block%2 == 0 && trial.Current.Candidate {
			first++
		}
		stale := &replication.ChangePolicy{Name: "p", Op: replication.OpBlock, Until: trial.BlockEnd() - 1}
		refuses(t, s, replication.CodeConflict, "has ended", stale)
		nextBlock(t, s)
	}
	if first < 4 || first > 16 {
		t.Errorf("the candidate is first in %d of 20 pairs", first)
	}
}

func TestChangePolicy_EndsOfTrialsWithBlocks(t *testing.T) {
	for name, tc := range map[string]struct {
		end    replication.ChangePolicy
		want   model.TrialEnd
		active string
	}{
		"promoted":    {replication.ChangePolicy{Op: replication.OpActivate, Version: v2, Actor: model.TrialActor, Reason: "better"}, model.TrialPromoted, v2},
		"stopped":     {replication.ChangePolicy{Op: replication.OpRollback, Until: trialUntil, Actor: model.TrialActor, Reason: "worse"}, model.TrialStopped, v1},
		"expired":     {replication.ChangePolicy{Op: replication.OpRollback, Until: trialUntil, Actor: model.TrialActor}, model.TrialExpired, v1},
		"confirmed":   {replication.ChangePolicy{Op: replication.OpActivate, Version: v2, Actor: "alice"}, model.TrialConfirmed, v2},
		"rolled back": {replication.ChangePolicy{Op: replication.OpRollback, Actor: "alice"}, model.TrialRolledBack, v1},
		"replaced":    {replication.ChangePolicy{Op: replication.OpActivate, Version: v1}, model.TrialReplaced, v1},
		"tripped":     {replication.ChangePolicy{Op: replication.OpTrip, Version: v2, Reason: "fails"}, model.TrialTripped, v1},
		"no baseline": {replication.ChangePolicy{Op: replication.OpTrip, Version: v1, Reason: "fails"}, model.TrialReplaced, v2},
		"unloaded":    {replication.ChangePolicy{Op: replication.OpUnload, Version: v2, Force: true}, model.TrialUnloaded, v1},
	} {
		for passed := range 3 { // blocks of either version
			s := onTrial(t)
			for range passed {
				nextBlock(t, s)
			}
			tc.end.Name = "p"
			at(t, s, 10*time.Minute, &tc.end)
			p, trial := s.Snapshot().PolicyState("p"), s.Snapshot().PolicyTrial("p")
			if p.Active != tc.active || p.Shadow != "" || p.Until != 0 || p.LastTrial.Ended != tc.want || p.LastTrial.Version != v2 {
				t.Errorf("%s after %d blocks: %+v", name, passed, p)
			}
			if trial.Running() || trial.End != p.LastTrial || trial.End.Actor != tc.end.Actor {
				t.Errorf("%s after %d blocks: %+v", name, passed, trial)
			}
		}
	}
}

func TestChangePolicy_RefusesDuringTrial(t *testing.T) {
	s := onTrial(t)
	refuses(t, s, replication.CodeConflict, "uses the shadow", &replication.ChangePolicy{Name: "p", Op: replication.OpShadow, Version: v2})
	refuses(t, s, replication.CodeConflict, "uses the shadow", &replication.ChangePolicy{Name: "p", Op: replication.OpUnshadow})
	again := &replication.ChangePolicy{Name: "p", Op: replication.OpTrial, Version: v2, Until: trialUntil, Trial: &blocks}
	for range 2 { // whichever version decides
		refuses(t, s, replication.CodeConflict, "trial in progress", again)
		for _, version := range []string{v1, v2} {
			limited := &replication.ChangePolicy{Name: "p", Op: replication.OpActivate, Version: version, Until: trialUntil + 1}
			refuses(t, s, replication.CodeConflict, "trial in progress", limited)
		}
		nextBlock(t, s)
	}
	at(t, s, 10*time.Minute, &replication.ChangePolicy{Name: "p", Op: replication.OpRollback})
	for text, bad := range map[string]model.TrialPlan{
		"are required":      {Block: int64(time.Second)},
		"longer than their": {Block: int64(time.Minute), Washout: int64(time.Minute)},
		"at most 1000":      {Block: int64(time.Minute)},
	} {
		c := *again
		if c.Trial = &bad; text == "at most 1000" {
			c.Until = int64(1e6 * time.Minute)
		}
		refuses(t, s, replication.CodeInvalid, text, &c)
	}
	if change(t, s, replication.OpTrip, v2); s.Snapshot().PolicyTrial("p").Running() {
		t.Error("the trial runs again")
	}
}

// Sums include what happened in the measured part of a block, by jobs of that policy.
func TestApplyPlans_AddsToTheBlockOfATrial(t *testing.T) {
	s := onTrial(t)
	at(t, s, 0, &replication.RegisterNodes{Nodes: []*model.Node{replicationtest.Node("n0")}})
	at(t, s, 0, &replication.SetConfig{Config: &model.SchedulerConfig{Policy: "p"}})
	at(t, s, 0, &replication.RegisterJob{Job: replicationtest.WebJob(50), Eval: replicationtest.Eval("e1", replicationtest.WebKey)})
	web := s.Snapshot().Job(replicationtest.WebKey)
	other := replicationtest.WebJob(70)
	other.ID, other.Policy = "other", "q"
	at(t, s, 0, &replication.RegisterJob{Job: other})
	n := 0
	place := func(now time.Duration, j *model.Job, id string, victims ...string) {
		t.Helper()
		g := placement(j, id, "n0", victims...)
		g.Placements[0].Index = n
		n++
		b := batchOf(j, g)
		b.Now = int64(now)
		at(t, s, now, &replication.ApplyPlans{Batch: b})
		at(t, s, now, &replication.UpdateAllocs{Updates: []apply.ClientUpdate{{AllocID: id, Status: model.ClientRunning, Started: true, StartTime: int64(now)}}})
	}
	place(5*time.Second, web, "a1")
	place(9*time.Second, web, "a2", "a1") // in the washout
	place(20*time.Second, web, "a3", "a2")
	place(30*time.Second, s.Snapshot().Job(other.Key()), "b1")
	place(40*time.Second, web, "a4", "b1", "a1") // a1 has ended
	place(60*time.Second, web, "a5", "a4")       // after the end
	got := nextBlock(t, s).Blocks[0].Sums
	if got.Placed != 2 || got.Victims != 2 || got.HighestPriority != 70 || got.Waited < int64(40*time.Second) {
		t.Errorf("%+v", got)
	}
	if s.Snapshot().PolicyState("p").ModifyIndex >= s.Index && got.Victims == 0 {
		t.Error("sums change the rules")
	}
	restored := newServer()
	if err := restored.FSM.Restore(io.NopCloser(bytes.NewReader(s.Persist(t)))); err != nil {
		t.Fatal(err)
	}
	if snapshot.Hash(restored.Snapshot()) != snapshot.Hash(s.Snapshot()) || restored.Snapshot().PolicyTrial("p").Blocks[0].Sums != got {
		t.Error("a snapshot changes the trial")
	}
}

// Every server adds its comparisons to the sums of a version, until another run starts.
func TestReportShadow_SumsOverServers(t *testing.T) {
	s := loaded(t)
	change(t, s, replication.OpActivate, v1)
	change(t, s, replication.OpShadow, v2)
	report := &replication.ReportShadow{Version: v2, Sums: model.ShadowSums{
		Compared: 3, Active: model.PolicySums{Victims: 2, LostWork: 10, HighestPriority: 7}, Shadow: model.PolicySums{Victims: 1, BudgetViolations: 1, HighestPriority: 5},
	}}
	s.MustDo(t, report)
	report.Sums.Active.HighestPriority = 9
	s.MustDo(t, report)
	want := model.ShadowSums{
		Compared: 6, Active: model.PolicySums{Victims: 4, LostWork: 20, HighestPriority: 9}, Shadow: model.PolicySums{Victims: 2, BudgetViolations: 2, HighestPriority: 5},
	}
	if got := s.Snapshot().PolicyVersion(v2).Shadow; got != want {
		t.Errorf("%+v", got)
	}
	refuses(t, s, replication.CodeNotFound, "not found", &replication.ReportShadow{Version: "sha256:v9"})
	change(t, s, replication.OpUnshadow, "")
	if change(t, s, replication.OpShadow, v2); s.Snapshot().PolicyVersion(v2).Shadow != (model.ShadowSums{}) {
		t.Error("another run continues the sums")
	}
}
