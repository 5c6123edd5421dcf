package tune

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/sim/metrics"
)

// An Objective states which policy is preferred: one that improves the goals and violates no
// constraint.
type Objective struct {
	Goals       []Goal
	Constraints []Constraint
}

// A Goal is a metric to improve.
type Goal struct {
	Metric string // dotted name
	Better metrics.Better
}

// A Constraint is a bound of a metric: that of a policy on the same workload, or a number.
type Constraint struct {
	Metric string
	Better metrics.Better // Lower: at most the bound; Higher: at least
	Policy string         // reference of the policy that sets the bound; "" if it is Number
	Number float64
}

func (g Goal) String() string {
	if g.Better == metrics.Higher {
		return g.Metric + " up"
	}
	return g.Metric + " down"
}

func (c Constraint) String() string {
	operator, bound := "<=", c.Policy
	if c.Better == metrics.Higher {
		operator = ">="
	}
	if bound == "" {
		bound = strconv.FormatFloat(c.Number, 'f', -1, 64)
	}
	return c.Metric + " " + operator + " " + bound
}

func (o *Objective) String() string {
	var parts []string
	for _, g := range o.Goals {
		parts = append(parts, g.String())
	}
	for _, c := range o.Constraints {
		parts = append(parts, c.String())
	}
	return strings.Join(parts, ", ")
}

// Policies returns the policies that constraints name, in order and without duplicates.
func (o *Objective) Policies() (names []string) {
	for _, c := range o.Constraints {
		if c.Policy != "" && !slices.Contains(names, c.Policy) {
			names = append(names, c.Policy)
		}
	}
	return names
}

// Metrics returns the metrics of the objective with the direction in which each improves:
// those of the goals, then those of constraints, without duplicates.
func (o *Objective) Metrics() []Goal {
	list := slices.Clone(o.Goals)
	for _, c := range o.Constraints {
		if !slices.ContainsFunc(list, func(g Goal) bool { return g.Metric == c.Metric }) {
			list = append(list, Goal{c.Metric, c.Better})
		}
	}
	return list
}

// ParseObjective parses terms that are separated by commas: METRIC up, METRIC down,
// METRIC <= P and METRIC >= P, where P is a policy or a number. The error lists every
// problem.
func ParseObjective(text string) (*Objective, error) {
	var o Objective
	var errs []error
	for term := range strings.SplitSeq(text, ",") {
		if err := o.add(strings.TrimSpace(term)); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 && len(o.Goals) == 0 {
		errs = append(errs, errors.New("a goal is required, such as goodput up"))
	}
	return &o, errors.Join(errs...)
}

func (o *Objective) add(term string) error {
	words := strings.Fields(term)
	if len(words) < 2 {
		return fmt.Errorf("invalid term %q: expected METRIC up, METRIC down, METRIC <= POLICY or METRIC >= POLICY", term)
	}
	if err := metrics.CheckName(words[0]); err != nil {
		return fmt.Errorf("invalid term %q: %w; `cede help metrics` lists the metrics", term, err)
	}
	better := map[string]metrics.Better{"up": metrics.Higher, "down": metrics.Lower, ">=": metrics.Higher, "<=": metrics.Lower}[words[1]]
	switch {
	case better == "":
		return fmt.Errorf("invalid term %q: unknown operator %s; use up, down, <= or >=", term, words[1])
	case words[1] == "up" || words[1] == "down":
		if len(words) > 2 {
			return fmt.Errorf("invalid term %q: unexpected %q after %s", term, strings.Join(words[2:], " "), words[1])
		}
		if slices.ContainsFunc(o.Goals, func(g Goal) bool { return g.Metric == words[0] }) {
			return fmt.Errorf("invalid term %q: %s is already a goal", term, words[0])
		}
		o.Goals = append(o.Goals, Goal{words[0], better})
		return nil
	case len(words) != 3:
		return fmt.Errorf("invalid term %q: expected one policy or number after %s", term, words[1])
	}
	c := Constraint{Metric: words[0], Better: better, Policy: words[2]}
	if x, err := strconv.ParseFloat(words[2], 64); err == nil || errors.Is(err, strconv.ErrRange) {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("invalid term %q: %s is not a finite number", term, words[2])
		}
		c.Policy, c.Number = "", x
	}
	o.Constraints = append(o.Constraints, c)
	return nil
}
