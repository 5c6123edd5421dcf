package compare

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/sim/bound"
	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/sim/statistics"
)

// A Run is the result of one scenario under one policy with one seed.
type Run struct {
	Scenario string           `json:"scenario"`
	Draw     int              `json:"draw,omitempty"` // number of the workload, from 1; 0 if there is one of this name
	Policy   string           `json:"policy"`
	Seed     uint64           `json:"seed"`
	Metrics  *metrics.Metrics `json:"metrics"`
	Bound    *bound.Report    `json:"bound,omitempty"` // nil if no bounds were requested

	Decisions []Decision      `json:"-"` // in the order in which they were made
	Series    *metrics.Series `json:"-"` // for reports; may be nil
}

// A Document is the result of a comparison.
type Document struct {
	Version   int          `json:"version"`
	Runs      []Run        `json:"runs"`
	Summary   []Row        `json:"summary"`
	Decisions []Divergence `json:"decisions"`
	Bounds    []Bounds     `json:"bounds,omitempty"` // by policy

	// Provenance describes how the document was made, for reports; it may be empty.
	Provenance Provenance `json:"-"`

	Policies  []string `json:"-"` // in the order of the runs; the first is the baseline
	Workloads int      `json:"-"` // number of distinct scenarios and draws
	Pairs     int      `json:"-"` // number of distinct workloads and seeds
}

// Provenance holds the data that a repetition of the comparison requires.
type Provenance struct {
	Command  string            // as a shell reads it
	Program  string            // version of the program
	Versions map[string]string // of the policies, by name
}

// Difference returns the difference of a policy from the first one with its interval, or
// "" if there is none.
func (r *Row) Difference(policy string) string { return change(r, policy) }

// A Row summarises one metric of every policy over all scenarios and seeds.
type Row struct {
	Metric   string                         `json:"metric"` // dotted name
	Better   metrics.Better                 `json:"better"`
	Policies map[string]statistics.Interval `json:"policies"` // without policies that lack the metric
	// Unit is that of all figures; empty if the metric is a count.
	Unit string `json:"unit,omitempty"`
	// Means holds the mean of policies whose median and interval are one value, although
	// the runs differ: a rare event would otherwise not show.
	Means map[string]float64 `json:"means,omitempty"`
	// Best lists the policies that no other policy beats. It is empty if no policy is
	// beaten, and for metrics that only provide context.
	Best []string `json:"best,omitempty"`
	// Against[P] is P minus the first policy, over the pairs that contain both.
	Against map[string]statistics.Difference `json:"against,omitempty"`
}

// Sample describes what the figures are medians of, and what their intervals cover, as
// one or two sentences.
func (d *Document) Sample() string {
	if d.Pairs == d.Workloads && d.Workloads == d.scenarios() && d.Pairs < statistics.FewSamples {
		return "One run of each scenario per policy: differences are exact for these runs only. For intervals, use --draws or --seeds."
	}
	runs, samples := fmt.Sprintf("%d paired runs of one workload", d.Pairs), d.Pairs
	if d.Workloads > 1 {
		runs, samples = fmt.Sprintf("%d paired runs of %d workloads", d.Pairs, d.Workloads), d.Workloads
	}
	if samples < statistics.FewSamples {
		return fmt.Sprintf("Median [range] of %s: too few for an interval; use --draws 11 or --seeds 11. No difference: the range of the paired differences contains 0.", runs)
	}
	text := fmt.Sprintf("Median [95 %% interval] of %s; no difference: the interval of the paired differences contains 0.", runs)
	if d.Workloads == 1 {
		text += " The interval covers tie-breaks only; with --draws it covers the workload."
	}
	return text
}

// scenarios returns the number of distinct scenario names.
func (d *Document) scenarios() int {
	names := map[string]bool{}
	for i := range d.Runs {
		names[d.Runs[i].Scenario] = true
	}
	return len(names)
}

// seed initialises the resampling. It is independent of scenario seeds: equal numbers
// must return equal intervals.
const seed = 1

// New compares runs. Runs of one policy must differ in scenario, draw or seed.
func New(runs []Run) *Document {
	d := &Document{Version: 1, Runs: append([]Run{}, runs...), Summary: []Row{}, Decisions: []Divergence{}}
	t := newTable(runs)
	d.Policies, d.Workloads, d.Pairs = t.policies, len(t.workloads), len(t.pairs)
	for _, name := range t.metrics() {
		d.Summary = append(d.Summary, t.row(name))
	}
	d.Decisions = append(d.Decisions, divergences(runs, d.Policies)...)
	d.Bounds = newBounds(runs, d.Policies)
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

// Interval returns the median of a metric over the runs of a policy with its interval,
// and false if its runs lack the metric.
func (d *Document) Interval(metric, policy string) (statistics.Interval, bool) {
	if r := d.Row(metric); r != nil {
		i, ok := r.Policies[policy]
		return i, ok
	}
	return statistics.Interval{}, false
}

// Metrics returns the names of the metrics that the runs contain, in display order.
func (d *Document) Metrics() []string {
	names := make([]string, len(d.Summary))
	for i := range d.Summary {
		names[i] = d.Summary[i].Metric
	}
	return names
}

// workload identifies the submissions and the cluster: a scenario, or one draw of a
// description.
type workload struct {
	scenario string
	draw     int
}

// pair identifies the runs of different policies that are compared.
type pair struct {
	workload int // index in table.workloads
	seed     uint64
}

// table holds the values of all runs by metric, policy and pair.
type table struct {
	policies  []string
	workloads []workload
	pairs     []pair
	values    map[string]map[key]float64 // by metric
	order     []metricOrder
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
		w := position(&t.workloads, workload{runs[i].Scenario, runs[i].Draw})
		k := key{position(&t.policies, runs[i].Policy), position(&t.pairs, pair{w, runs[i].Seed})}
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
	r := Row{Metric: name, Better: definition.Better, Unit: metrics.Unit(name), Policies: map[string]statistics.Interval{}}
	for p, policy := range t.policies {
		if xs, _ := t.paired(name, p, p); len(xs) > 0 {
			r.Policies[policy] = rounded(statistics.Bootstrap(xs, seed))
			r.addMean(policy, metrics.Round(mean(xs)))
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

// addMean stores a mean that the policy's interval hides.
func (r *Row) addMean(policy string, mean float64) {
	if i := r.Policies[policy]; i.Low != i.High || i.Median == mean {
		return
	}
	if r.Means == nil {
		r.Means = map[string]float64{}
	}
	r.Means[policy] = mean
}

// HiddenMean returns the mean of a policy's values as text if its interval hides it,
// otherwise "".
func (r *Row) HiddenMean(policy string) string {
	mean, hidden := r.Means[policy]
	if !hidden {
		return ""
	}
	return "mean " + Number(mean)
}

// Zero reports whether every value of every policy is zero. Reports omit such rows because
// they would fill half of most tables.
func (r *Row) Zero() bool {
	for _, i := range r.Policies {
		if i.Low != 0 || i.High != 0 {
			return false
		}
	}
	return len(r.Means) == 0
}

// mean returns the mean of all values, of which there is at least one.
func mean(groups statistics.Groups) float64 {
	sum, n := 0.0, 0
	for _, g := range groups {
		for _, x := range g {
			sum += x
		}
		n += len(g)
	}
	return sum / float64(n)
}

// rounded returns the interval with the precision of metrics; the mean of two values
// would add a decimal.
func rounded(i statistics.Interval) statistics.Interval {
	return statistics.Interval{Median: metrics.Round(i.Median), Low: metrics.Round(i.Low), High: metrics.Round(i.High)}
}

// paired returns the values of two policies for the pairs that contain both, grouped by
// workload.
func (t *table) paired(name string, p, q int) (a, b statistics.Groups) {
	of := t.values[name]
	group := map[int]int{} // index in a and b, by workload
	for i := range t.pairs {
		x, hasX := of[key{p, i}]
		y, hasY := of[key{q, i}]
		if !hasX || !hasY {
			continue
		}
		g, seen := group[t.pairs[i].workload]
		if !seen {
			g = len(a)
			group[t.pairs[i].workload] = g
			a, b = append(a, nil), append(b, nil)
		}
		a[g], b[g] = append(a[g], x), append(b[g], y)
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
