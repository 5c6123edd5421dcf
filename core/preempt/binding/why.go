package binding

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// explain returns why the option at best was chosen, by the answer about all options with
// their victims.
func (s *search) explain(answer *sdk.BindingVictims, best int) *model.Choice {
	order := []int{best}
	for i := range s.options {
		if i != best {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order[1:], func(a, b int) int {
		switch {
		case ranksBefore(answer, a, b):
			return -1
		case ranksBefore(answer, b, a):
			return 1
		}
		return 0
	})
	why := s.explainVictims(s.result.Victims, s.options[best].candidates)
	for _, i := range order[:min(len(order), model.MaxRanked)] {
		o := &s.options[i]
		r := model.RankedOption{NodeID: s.req.Clusters[o.cluster].ID, Victims: len(o.rows), Highest: math.MinInt32}
		for k := range answer.Tiers {
			r.Tiers[k] = answer.Tiers[k][i]
		}
		for k := range o.rows {
			r.Highest = max(r.Highest, o.rows[k].priority)
		}
		why.Ranked = append(why.Ranked, r)
	}
	return why
}

// explainVictims returns an explanation without options. Of the candidates, it lists
// those that are evicted.
func (s *search) explainVictims(victims []Victim, candidates int) *model.Choice {
	why := &model.Choice{Search: model.SearchClusters, Options: len(s.options), Ceiling: s.ceiling}
	if s.version != nil {
		why.Selector = model.PolicyCall{
			Version: s.version.ID, Hook: hookBindings, Columns: uint64(sdk.BindingColumns), Part: s.version.PartOf(policy.HookPreemptBindings),
		}
		why.Chooser = why.Selector
	}
	for i := range victims[:min(len(victims), model.MaxCandidates)] {
		why.Candidates = append(why.Candidates, model.Candidate{AllocID: victims[i].ID, Verdict: model.Evicted})
	}
	why.Omitted = max(0, candidates-len(why.Candidates))
	return why
}
