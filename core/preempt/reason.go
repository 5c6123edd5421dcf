package preempt

import "github.com/cede-scheduler/cede/core/state"

// A Reason is the criterion by which the best option ranks before the best option of any
// other node, as the chooser's answer ordered them. It explains the choice of the node, not
// that of the victims.
type Reason struct {
	// Others is the number of other feasible options. If it is 0, no other field is set.
	Others int
	// Node is the ID of the second node; "" if all options are on one node. The comparison
	// with it failed to separate the two if By is ByOrder: then their order decided.
	Node string
	By   Criterion
	// Chosen and Second are the values compared: of a tier, where lower is better, or of
	// the score, where higher is better.
	Chosen, Second float64
}

// A Criterion is a part of the chooser's answer.
type Criterion uint8

// Criteria in the order in which they are compared. ByTier+n is tier n, from 0.
const (
	ByOrder Criterion = iota
	ByScore
	ByTier
)

// reason explains why an option ranks first. It costs a scan of the feasible options, and
// is computed on request only because servers do not explain their choices.
func (t *optionTable) reason(best int, snap *state.Snapshot) Reason {
	r := Reason{Others: len(t.at) - 1}
	second := -1
	for i := range t.at {
		if t.options.Node[i] != t.options.Node[best] && (second < 0 || t.better(i, second)) {
			second = i
		}
	}
	if second < 0 {
		return r
	}
	r.Node = snap.NodeAt(t.options.Node[second]).ID
	r.By, r.Chosen, r.Second = t.criterion(best, second)
	return r
}

// criterion returns the first criterion that separates two options, with their values. It
// compares in the order of better.
func (t *optionTable) criterion(i, j int) (by Criterion, x, y float64) {
	for n, tier := range &t.scores.Tiers {
		if tier[i] != tier[j] {
			return ByTier + Criterion(n), float64(tier[i]), float64(tier[j])
		}
	}
	if t.scores.Score[i] != t.scores.Score[j] {
		return ByScore, t.scores.Score[i], t.scores.Score[j]
	}
	return ByOrder, 0, 0
}
