package metrics

// Replicas counts replicas of bindings. All fields are nil if there are no bindings.
type Replicas struct {
	BoundReplicas   *int `json:"boundReplicas,omitempty"`
	UnboundReplicas *int `json:"unboundReplicas,omitempty"`
	EvictedReplicas *int `json:"evictedReplicas,omitempty"`
}

// Optimality compares a run with lower bounds, which core/sim/bound computes. Work is in
// hours of the whole cluster. All fields are nil if no bounds were requested.
type Optimality struct {
	BoundedDecisions    *int     `json:"boundedDecisions,omitempty"`
	ProvenOptimal       *float64 `json:"provenOptimal,omitempty"`
	MissedPlacements    *int     `json:"missedPlacements,omitempty"`
	DecisionLoss        *float64 `json:"decisionLoss,omitempty"`
	DecisionLossBound   *float64 `json:"decisionLossBound,omitempty"`
	OptimalityGap       *float64 `json:"optimalityGap,omitempty"`
	DecisionRegret      *float64 `json:"decisionRegret,omitempty"`
	UnplacedBound       *int     `json:"unplacedBound,omitempty"`
	UnplacedWeight      *int     `json:"unplacedWeight,omitempty"`
	UnplacedWeightBound *int     `json:"unplacedWeightBound,omitempty"`
	LostWorkBound       *float64 `json:"lostWorkBound,omitempty"`
}

// optimality adds the figures of the comparison with bounds.
func (f *flat) optimality(o *Optimality) {
	f.maybe("boundedDecisions", o.BoundedDecisions)
	f.maybeReal("provenOptimal", o.ProvenOptimal)
	f.maybe("missedPlacements", o.MissedPlacements)
	f.maybeReal("decisionLoss", o.DecisionLoss)
	f.maybeReal("decisionLossBound", o.DecisionLossBound)
	f.maybeReal("optimalityGap", o.OptimalityGap)
	f.maybeReal("decisionRegret", o.DecisionRegret)
	f.maybe("unplacedBound", o.UnplacedBound)
	f.maybe("unplacedWeight", o.UnplacedWeight)
	f.maybe("unplacedWeightBound", o.UnplacedWeightBound)
	f.maybeReal("lostWorkBound", o.LostWorkBound)
}

func (f *flat) maybeReal(name string, v *float64) {
	if v != nil {
		f.add(name, *v)
	}
}

// optimalityDefinitions describe the comparison with bounds.
var optimalityDefinitions = []Definition{
	{
		"boundedDecisions", "", Lower, true, false,
		"Evaluations that evicted or left work unplaced, and that --bound compared with the best possible answer. Absent, as " +
			"the following metrics, without --bound.",
	},
	{
		"provenOptimal", "share", Higher, false, false,
		"Share of boundedDecisions for which it is proven that no answer places the same instances at less lost work, and none " +
			"places one more.",
	},
	{
		"missedPlacements", "", Lower, false, false,
		"Decisions that left work unplaced although one more instance could have been placed by evicting lower priorities.",
	},
	{
		"decisionLoss", "cluster-hours", Lower, false, false,
		"Lost work of the decisions: wastedWork with each resource as a share of the cluster, added up. 1 is what the whole " +
			"cluster does in an hour with one resource.",
	},
	{
		"decisionLossBound", "cluster-hours", Lower, true, false,
		"Sum over decisions of the lower bound on their lost work, each in the state that the run had reached.",
	},
	{
		"optimalityGap", "share", Lower, false, false,
		"(decisionLoss − decisionLossBound) ÷ decisionLoss. A gap of 0.47 means within 1.9 × of anything possible. Absent if " +
			"nothing was lost.",
	},
	{
		"decisionRegret", "cluster-hours", Lower, false, false,
		"The part of decisionLoss that the best known answers to the same decisions avoid: the gap without what is not proven.",
	},
	{
		"unplacedBound", "", Lower, true, false,
		"A lower bound on unplaced for every policy and schedule, also one with knowledge of the future.",
	},
	{
		"unplacedWeight", "", Lower, false, false,
		"The instances of unplaced, each with the priority of its job plus 1 as its weight, or 1 if the priority is negative.",
	},
	{
		"unplacedWeightBound", "", Lower, true, false,
		"A lower bound on unplacedWeight for every policy and schedule, also one with knowledge of the future.",
	},
	{
		"lostWorkBound", "cluster-hours", Lower, true, false,
		"A lower bound on the lost work of every schedule that starts the same instances in the same instants and evicts in the " +
			"same instants, with any nodes and victims.",
	},
}
