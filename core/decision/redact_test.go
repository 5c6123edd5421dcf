package decision_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/decision"
	"github.com/cede-scheduler/cede/core/events"
)

func TestRedact_HidesOtherNamespaces(t *testing.T) {
	t.Parallel()
	p := &events.DecisionPayload{
		JobID: "shop", AllocID: "placed",
		Victims: []events.Victim{
			{AllocID: "v1", JobID: "mine", Namespace: "a", Priority: 10},
			{AllocID: "secret1", JobID: "secret2", Namespace: "b", Priority: 20, LostWork: 5},
		},
		Why: &events.Why{
			Text: []string{"n1 was the only option.", "Of 3 candidates …; secret3 was next in line."},
			Candidates: []events.Candidate{
				{AllocID: "v1", Name: "mine.app[0]", Namespace: "a", Verdict: "evicted"},
				{AllocID: "secret4", Name: "secret3", Namespace: "b", Verdict: "unneeded", Priority: 30},
			},
		},
	}
	before, _ := json.Marshal(p)
	only := func(ns string) func(string) bool { return func(x string) bool { return x == ns } }
	got := decision.Redact(p, "a", only("a"))
	text, _ := json.Marshal(got)
	if strings.Contains(string(text), "secret") || got.Victims[1].Priority != 20 || got.Victims[1].LostWork != 5 {
		t.Errorf("redacted: %s", text)
	}
	if got.Why.Candidates[1].Name != decision.Hidden || got.Why.Candidates[1].Priority != 30 || !strings.Contains(got.Why.Text[1], decision.Hidden) {
		t.Errorf("redacted candidates: %+v, %q", got.Why.Candidates, got.Why.Text)
	}
	if after, _ := json.Marshal(p); string(after) != string(before) {
		t.Error("the record was changed")
	}
	if got := decision.Redact(p, "a", func(string) bool { return true }); got != p {
		t.Error("a reader of every namespace gets a copy")
	}
	if got := decision.Redact(p, "a", only("c")); got != nil {
		t.Errorf("a reader of another namespace gets %+v", got)
	}
}
