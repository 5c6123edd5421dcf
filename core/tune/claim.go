package tune

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/sim/compare"
	"github.com/cede-scheduler/cede/core/sim/statistics"
)

// A Claim compares the selected policy with the best baseline on held-out workloads.
type Claim struct {
	Policy, Against string // references
	Level           float64
	Goals           []Measure
	Constraints     []Measure // Gain is the slack: a negative interval shows a violation
	// Unmet are the constraints that no candidate of the race met, by their terms.
	Unmet []string
}

// A Measure is the median of a paired difference with its exact interval. A positive one is
// an improvement.
type Measure struct {
	Term  string // of the objective
	Gain  statistics.Interval
	Pairs int
	Known bool // there are enough pairs for the interval
}

// Better reports whether the interval excludes 0 on the side of an improvement.
func (m *Measure) Better() bool { return m.Known && m.Gain.Low > 0 }

// Worse reports whether the interval excludes 0 on the other side.
func (m *Measure) Worse() bool { return m.Known && m.Gain.High < 0 }

// Holds reports whether the selected policy is shown to be better: in a goal, with no other
// goal shown to be worse and no constraint shown to be violated. Each constraint has enough
// pairs to show a violation.
func (c *Claim) Holds() bool {
	return slices.ContainsFunc(c.Goals, func(m Measure) bool { return m.Better() }) && !c.Fails() &&
		len(c.Unmet) == 0 && len(c.unjudged()) == 0
}

// Fails reports whether the selected policy is shown to be worse, or to violate a constraint.
func (c *Claim) Fails() bool {
	shown := func(m Measure) bool { return m.Worse() }
	return slices.ContainsFunc(c.Goals, shown) || slices.ContainsFunc(c.Constraints, shown)
}

// String returns the claim as one sentence.
func (c *Claim) String() string {
	var better, worse []string
	for i := range c.Goals {
		if m := &c.Goals[i]; m.Better() {
			better = append(better, m.Term)
		} else if m.Worse() {
			worse = append(worse, m.Term)
		}
	}
	violated, unjudged := c.violations(), c.unjudged()
	list := func(terms []string) string { return strings.Join(terms, ", ") }
	switch {
	case len(c.Unmet) > 0 && (c.Policy == c.Against || len(violated) == 0):
		return fmt.Sprintf("no better than %s: no candidate met %s in the race", c.Against, constraints(c.Unmet))
	case c.Policy == c.Against:
		return "no better than " + c.Against + ": no candidate was better in the race"
	case len(violated) > 0 && len(better) > 0:
		return fmt.Sprintf("no better than %s: better in %s, but %s", c.Against, list(better), list(violated))
	case len(violated) > 0:
		return fmt.Sprintf("no better than %s: %s", c.Against, list(violated))
	case len(worse) > 0 && len(better) > 0:
		return fmt.Sprintf("no better than %s: better in %s, but worse in %s", c.Against, list(better), list(worse))
	case len(worse) > 0:
		return fmt.Sprintf("worse than %s in %s", c.Against, list(worse))
	case len(better) > 0 && len(unjudged) > 0:
		return fmt.Sprintf("no better than %s: better in %s, but too few pairs to judge %s", c.Against, list(better), constraints(unjudged))
	case len(better) > 0:
		return fmt.Sprintf("better than %s in %s", c.Against, list(better))
	}
	return "no better than " + c.Against + ": no difference is shown"
}

// violations returns each constraint that is shown to be violated, and by how much.
func (c *Claim) violations() (list []string) {
	for i := range c.Constraints {
		if m := &c.Constraints[i]; m.Worse() {
			text := fmt.Sprintf("constraint %q is violated by %s", m.Term, compare.Number(-m.Gain.Median))
			if slices.Contains(c.Unmet, m.Term) {
				text += " (no candidate met it in the race)"
			}
			list = append(list, text)
		}
	}
	return list
}

// unjudged returns the constraints with too few pairs for an interval.
func (c *Claim) unjudged() (terms []string) {
	for i := range c.Constraints {
		if !c.Constraints[i].Known {
			terms = append(terms, c.Constraints[i].Term)
		}
	}
	return terms
}

// constraints returns a list of terms as part of a sentence.
func constraints(terms []string) string {
	quoted := make([]string, len(terms))
	for i, t := range terms {
		quoted[i] = strconv.Quote(t)
	}
	if len(terms) == 1 {
		return "the constraint " + quoted[0]
	}
	return "the constraints " + strings.Join(quoted, ", ")
}

// unmet returns the constraints that every candidate violates on the median of its workloads.
func (r *race) unmet() (terms []string) {
	for _, k := range r.Objective.Constraints {
		met := func(c *Candidate) bool { return !(statistics.Median(r.slack(k, c)) < 0) } // met without a value
		if !slices.ContainsFunc(r.list, met) {
			terms = append(terms, k.String())
		}
	}
	return terms
}

// finish selects the best candidate and plays the held-out workloads.
func (r *race) finish(ctx context.Context) (*Result, error) {
	r.list = slices.DeleteFunc(r.list, func(c *Candidate) bool { return len(c.played) == 0 })
	ranked := r.ranked()
	front := r.front(ranked)
	result := &Result{
		Start: r.start.Policy, Winner: ranked[0], Candidates: ranked, Front: front, Rounds: r.rounds, Baselines: r.baselines,
		Compared: slices.Clone(r.baselines), HeldOut: map[string][]Values{},
	}
	extra := r.extra()
	for _, c := range append([]*Candidate{result.Winner}, front...) {
		if !slices.Contains(result.Compared, c.Policy) && (c == result.Winner || extra > 0) {
			result.Compared = append(result.Compared, c.Policy)
			if c != result.Winner {
				extra--
			}
		}
	}
	if err := r.holdOut(ctx, result); err != nil {
		return nil, err
	}
	result.Plays = r.used
	result.Claim = r.claim(result)
	return result, nil
}

// ranked returns all candidates, best first: those that remained to the end, those that were
// not continued, and those that were eliminated.
func (r *race) ranked() []*Candidate {
	list := slices.Clone(r.list)
	r.sort(list)
	for _, c := range list {
		c.Workloads, c.Gains = len(c.played), map[string]float64{}
		for _, g := range r.Objective.Metrics() {
			if xs := gains(g, c.played, r.start.played); len(xs) > 0 {
				c.Gains[g.Metric] = statistics.Median(xs)
			}
		}
	}
	// The best is one of those that have played most. The start has played all workloads, as a
	// baseline, and is compared by those that the others have played.
	most := 0
	for _, c := range list {
		if c != r.start && !c.Lost {
			most = max(most, len(c.played))
		}
	}
	group := func(c *Candidate) int {
		switch {
		case c.Lost:
			return 2
		case len(c.played) < most:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b *Candidate) int { return cmp.Compare(group(a), group(b)) })
	first := slices.IndexFunc(list, func(c *Candidate) bool { return group(c) > 0 })
	if first < 0 {
		first = len(list)
	}
	r.sort(list[:first])
	return list
}

// front returns the candidates that no other one dominates: none is better in one metric of
// the objective and worse in none, by the medians of the workloads that all have played.
func (r *race) front(ranked []*Candidate) (front []*Candidate) {
	list := r.Objective.Metrics()
	medians := make([][]float64, len(ranked))
	for i, c := range ranked {
		for _, g := range list {
			medians[i] = append(medians[i], statistics.Median(gains(g, c.played[:r.first()], r.start.played)))
		}
	}
	for i, c := range ranked {
		c.Front = !slices.ContainsFunc(medians, func(other []float64) bool { return dominates(other, medians[i]) })
		if c.Front {
			front = append(front, c)
		}
	}
	return front
}

func dominates(a, b []float64) bool {
	better := false
	for i := range a {
		if a[i] < b[i] {
			return false
		}
		better = better || a[i] > b[i]
	}
	return better
}

// holdOut plays the held-out workloads, for the first and only time.
func (r *race) holdOut(ctx context.Context, result *Result) error {
	var plays []Play
	for _, name := range result.Compared {
		for w := range r.HeldOut {
			plays = append(plays, Play{Policy: name, Workload: w, HeldOut: true})
		}
	}
	values, err := r.Play(ctx, plays)
	if err != nil {
		return err
	}
	for i, v := range values {
		result.HeldOut[plays[i].Policy] = append(result.HeldOut[plays[i].Policy], maps.Clone(v))
	}
	r.used += len(plays)
	return nil
}

// claim compares the winner with the baseline that is best by the workloads of the race.
func (r *race) claim(result *Result) *Claim {
	var baselines []*Candidate
	for _, name := range r.baselines {
		baselines = append(baselines, r.byPolicy[name])
	}
	r.sort(baselines)
	c := &Claim{Policy: result.Winner.Policy, Against: baselines[0].Policy, Level: r.claimLevel(), Unmet: r.unmet()}
	held := result.HeldOut
	measure := func(term string, xs []float64) Measure {
		m := Measure{Term: term, Pairs: len(xs)}
		m.Gain, m.Known = statistics.ExactMedian(xs, c.Level)
		return m
	}
	for _, g := range r.Objective.Goals {
		c.Goals = append(c.Goals, measure(g.String(), gains(g, held[c.Policy], held[c.Against])))
	}
	for _, k := range r.Objective.Constraints {
		winner := &Candidate{played: held[c.Policy]}
		bound := slices.Repeat([]Values{{k.Metric: k.Number}}, len(winner.played))
		if k.Policy != "" {
			bound = held[k.Policy]
		}
		c.Constraints = append(c.Constraints, measure(k.String(), gains(Goal{k.Metric, k.Better}, winner.played, bound)))
	}
	return c
}
