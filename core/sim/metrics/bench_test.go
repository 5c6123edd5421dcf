package metrics

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
)

// history is a run of the size of the google-2011 trace part.
type history struct {
	cfg    Config
	allocs []*model.Allocation
}

func newHistory(nodes, allocs int) *history {
	h := &history{cfg: Config{Dims: model.NewDimensions()}}
	for i := range nodes {
		n := &model.Node{ID: fmt.Sprintf("node-%d", i), Capacity: model.Resources{"cpu": 16_000, "memory": 64_000, "disk": 500_000}}
		n.Compile(h.cfg.Dims)
		h.cfg.Nodes = append(h.cfg.Nodes, n)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for len(h.allocs) < allocs {
		count := min(1+rng.IntN(40), allocs-len(h.allocs))
		g := &model.Group{Name: "g", Count: count, Resources: model.Resources{
			"cpu": rng.Int64N(900), "memory": rng.Int64N(3000), "disk": rng.Int64N(100),
		}}
		j := &model.Job{ID: fmt.Sprintf("job-%d", len(h.cfg.Jobs)), Namespace: "default", Priority: rng.Int32N(12), Groups: []*model.Group{g}}
		j.Compile(h.cfg.Dims)
		h.cfg.Jobs = append(h.cfg.Jobs, j)
		for i := range count {
			h.allocs = append(h.allocs, &model.Allocation{
				ID: model.AllocName(g, i, 0), Job: j, Group: g, Index: i, NodeID: fmt.Sprintf("node-%d", rng.IntN(nodes)),
			})
		}
	}
	return h
}

// play places all allocations, a fifth of them by eviction, and ends some.
func (h *history) play() (*Collector, int) {
	c := New(h.cfg)
	rng := rand.New(rand.NewPCG(3, 4))
	var live []*model.Allocation
	var choice Choice
	calls := 0
	var queued *model.Group
	for i, a := range h.allocs {
		at := int64(i) * 1e7
		if a.Group != queued {
			queued = a.Group
			c.Submitted(at, a.Job)
			c.Queued(at, a.Group, a.Group.Count)
			calls += 2
		}
		if i%5 == 0 && len(live) > 4 {
			var victims []Victim
			choice.Reset(1000, 1000)
			for range 1 + rng.IntN(3) {
				at := rng.IntN(len(live))
				victims = append(victims, Victim{Alloc: live[at].ID, LostWork: 1e9})
				live[at] = live[len(live)-1]
				live = live[:len(live)-1]
			}
			for range 12 {
				choice.Add(rng.Int64N(900), rng.Int64N(900))
			}
			c.Placed(at, a, victims, &choice)
		} else {
			c.Placed(at, a, nil, nil)
		}
		c.Started(at, a)
		c.EvaluationProcessed(1)
		calls += 3
		if i%7 == 0 && len(live) > 0 {
			c.Finished(at, live[0])
			live[0] = live[len(live)-1]
			live = live[:len(live)-1]
			calls++
		}
		live = append(live, a)
	}
	return c, calls
}

func TestCollector_IsDeterministic(t *testing.T) {
	t.Parallel()
	h := newHistory(40, 3000)
	var first []byte
	for range 3 {
		c, _ := h.play()
		m := c.Finish(int64(len(h.allocs)) * 1e7)
		text, err := json.Marshal([]any{m, c.Series()})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = text
		}
		if string(text) != string(first) {
			t.Fatal("results of equal runs differ")
		}
	}
}

// BenchmarkCollector measures a run of 190,926 tasks on 12,477 machines.
func BenchmarkCollector(b *testing.B) {
	h := newHistory(12_477, 190_926)
	b.ReportAllocs()
	for b.Loop() {
		c, calls := h.play()
		c.Finish(int64(len(h.allocs)) * 1e7)
		c.Series()
		b.ReportMetric(float64(calls), "calls/op")
	}
}
