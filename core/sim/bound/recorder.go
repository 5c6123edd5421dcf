package bound

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim"
)

// DefaultLimit is the default number of steps for one decision: some tens of milliseconds.
const DefaultLimit = 2_000_000

// MaxRegrets limits the decisions that a report lists.
const MaxRegrets = 20

// A Verdict states what is proven about a decision.
type Verdict string

// The verdicts.
const (
	Optimal    Verdict = "optimal"    // no answer loses less work or places more
	Suboptimal Verdict = "suboptimal" // a better answer exists
	Open       Verdict = "open"       // neither is proven
)

// A Regret is a decision with the best answer.
type Regret struct {
	At      int64   `json:"at"` // nanoseconds since the scenario's start
	Job     string  `json:"job"`
	Verdict Verdict `json:"verdict"`
	// Instances were placed with the victims, and Unplaced were not.
	Instances int      `json:"instances"`
	Unplaced  int      `json:"unplaced"`
	Victims   []string `json:"victims"`
	Moved     []string `json:"moved,omitempty"`
	// Cost is the lost work, and Lower the bound on it, in nanoseconds of the whole cluster.
	Cost  int64 `json:"cost"`
	Lower int64 `json:"lowerBound"`
	// Best is the cheapest answer; nil unless it was found and is feasible.
	Best *Answer `json:"best,omitempty"`
	// Missed reports that one more instance could have been placed, at the cost of MissedCost.
	Missed     bool  `json:"missed,omitempty"`
	MissedCost int64 `json:"missedCost,omitempty"`
	// Dropped lists rules that the bound ignores.
	Dropped []string `json:"relaxed,omitempty"`
	// Causes are why the decision is open; nil: it is not.
	Causes []string `json:"openBecause,omitempty"`
	Steps  int64    `json:"steps"`
}

// placesOfMoved is the rule that moved instances need capacity elsewhere.
const placesOfMoved = "places of moved instances"

// Regret returns the lost work above that of the best answer found.
func (r *Regret) Regret() int64 {
	if r.Best == nil {
		return 0
	}
	return r.Cost - r.Lower
}

// A Report summarises the decisions of a run.
type Report struct {
	Decisions int `json:"decisions"`
	Optimal   int `json:"optimal"`
	Open      int `json:"open"`
	Missed    int `json:"missed"`
	// Causes counts the open decisions by cause. One may have several.
	Causes map[string]int `json:"openBecause,omitempty"`
	// Evicting counts the decisions with victims, and EvictingOptimal those of them that are
	// optimal. The others left work unplaced, and most of them had no choice.
	Evicting        int `json:"evicting"`
	EvictingOptimal int `json:"evictingOptimal"`

	Cost   int64 `json:"cost"`       // lost work, in nanoseconds of the whole cluster
	Lower  int64 `json:"lowerBound"` // sum of the lower bounds
	Regret int64 `json:"regret"`
	Steps  int64 `json:"steps"`
	// Regrets are the decisions with the largest differences from their bounds, the
	// largest first.
	Regrets []Regret `json:"regrets,omitempty"`
	// Run holds the bounds on the whole run; nil until Finish.
	Run *RunBounds `json:"run,omitempty"`
}

// A Recorder bounds the decisions of one run.
type Recorder struct {
	// EvictionsOnly limits the report to the lost work of decisions that evict or move, compared
	// with the cheapest evictions: no answer moves instances, and work that was left unplaced is
	// not examined, which takes most of the time. A decision that moves instances may cost less
	// than its bound; its regret is then negative. If evictions alone do not suffice, its bound is
	// its own cost.
	EvictionsOnly bool

	limit  int64
	costs  *Costs
	report Report
}

// NewRecorder returns a recorder with a limit of steps per decision.
func NewRecorder(limit int64) *Recorder { return &Recorder{limit: limit} }

// Evaluated bounds a decision. It is the callback of sim.Options.
func (r *Recorder) Evaluated(e sim.Evaluated) {
	if r.costs == nil {
		r.costs = NewCosts(e.Before)
	}
	if d := NewDecision(e); d != nil && (!r.EvictionsOnly || len(d.Victims)+len(d.Moved) > 0) {
		r.add(r.examine(d))
	}
}

// examine bounds a decision.
func (r *Recorder) examine(d *Decision) Regret {
	out := Regret{At: d.Now, Job: d.Job.ID, Instances: d.instances(), Victims: ids(d.Victims), Unplaced: sum(d.Queued)}
	if len(d.Moved) > 0 {
		out.Moved = ids(d.Moved)
	}
	for _, v := range slices.Concat(d.Victims, d.Moved) {
		out.Cost += r.costs.Of(v, d.Now)
	}
	cheapest := true // proven
	var causes []string
	if out.Cost > 0 {
		problem, dropped := build(d, d.Placed, r.costs, !r.EvictionsOnly)
		result := Solve(problem, r.limit)
		if result.Lower == Infinite && r.EvictionsOnly && len(d.Moved) > 0 {
			result.Lower = out.Cost
		}
		if problem.moves(result.Answer) {
			dropped = append(dropped, placesOfMoved)
		}
		out.Lower, out.Steps, out.Dropped = result.Lower, result.Steps, dropped
		if len(dropped) == 0 || result.Lower == out.Cost {
			out.Best = result.Answer
		}
		if cheapest = result.Lower == out.Cost; !cheapest {
			causes = addCauses(causes, result, dropped)
		}
	}
	full := true
	if !r.EvictionsOnly {
		full, causes = r.examineUnplaced(d, &out, causes)
	}
	switch {
	case out.Missed || out.Best != nil && out.Lower < out.Cost:
		out.Verdict = Suboptimal
	case cheapest && full:
		out.Verdict = Optimal
	default:
		out.Verdict, out.Causes = Open, causes
	}
	return out
}

// causeSystem is the cause of decisions about jobs with an instance on every node.
const causeSystem = "further instances of system jobs are not examined"

// addCauses adds why a result proves nothing about the decision.
func addCauses(list []string, result Result, dropped []string) []string {
	add := func(cause string) {
		if !slices.Contains(list, cause) {
			list = append(list, cause)
		}
	}
	if result.Cause != "" {
		add(result.Cause)
	}
	for _, rule := range dropped {
		add("the bound ignores " + rule)
	}
	return list
}

// examineUnplaced reports whether it is proven that no more instances could be placed, and
// records an answer that places one more. It adds what prevents a proof to causes.
func (r *Recorder) examineUnplaced(d *Decision, out *Regret, causes []string) (full bool, all []string) {
	if out.Unplaced == 0 {
		return true, causes
	}
	if d.Job.Type.PerNode() {
		return false, append(causes, causeSystem)
	}
	full = true
	for _, counts := range d.larger() {
		problem, dropped := Build(d, counts, r.costs)
		result := Solve(problem, r.limit)
		out.Steps += result.Steps
		if problem.moves(result.Answer) {
			dropped = append(dropped, placesOfMoved)
		}
		switch {
		case result.Lower == Infinite:
			continue
		case !result.Exact || len(dropped) > 0:
			causes = addCauses(causes, result, dropped)
		case !out.Missed || result.Lower < out.MissedCost:
			out.Missed, out.MissedCost = true, result.Lower
		}
		full = false
	}
	return full, causes
}

// larger lists the next larger numbers of instances: one more of a group, or the whole
// job if it is placed all at once.
func (d *Decision) larger() (list [][]int) {
	if d.Job.AllAtOnce {
		all := slices.Clone(d.Placed)
		for g, n := range d.Queued {
			all[g] += n
		}
		return [][]int{all}
	}
	for g, n := range d.Queued {
		if n > 0 {
			more := slices.Clone(d.Placed)
			more[g]++
			list = append(list, more)
		}
	}
	return list
}

// add adds a decision to the report.
func (r *Recorder) add(x Regret) {
	p := &r.report
	p.Decisions++
	switch x.Verdict {
	case Optimal:
		p.Optimal++
	case Open:
		p.Open++
		if p.Causes == nil {
			p.Causes = map[string]int{}
		}
		for _, cause := range x.Causes {
			p.Causes[cause]++
		}
	}
	if len(x.Victims) > 0 {
		p.Evicting++
		if x.Verdict == Optimal {
			p.EvictingOptimal++
		}
	}
	if x.Missed {
		p.Missed++
	}
	p.Cost, p.Lower, p.Regret, p.Steps = p.Cost+x.Cost, p.Lower+x.Lower, p.Regret+x.Regret(), p.Steps+x.Steps
	gap := x.Cost - x.Lower
	if gap == 0 && !x.Missed {
		return
	}
	at, _ := slices.BinarySearchFunc(p.Regrets, gap, func(y Regret, gap int64) int {
		if y.Cost-y.Lower >= gap {
			return -1
		}
		return 1
	})
	if at < MaxRegrets {
		p.Regrets = slices.Insert(p.Regrets, at, x)
		p.Regrets = p.Regrets[:min(len(p.Regrets), MaxRegrets)]
	}
}

// Report returns the report on the decisions so far.
func (r *Recorder) Report() *Report { return &r.report }

func ids(list []*model.Allocation) []string {
	out := []string{}
	for _, a := range list {
		out = append(out, a.ID)
	}
	slices.Sort(out)
	return out
}

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}
