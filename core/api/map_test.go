package api

import (
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// The map holds every node, and the allocations that hold capacity.
func TestMap_HoldsNodesAndAllocations(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.addNode("n1", 1000, 1000)
	w.addNode("n2", 1000, 1000)
	w.awaitEval(w.register(job("web", 70, 3, 400, 100)).EvalID)
	w.awaitEval(w.register(job("gone", 50, 1, 100, 100)).EvalID)
	_, err := w.client.Jobs().Stop(ctx, "gone", nil)
	w.check(err)
	_, err = w.client.Nodes().Eligibility(ctx, "n2", false)
	w.check(err)
	var m *client.Map
	w.waitFor("the stopped job leaves the map", func() bool {
		m, _, err = w.client.Nodes().Map(ctx, nil)
		w.check(err)
		return len(m.Allocs.ID) == 3
	})
	if !slices.Equal(m.Nodes.ID, []string{"n1", "n2"}) || !slices.Equal(m.Nodes.State, []string{"ready", "ineligible"}) {
		t.Errorf("nodes %v in states %v", m.Nodes.ID, m.Nodes.State)
	}
	if len(m.Groups) != 1 || m.Groups[0].JobID != "web" || m.Groups[0].Priority != 70 {
		t.Fatalf("groups %+v", m.Groups)
	}
	cpu := slices.Index(m.Resources, "cpu")
	if cpu < 0 || m.Groups[0].Use[cpu] != 400 || m.Nodes.Capacity[0][cpu] != 1000 {
		t.Errorf("amounts %v: use %v, capacity %v", m.Resources, m.Groups[0].Use, m.Nodes.Capacity)
	}
	used := make([]int64, 2)
	for _, node := range m.Allocs.Node {
		used[node] += 400
	}
	if used[0]+used[1] != 1200 || used[0] > 1000 || used[1] > 1000 {
		t.Errorf("used %v", used)
	}
	if len(m.Allocs.StartTime) != 3 || m.Index == 0 {
		t.Errorf("%+v", m)
	}
}
