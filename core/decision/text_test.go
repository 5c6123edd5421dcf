package decision_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/decision"
	"github.com/cede-scheduler/cede/core/model"
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
