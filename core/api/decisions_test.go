package api

import (
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/client"
)

// The victim, the placement and the evaluation lead to the same decision, and a token of
// one namespace sees no objects of another.
func TestDecisions_ExplainEviction(t *testing.T) {
	w := start(t)
	ctx := t.Context()
	w.enablePreemption()
	w.addNode("n1", 100, 1000)
	low := job("low", 20, 2, 40, 10)
	w.register(low)
	w.reportRunning()
	high := w.register(job("high", 80, 1, 50, 10))
	w.awaitEval(high.EvalID)
	byEval, _, err := w.client.Evaluations().Decisions(ctx, high.EvalID, nil)
	w.check(err)
	if len(byEval) != 1 || byEval[0].Why == nil || len(byEval[0].Victims) != 1 || byEval[0].JobID != "high" || byEval[0].Priority != 80 {
		t.Fatalf("decisions %+v", byEval)
	}
	d := byEval[0]
	if len(d.Why.Text) != 2 || d.Why.Ranked[0].NodeID != "n1" || len(d.Why.Ranked[0].Tiers) != 4 || len(d.Why.Candidates) != 2 || d.Why.Selector.Version != d.PolicyVersion {
		t.Errorf("reasons %+v", d.Why)
	}
	if got := d.Why.Candidates[0]; got.AllocID != d.Victims[0].AllocID || got.Verdict != "evicted" || got.JobID != "low" || got.Priority != 20 {
		t.Errorf("first candidate %+v, victims %+v", got, d.Victims)
	}
	if got := d.Why.Candidates[1]; got.Verdict == "evicted" || !strings.HasPrefix(got.Name, "low.") {
		t.Errorf("second candidate %+v", got)
	}
	for _, id := range []string{d.AllocID, d.Victims[0].AllocID, d.Victims[0].AllocID[:10]} {
		list, _, err := w.client.Allocations().Decisions(ctx, id, nil)
		w.check(err)
		if len(list) != 1 || list[0].Index != d.Index {
			t.Errorf("decisions of %s: %+v", id, list)
		}
	}
	what, _, err := w.client.Allocations().WhatIf(ctx, d.Victims[0].AllocID[:10], nil)
	w.check(err)
	if len(what.Text) != 2 || what.Index != d.Index || what.Victim.AllocID != d.Victims[0].AllocID || what.By.JobID != "high" || what.Evaluations < 3 {
		t.Errorf("what if: %+v", what)
	}
	// The other instance of the job has the priority of the victim, whatever it is.
	if len(what.Changes) == 0 || what.Changes[0].Kind != "higher-priority" || len(what.Next) != 1 || what.Next[0].AllocID != d.Why.Candidates[1].AllocID {
		t.Errorf("changes %+v, next %+v", what.Changes, what.Next)
	}
	for _, id := range []string{d.AllocID, d.Why.Candidates[1].AllocID, "unknown"} {
		if _, _, err := w.client.Allocations().WhatIf(ctx, id, nil); !client.IsNotFound(err) {
			t.Errorf("what if %s, which was not evicted: %v", id, err)
		}
	}
	risk, _, err := w.client.Nodes().Risk(ctx, "n1", nil)
	w.check(err)
	if last := len(risk.Levels) - 1; last < 0 || risk.Resource != "cpu" || risk.Amount != 11 || len(risk.Levels[last].Victims) != 1 || risk.Levels[last].Victims[0].JobID != "low" {
		t.Errorf("risk %+v", risk)
	}
	if _, _, err := w.client.Nodes().Risk(ctx, "unknown", nil); !client.IsNotFound(err) {
		t.Errorf("unknown node: %v", err)
	}
	if list, _, err := w.client.Allocations().Decisions(ctx, d.Why.Candidates[1].AllocID, nil); err != nil || len(list) != 0 {
		t.Errorf("a candidate that stays has decisions %+v, %v", list, err)
	}
	if _, _, err := w.client.Allocations().Decisions(ctx, "unknown", nil); !client.IsNotFound(err) {
		t.Errorf("unknown allocation: %v", err)
	}
	if _, _, err := w.client.Evaluations().Decisions(ctx, "unknown", nil); !client.IsNotFound(err) {
		t.Errorf("unknown evaluation: %v", err)
	}
}
