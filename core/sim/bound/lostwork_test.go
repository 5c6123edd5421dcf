package bound_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/bound"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// At 0, first needs half of the cluster: at least a, which lost one hour, is evicted. At
// 30m, third needs half of it again, because b was stopped and second took its place: second has run for
// 10 minutes, first for 30. Work of one hour on half of the cluster costs half an hour.
const contended = `
version: 1
name: contended
nodes: [{id: n1, capacity: {cpu: 1000}}]
jobs:
  - {id: a, priority: 10, groups: [{name: g, resources: {cpu: 500}}]}
  - {id: b, priority: 10, groups: [{name: g, resources: {cpu: 500}}]}
  - {id: first, priority: 40, groups: [{name: g, resources: {cpu: 500}}]}
  - {id: second, priority: 60, groups: [{name: g, resources: {cpu: 500}}]}
  - {id: third, priority: 90, groups: [{name: g, resources: {cpu: 500}}]}
running:
  - {id: a0, job: a, group: g, node: n1, startedAt: -1h}
  - {id: b0, job: b, group: g, node: n1, startedAt: -2h}
events:
  - {at: 0s, submit: first}
  - {at: 10m, stop: b}
  - {at: 20m, submit: second}
  - {at: 30m, submit: third}
until: 1h
`

func TestFinish_BoundsTheRun(t *testing.T) {
	t.Parallel()
	file, err := scenario.Decode("contended", strings.NewReader(contended))
	if err != nil {
		t.Fatal(err)
	}
	r := bound.NewRecorder(bound.DefaultLimit)
	run, err := sim.Play(context.Background(), file, sim.Options{Policy: "least-waste", Resolve: resolve, Evaluated: r.Evaluated})
	if err != nil {
		t.Fatal(err)
	}
	report, err := r.Finish(file, run)
	if err != nil {
		t.Fatal(err)
	}
	var victims []string
	for _, e := range run.Result.Evicted {
		victims = append(victims, e.Alloc)
	}
	lost := lostWork(t, file, run.Result)
	t.Log(victims, time.Duration(lost), time.Duration(report.Run.LostWork))
	if want := int64(35 * time.Minute); report.Run.LostWork != want || lost < want {
		t.Errorf("lost work of %v is %v, bound %v, want %v", victims, time.Duration(lost), time.Duration(report.Run.LostWork), time.Duration(want))
	}
	// Four instances are desired at the end, and two fit.
	if report.Run.Unplaced != 2 || run.Metrics.Unplaced != 2 {
		t.Errorf("%d unplaced, bound %d, want 2", run.Metrics.Unplaced, report.Run.Unplaced)
	}
	// Of the priorities 10, 40, 60 and 90, the two highest fit.
	if report.Run.UnplacedWeightBound != 11+41 || *run.Metrics.UnplacedWeightBound != 11+41 || *run.Metrics.UnplacedWeight != 11+41 {
		t.Errorf("weight %d, bounds %+v, want 52", *run.Metrics.UnplacedWeight, report.Run)
	}
	if m := run.Metrics; m.LostWorkBound == nil || *m.LostWorkBound != 0.583333 || *m.UnplacedBound != 2 {
		t.Errorf("metrics %+v", m.Optimality)
	}
}
