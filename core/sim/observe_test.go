package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/sim"
)

// observing is a full node, on which a job arrives that may only observe, and later one that
// may evict.
const observing = `
scheduler: {preemption: {service: %s}}
nodes: [{id: n1, capacity: {cpu: 10}}]
jobs:
  - {id: low, priority: 20, groups: [{name: g, count: 2, resources: {cpu: 4}}]}
  - {id: tiny, type: batch, priority: 90, groups: [{name: g, count: 1, resources: {cpu: 2}, duration: 30s}]}
  - {id: high, priority: 80, groups: [{name: g, count: 1, resources: {cpu: 4}}]}
events:
  - {at: 0s, submit: low}
  - {at: 1s, submit: tiny}
  - {at: 10s, submit: high}
until: 60s
`

// An observed run records the decision that a run with preemption carries out, once, and
// evicts nothing. The end of another job does not make room, and leads to no second record.
func TestPlay_ObservesWithoutEvicting(t *testing.T) {
	t.Parallel()
	on := play(t, decode(t, fmt.Sprintf(observing, "true")), sim.Options{Explain: true}).Result
	observed := play(t, decode(t, fmt.Sprintf(observing, "observe")), sim.Options{Explain: true}).Result
	if len(on.Evicted) != 1 || len(on.Observed) != 0 {
		t.Fatalf("with preemption: %+v, observed %+v", on.Evicted, on.Observed)
	}
	if len(observed.Evicted) != 0 || len(observed.Observed) != 1 || len(observed.Unplaced) != 1 {
		t.Fatalf("evicted %+v, observed %+v, unplaced %+v", observed.Evicted, observed.Observed, observed.Unplaced)
	}
	o := observed.Observed[0]
	if o.At.String() != "10s" || o.Job != "high" || o.Group != "g" || o.Node != "n1" || !slices.Equal(o.Victims, []string{on.Evicted[0].Alloc}) ||
		o.LostWork != on.Evicted[0].LostWork || o.Cost.HighestPriority != 20 || o.Why == nil || o.Why.Candidates[0].Verdict != "would be evicted" {
		t.Errorf("%+v", o)
	}
	off := play(t, decode(t, fmt.Sprintf(observing, "false")), sim.Options{}).Result
	if len(off.Observed)+len(off.Evicted) != 0 {
		t.Errorf("without preemption: %+v", off)
	}
}
