package decision_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/decision"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

func TestNodeReason_NamesCriterion(t *testing.T) {
	t.Parallel()
	ranked := func(tier int64, score float64, node string) model.RankedOption {
		return model.RankedOption{NodeID: node, Tiers: [4]int64{0, tier}, Score: score}
	}
	for _, tc := range []struct {
		choice model.Choice
		want   string
	}{
		{model.Choice{}, ""},
		{model.Choice{Options: 1, Ranked: []model.RankedOption{ranked(1, 0, "n1")}}, ""},
		{model.Choice{Options: 3, Ranked: []model.RankedOption{ranked(1, 0, "n1")}}, "every option is on this node"},
		{model.Choice{Options: 3, Ranked: []model.RankedOption{ranked(1, 0.5, "n1"), ranked(1, 0.5, "n2")}}, "equal to n2: the order of nodes decided"},
		{model.Choice{Options: 3, Ranked: []model.RankedOption{ranked(1, 0.5, "n1"), ranked(1, 0.25, "n2")}}, "score 0.5 against 0.25 of n2"},
		{model.Choice{Options: 3, Ranked: []model.RankedOption{ranked(20, 0, "n1"), ranked(50, 1, "n2")}}, "tier 2 of the policy is 20 against 50 of n2"},
	} {
		if got := decision.NodeReason(&tc.choice, decision.Exact); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.choice, got, tc.want)
		}
	}
}

// Sentences name nodes as people do. Nodes with the same name keep their IDs.
func TestWhy_TextNamesNodes(t *testing.T) {
	t.Parallel()
	store := state.New()
	txn := store.Begin(1)
	for id, name := range map[string]string{"id-1": "rack1", "id-2": "rack2", "id-3": "rack1", "id-4": ""} {
		n := coretest.Node(id, 1000, 1000, 1000)
		n.Name = name
		if err := txn.NodeWriter().Upsert(n); err != nil {
			t.Fatal(err)
		}
	}
	txn.Commit()
	snap := store.Snapshot()
	for _, tc := range []struct{ first, second, want string }{
		{"id-1", "id-2", "rack1 was chosen of 2 options: score 1 against 0 of rack2."},
		{"id-1", "id-3", "id-1 was chosen of 2 options: score 1 against 0 of id-3."},
		{"id-4", "id-1", "id-4 was chosen of 2 options: score 1 against 0 of rack1."},
	} {
		c := &model.Choice{Options: 2, Ceiling: 60, Candidates: []model.Candidate{{AllocID: "a"}}, Ranked: []model.RankedOption{{NodeID: tc.first, Score: 1}, {NodeID: tc.second}}}
		w := decision.Why(c, snap)
		if w.Text[0] != tc.want {
			t.Errorf("%q, want %q", w.Text[0], tc.want)
		}
		if want := "Of the 1 candidate of the chosen option, with a priority of 60 or less, the policy selected 1."; w.Text[1] != want {
			t.Errorf("%q, want %q", w.Text[1], want)
		}
		if w.Ranked[0].NodeID != tc.first || c.Ranked[0].NodeID != tc.first {
			t.Errorf("the name replaced the ID in %+v or %+v", w.Ranked, c.Ranked)
		}
	}
}
