package preempt_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/preempt"
)

// The reason names the best option of another node, and the values that separate the two.
func TestFinder_ReasonNamesSecondNode(t *testing.T) {
	t.Parallel()
	explained := 0
	check(t, func(t *rapid.T) {
		w := drawFixture(t, features{ports: true})
		f := &preempt.Finder{}
		r := w.request(coretest.Policies(), coretest.Policies().Default())
		r.Explain = true
		if err := f.Start(w.snap, r); err != nil {
			t.Fatal(err)
		}
		defer f.Release()
		var nodes []string // of all options, the best first
		_ = f.EachRanked(func(c preempt.Choice) bool {
			nodes = append(nodes, w.snap.NodeAt(c.Pos).ID)
			return true
		})
		best, ok, err := f.Best()
		if err != nil || !ok {
			return
		}
		second := ""
		for _, id := range nodes {
			if second == "" && id != w.snap.NodeAt(best.Pos).ID {
				second = id
			}
		}
		reason := best.Reason
		if reason.Others != len(nodes)-1 || reason.Node != second {
			t.Fatalf("%+v, want the second node %q of %v", reason, second, nodes)
		}
		if reason.By == preempt.ByScore && (reason.Chosen <= reason.Second || reason.Chosen != best.Score) || reason.By >= preempt.ByTier && reason.Chosen >= reason.Second {
			t.Fatalf("%+v does not prefer the choice", reason)
		}
		if reason.By != preempt.ByOrder {
			explained++
		}
	})
	if explained == 0 {
		t.Error("no case has two nodes")
	}
}
