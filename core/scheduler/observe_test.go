package scheduler_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/lookahead"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// onAndObserved returns the state with preemption of service jobs on, and only observed.
func onAndObserved(s *state.Store) (on, observed *state.Snapshot) {
	set := func(change func(*model.SchedulerConfig)) *state.Snapshot {
		fork := s.Snapshot().Fork(s.Snapshot().Index() + 1)
		c := coretest.AllPreempt()
		change(c)
		fork.ConfigWriter().Set(c)
		return fork.Snapshot()
	}
	return set(func(*model.SchedulerConfig) {}), set(func(c *model.SchedulerConfig) {
		c.Preemption[model.JobService], c.Observe[model.JobService] = false, true
	})
}

// The observed decisions are those that the same evaluation makes if preemption is on, with
// the same reasons, and the plan evicts nothing.
func TestProcess_ObservesTheDecisionsOfPreemption(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 7, 40} {
		s := coretest.FilledStore(20, 10)
		job := coretest.PreemptingJob(count).Obj()
		coretest.PutJobs(s, job)
		on, observed := onAndObserved(s)
		sched := lookahead.NewScheduler(scheduler.Config{Policies: coretest.Policies(), Explain: true})
		eval := coretest.Eval(job)
		want, err := sched.Process(eval, on, 5)
		must(err)
		got, err := sched.Process(eval, observed, 5)
		must(err)
		if victims(got.Plan) != nil || got.Queued["g"] != count || got.Failed["g"].NoEviction != "preemption is only observed for service jobs" {
			t.Fatalf("the plan evicts %v, %v, %s", victims(got.Plan), got.Queued, got.Failed["g"])
		}
		var all []string
		for _, o := range got.Observed {
			all = append(all, o.Victims...)
			if o.Group != "g" || o.NodeID == "" || o.Choice == nil || o.PlannedOn != observed.Index() || o.PlannedAt != 5 {
				t.Errorf("%+v", o)
			}
		}
		slices.Sort(all)
		if len(all) == 0 || !slices.Equal(all, victims(want.Plan)) {
			t.Errorf("%d instances: observed %v, evicted %v", count, all, victims(want.Plan))
		}
		if len(want.Observed) > 0 {
			t.Error("decisions are observed although preemption is on")
		}
		again, err := sched.Process(eval, observed, 5)
		must(err)
		if !reflect.DeepEqual(again.Observed, got.Observed) {
			t.Error("another evaluation observes other decisions")
		}
	}
}

// victims returns the victims of a plan, ascending.
func victims(p *model.Plan) (list []string) {
	for i := range p.Groups {
		for _, e := range p.Groups[i].Evictions {
			list = append(list, e.AllocID)
		}
	}
	slices.Sort(list)
	return list
}

// Nothing is observed for jobs that are placed, never preempt, or were removed.
func TestProcess_ObservesOnlyWaitingJobs(t *testing.T) {
	t.Parallel()
	s := coretest.FilledStore(3, 10)
	small := coretest.Job("small").Priority(90).Obj()
	never := coretest.PreemptingJob(1).Change(func(j *model.Job) { j.ID, j.NeverPreempts = "never", true }).Obj()
	batch := coretest.PreemptingJob(1).Type(model.JobBatch).Change(func(j *model.Job) { j.ID = "batch" }).Obj()
	coretest.PutJobs(s, small, never, batch)
	_, observed := onAndObserved(s)
	sched := scheduler.New(scheduler.Config{Policies: coretest.Policies(), Explain: true})
	for _, job := range []*model.Job{small, never, batch, coretest.Job("removed").Obj()} {
		out, err := sched.Process(coretest.Eval(job), observed, 5)
		must(err)
		if len(out.Observed) > 0 {
			t.Errorf("job %s: %+v", job.ID, out.Observed[0])
		}
	}
}

// A fault of the policy is reported, and nothing is observed.
func TestProcess_ReportsFaultsWhileObserving(t *testing.T) {
	t.Parallel()
	s := coretest.FilledStore(3, 10)
	job := coretest.PreemptingJob(1).Change(func(j *model.Job) { j.Policy = "broken" }).Obj()
	coretest.PutJobs(s, job)
	_, observed := onAndObserved(s)
	sched := scheduler.New(scheduler.Config{Policies: coretest.Policies(func() sdk.Policy { return brokenPolicy{} }), Explain: true})
	out, err := sched.Process(coretest.Eval(job), observed, 5)
	must(err)
	if out.Fault == nil || len(out.Observed) > 0 || victims(out.Plan) != nil || out.Placed() {
		t.Errorf("fault %v, observed %v", out.Fault, out.Observed)
	}
}

// brokenPolicy fails.
type brokenPolicy struct{}

func (brokenPolicy) Info() sdk.Info { return sdk.Info{Name: "broken", Delta: 10} }

func (brokenPolicy) ScoreVictims(*sdk.Candidates, *sdk.VictimScores) error {
	return errors.New("broken")
}

func TestMergeObservations_KeepsEqualDecisions(t *testing.T) {
	t.Parallel()
	first := []*model.Observation{{Group: "g", NodeID: "n", Policy: "v", Victims: []string{"a"}, PlannedOn: 3}}
	same := []*model.Observation{{Group: "g", NodeID: "n", Policy: "v", Victims: []string{"a"}, PlannedOn: 9, AllocID: "other"}}
	other := []*model.Observation{{Group: "g", NodeID: "n", Policy: "v", Victims: []string{"b"}, PlannedOn: 9}}
	if got := model.MergeObservations(first, same); got[0] != first[0] {
		t.Error("an equal decision replaces the first one")
	}
	if got := model.MergeObservations(first, other); got[0] != other[0] {
		t.Error("another decision is dropped")
	}
	if got := model.MergeObservations(first, nil); got != nil {
		t.Error("a decision that is not made any more remains")
	}
}
