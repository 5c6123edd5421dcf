package worker_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/worker"
)

// If a plan is committed in part while preemption is observed, the decisions are those of the
// state after the rejection, for the instances that still wait, and are recorded once.
func TestWorker_ObservesAfterPartialRejection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recorded []*model.Observation
		d := newFixture(t, 1, func(c *worker.Config) {
			c.Observe = func(r worker.Report) { recorded = append(recorded, r.Observed...) }
		})
		low := coretest.Job("low").Priority(20).Count(4).Ask(3000, 100, 0).Obj()
		high := coretest.Job("high").Priority(80).Count(3).Ask(3000, 100, 0).Obj()
		fill := func(node string, slot int) {
			txn := d.store.Begin(d.store.Snapshot().Index() + 1)
			txn.AllocWriter().Upsert(coretest.Running("low-"+node, low, 0, slot, node))
			txn.Commit()
		}
		coretest.PutJobs(d.store, low, high)
		txn := d.store.Begin(d.store.Snapshot().Index() + 1)
		config := coretest.AllPreempt()
		config.Preemption[model.JobService], config.Observe[model.JobService] = false, true
		txn.ConfigWriter().Set(config)
		txn.Commit()
		fill("n00000", 0)
		fill("n00001", 1)
		plans := 0
		d.plan = func(_ context.Context, p *model.Plan) (*model.PlanResult, error) {
			plans++
			if len(p.Groups) != 2 {
				t.Fatalf("plan %d has %d groups", plans, len(p.Groups))
			}
			placed := p.Groups[0].Placements[0]
			txn := d.store.Begin(d.store.Snapshot().Index() + 1)
			txn.AllocWriter().Upsert(placed)
			txn.Commit()
			fill(p.Groups[1].Placements[0].NodeID, 2) // another job was faster
			return &model.PlanResult{Committed: []int{0}, Rejected: []model.Rejection{{Group: 1, Reason: "overtaken"}}, RefreshIndex: d.store.Snapshot().Index()}, nil
		}
		e := coretest.Eval(high)
		e.CreateIndex, e.ModifyIndex = d.store.Snapshot().Index(), d.store.Snapshot().Index()
		d.broker.Enqueue(e)
		stop := d.run()
		time.Sleep(time.Second)
		stop()
		if plans != 1 || len(d.written) != 2 || d.written[1].Status != model.EvalBlocked || d.written[1].Queued["g"] != 2 {
			t.Fatalf("%d plans, written %+v", plans, d.written)
		}
		var victims []string
		for _, o := range d.written[1].Observed {
			victims = append(victims, o.Victims...)
			if o.PlannedOn != d.store.Snapshot().Index() {
				t.Errorf("a decision was made on state %d, the newest is %d", o.PlannedOn, d.store.Snapshot().Index())
			}
		}
		slices.Sort(victims)
		if len(victims) != 2 || len(slices.Compact(victims)) != 2 || !slices.Equal(recorded, d.written[1].Observed) {
			t.Errorf("observed %v, recorded %d decisions", victims, len(recorded))
		}
	})
}
