package compare

import (
	"slices"

	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/sim/statistics"
)

// A Run is the result of one scenario under one policy with one seed.
type Run struct {
	Scenario string           `json:"scenario"`
	Policy   string           `json:"policy"`
	Seed     uint64           `json:"seed"`
	Metrics  *metrics.Metrics `json:"metrics"`

	Decisions []Decision      `json:"-"` // in the order in which they were made
	Series    *metrics.Series `json:"-"` // for reports; may be nil
}

// A Document is the result of a comparison.
type Document struct {
	Version   int          `json:"version"`
	Runs      []Run        `json:"runs"`
	Summary   []Row        `json:"summary"`
	Decisions []Divergence `json:"decisions"`

	Policies []string `json:"-"` // in the order of the runs; the first is the baseline
	Pairs    int      `json:"-"` // number of distinct scenarios and seeds
}

// A Row summarises one metric of every policy over all scenarios and seeds.
type Row struct {
	Metric   string                         `json:"metric"` // dotted name
	Better   metrics.Better                 `json:"better"`
	Policies map[string]statistics.Interval `json:"policies"` // without policies that lack the metric
	// Best lists the policies that no other policy beats. It is empty if no policy is
	// beaten, and for metrics that only provide context.
	Best []string `json:"best,omitempty"`
	// Against[P] is P minus the first policy, over the pairs that contain both.
	Against map[string]statistics.Difference `json:"against,omitempty"`
}

// seed initialises the resampling. It is independent of scenario seeds: equal numbers
// must return equal intervals.
const seed = 1

// New compares runs. Runs of one policy must differ in scenario or seed.
func New(runs []Run) *Document {
	d := &Document{Version: 1, Runs: append([]Run{}, runs...), Summary: []Row{}, Decisions: []Divergence{}}
	t := newTable(runs)
	d.Policies, d.Pairs = t.policies, len(t.pairs)
	for _, name := range t.metrics() {
		d.Summary = append(d.Summary, t.row(name))
	}
	d.Decisions = append(d.Decisions, divergences(runs, d.Policies)...)
	return d
}

// Row returns the summary of a metric by its dotted name, or nil if no run contains
// it.
func (d *Document) Row(metric string) *Row {
	for i := range d.Summary {
		if d.Summary[i].Metric == metric {
			return &d.Summary[i]
		}
	}
	return nil
}

// pair identifies the runs of different policies that are compared.
type pair struct {
	scenario string
	seed     uint64
}

// table holds the values of all runs by metric, policy and pair.
type table struct {
	policies []string
	pairs    []pair
	values   map[string]map[key]float64 // by metric
	order    []metricOrder
}

type key struct{ policy, pair int }

// metricOrder holds the definition index of a metric. Bands and resources that some
// runs lack are sorted next to the others of the same definition.
type metricOrder struct {
	name       string
	definition int
}

func newTable(runs []Run) *table {
	t := &table{values: map[string]map[key]float64{}}
	for i := range runs {
		k := key{position(&t.policies, runs[i].Policy), position(&t.pairs, pair{runs[i].Scenario, runs[i].Seed})}
		for _, v := range runs[i].Metrics.Flatten() {
			if t.values[v.Name] == nil {
				t.values[v.Name] = map[key]float64{}
				t.order = append(t.order, metricOrder{v.Name, definitionOf(v.Name)})
			}
			t.values[v.Name][k] = v.Value
		}
	}
	return t
}

func position[T comparable](list *[]T, v T) int {
	at := slices.Index(*list, v)
	if at < 0 {
		at = len(*list)
		*list = append(*list, v)
	}
	return at
}

func definitionOf(name string) int {
	d, _ := metrics.Define(name)
	return slices.IndexFunc(metrics.Definitions, func(o metrics.Definition) bool { return o.Name == d.Name })
}

// metrics returns every metric in the order of the definitions, and within a
// definition by first appearance.
func (t *table) metrics() []string {
	slices.SortStableFunc(t.order, func(a, b metricOrder) int { return a.definition - b.definition })
	names := make([]string, len(t.order))
	for i, o := range t.order {
		names[i] = o.name
	}
	return names
}

func (t *table) row(name string) Row {
	definition, _ := metrics.Define(name)
	r := Row{Metric: name, Better: definition.Better, Policies: map[string]statistics.Interval{}}
	for p, policy := range t.policies {
		if xs, _ := t.paired(name, p, p); len(xs) > 0 {
			r.Policies[policy] = rounded(statistics.Bootstrap(xs, seed))
		}
		if a, b := t.paired(name, p, 0); p > 0 && len(a) > 0 {
			if r.Against == nil {
				r.Against = map[string]statistics.Difference{}
			}
			difference := statistics.Paired(a, b, seed)
			difference.Interval = rounded(difference.Interval)
			r.Against[policy] = difference
		}
	}
	if !definition.Context {
		r.Best = t.best(name, &r)
	}
	return r
}

// rounded returns the interval with the precision of metrics; the mean of two values
// would add a decimal.
func rounded(i statistics.Interval) statistics.Interval {
	return statistics.Interval{Median: metrics.Round(i.Median), Low: metrics.Round(i.Low), High: metrics.Round(i.High)}
}

// paired returns the values of two policies for the pairs that contain both.
func (t *table) paired(name string, p, q int) (a, b []float64) {
	of := t.values[name]
	for i := range t.pairs {
		x, hasX := of[key{p, i}]
		y, hasY := of[key{q, i}]
		if hasX && hasY {
			a, b = append(a, x), append(b, y)
		}
	}
	return a, b
}

// best returns the policies whose paired difference from the policy with the best
// median contains 0. It returns nil if that is true of all of them: then no
// difference is shown.
func (t *table) best(name string, r *Row) []string {
	leader := -1
	for p, policy := range t.policies {
		i, shown := r.Policies[policy]
		if shown && (leader < 0 || ahead(r.Better, i.Median, r.Policies[t.policies[leader]].Median)) {
			leader = p
		}
	}
	if leader < 0 {
		return nil
	}
	var best []string
	for p, policy := range t.policies {
		a, b := t.paired(name, p, leader)
		if len(a) > 0 && statistics.Paired(a, b, seed).None() {
			best = append(best, policy)
		}
	}
	if len(best) == len(r.Policies) {
		return nil
	}
	return best
}

// ahead reports whether x is better than y.
func ahead(better metrics.Better, x, y float64) bool {
	if better == metrics.Higher {
		return x > y
	}
	return x < y
}
