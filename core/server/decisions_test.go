package server

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/storage/history"
)

// memoryHistory holds records in memory. It outlives the publisher that writes it.
type memoryHistory struct {
	mu   sync.Mutex
	list []history.Record
}

func (h *memoryHistory) Append(topic string, index, seq uint64, data []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, history.Record{Topic: topic, Position: history.Position{Index: index, Seq: seq}, Data: slices.Clone(data)})
	return nil
}

func (h *memoryHistory) List(q history.Query) ([]history.Record, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []history.Record
	for _, r := range slices.Backward(h.list) {
		if r.Topic == q.Topic && (q.From == 0 || r.Index <= q.From) && (q.After == nil || r.Index < q.After.Index) {
			out = append(out, r)
		}
	}
	return out, nil
}

// The reasons of an eviction are the same on every server, whichever decided, and are read
// from the history after a restart.
func TestServer_EveryServerHasReasonsOfEviction(t *testing.T) {
	var stored []*memoryHistory // one for each server
	runServers(t, 3, func(c *Config) {
		stored = append(stored, &memoryHistory{})
		c.History = stored[len(stored)-1]
	}, func(w *harness) {
		w.enablePreemption()
		w.addNodes(3)
		w.registerJob(coretest.Job("low").Priority(20).Count(2).Ask(400, 400, 0))
		w.registerJob(coretest.Job("middle").Priority(40).Count(5).Ask(400, 400, 0))
		w.waitIdle()
		w.registerJob(coretest.Job("high").Priority(80).Ask(800, 800, 0))
		w.waitIdle()
		w.expectLiveCount("high", 1)
		w.checkStatesEqual()
		var first []*eventsink.Decision
		for _, m := range w.members {
			list, err := m.server.Decisions(w.ctx, eventsink.DecisionQuery{JobID: "high"})
			if err != nil || len(list) != 1 {
				t.Fatalf("server %s has decisions %+v, %v", m.id, list, err)
			}
			if first == nil {
				first = list
			}
			x, _ := json.Marshal(first)
			y, _ := json.Marshal(list)
			if string(x) != string(y) {
				t.Errorf("server %s has another record:\n%s\n%s", m.id, x, y)
			}
		}
		d := first[0]
		why := d.Why
		if why == nil || len(why.Text) != 2 || why.Selector.Version != d.PolicyVersion || why.Selector.Hook == "" || len(why.Ranked) == 0 || why.Ranked[0].NodeID != d.NodeID {
			t.Fatalf("reasons %+v of %+v", why, d)
		}
		evicted := 0
		for _, c := range why.Candidates {
			if c.Name == "" || c.Priority == 0 {
				t.Errorf("candidate is not resolved: %+v", c)
			}
			if c.Verdict == "evicted" {
				evicted++
			}
		}
		if evicted != len(d.Victims) {
			t.Errorf("%d candidates are evicted, want %d: %+v", evicted, len(d.Victims), why.Candidates)
		}
		for _, q := range []eventsink.DecisionQuery{
			{AllocID: d.AllocID}, {AllocID: d.Victims[0].AllocID}, {EvalID: d.EvalID}, {EvalID: d.EvalID, From: d.Index, Before: d.Index + 1},
		} {
			if list, err := w.leader().server.Decisions(w.ctx, q); err != nil || len(list) != 1 {
				t.Errorf("%+v selects %+v, %v", q, list, err)
			}
		}
		if list, err := w.leader().server.Decisions(w.ctx, eventsink.DecisionQuery{EvalID: d.EvalID, From: d.Index + 1}); err != nil || len(list) != 0 {
			t.Errorf("later decisions %+v, %v", list, err)
		}
		restarted := eventsink.New(eventsink.Config{History: stored[2], Logger: slog.New(slog.DiscardHandler)})
		again, err := restarted.Decisions(w.ctx, eventsink.DecisionQuery{AllocID: d.AllocID})
		if err != nil || len(again) != 1 || !reflect.DeepEqual(again[0].Why, why) {
			t.Errorf("after a restart: %+v, %v; want the reasons %+v", again, err, why)
		}
	})
}

// The reasons of a binding's evictions name the clusters that were compared.
func TestServer_ReasonsOfBindingNameClusters(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.allowAnyPriorityGap()
		w.putCluster("m", 10)
		w.putCluster("n", 10)
		w.registerBinding("x", 1, 8, nil)
		w.registerBinding("y", 2, 8, nil)
		w.waitIdle()
		w.registerBinding("high", 10, 8, withPreemption)
		w.waitIdle()
		list, err := w.leader().server.Decisions(w.ctx, eventsink.DecisionQuery{JobID: "high"})
		if err != nil || len(list) != 1 || list[0].Why == nil {
			t.Fatalf("decisions %+v, %v", list, err)
		}
		d := list[0]
		if d.Why.Search != "clusters" || d.Why.Options != 2 || len(d.Why.Ranked) != 2 || d.Why.Ranked[0].NodeID != d.ClusterID ||
			!slices.ContainsFunc(d.Why.Candidates, func(c events.Candidate) bool { return c.AllocID == d.Victims[0].AllocID && c.Verdict == "evicted" }) {
			t.Errorf("reasons %+v of %+v", d.Why, d)
		}
	})
}
