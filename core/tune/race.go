package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/sim/statistics"
)

// Levels of the intervals.
const (
	// RaceLevel is that of an elimination. A wrong one costs a candidate, not the claim.
	RaceLevel = 0.90
	// ClaimLevel is that of the claim on held-out workloads. Of 100 searches without anything
	// to find, two are expected to claim a difference.
	ClaimLevel = 0.98
)

// maxFront is the maximum number of members of the front that are played on held-out
// workloads in addition to the selected policy.
const maxFront = 3

// A Play is one policy on one workload.
type Play struct {
	Policy   string // reference
	Workload int    // from 0
	HeldOut  bool   // Workload is one of the held-out workloads
}

// Values are the metrics of a play by their dotted names.
type Values map[string]float64

// A Search holds the parameters of a search. All fields above Accept are required.
type Search struct {
	Space     *Space
	Objective *Objective
	// Baselines are references of the policies that the selected one is compared with. Those
	// that constraints name are added.
	Baselines []string
	Workloads int // for the race; at least statistics.ExactPairs(RaceLevel)
	HeldOut   int // at least statistics.ExactPairs(ClaimLevel)
	Plays     int // maximum number of plays, those of held-out workloads included
	Seed      uint64
	// Play returns the metrics of plays, in their order. They may be made concurrently.
	Play func(ctx context.Context, plays []Play) ([]Values, error)
	// Accept reports whether a policy can be played: a combination of settings may be invalid.
	// If it is nil, all can.
	Accept func(policy string) bool
	// Round is called after each step of the race; it may be nil.
	Round func(Round)
}

// A Round is a step of the race: all remaining candidates have played the workload.
type Round struct {
	Iteration  int // from 1; 0: the last one, of the survivors
	Workloads  int // that were played by all
	Candidates int // before the step
	Eliminated int
	Best       string // reference
}

// A Candidate is a policy of the race.
type Candidate struct {
	Policy    string // reference
	Point     Point
	Workloads int  // that it played
	Lost      bool // eliminated
	// Gains are medians of the paired difference from the policy before the search, by metric
	// of the objective. A positive one is an improvement.
	Gains map[string]float64
	Front bool // no other candidate is better in one metric and not worse in the others

	played []Values
}

// A Result is the outcome of a search.
type Result struct {
	Start      string // reference of the policy before the search
	Winner     *Candidate
	Candidates []*Candidate // best first
	Front      []*Candidate // best first; the winner may be among them
	Rounds     []Round
	Baselines  []string
	Claim      *Claim
	Plays      int
	// Compared are the policies that were played on held-out workloads: baselines, then the
	// winner and others of the front.
	Compared []string
	HeldOut  map[string][]Values // their metrics, by policy and workload
}

// race is the state of a search.
type race struct {
	*Search
	random    *rand.Rand
	used      int
	byPolicy  map[string]*Candidate // candidates and baselines
	list      []*Candidate          // candidates, by creation
	start     *Candidate
	baselines []string
	rounds    []Round
}

// CheckWorkloads returns an error if there are too few workloads. It needs no space, and uses
// the goals of the objective only.
func (s *Search) CheckWorkloads() error {
	var errs []error
	if n := statistics.ExactPairs(RaceLevel); s.Workloads < n {
		errs = append(errs, fmt.Errorf("%d workloads are too few to compare policies: at least %d are required", s.Workloads, n))
	}
	if n := statistics.ExactPairs(s.claimLevel()); s.HeldOut < n {
		errs = append(errs, fmt.Errorf("%d held-out workloads are too few for an interval: at least %d are required", s.HeldOut, n))
	}
	return errors.Join(errs...)
}

// Check returns an error that lists every parameter that does not suffice for a search.
func (s *Search) Check() error {
	var errs []error
	if err := s.CheckWorkloads(); err != nil {
		errs = append(errs, err)
	}
	if s.Space.size(2) < 2 {
		errs = append(errs, errors.New("nothing to search: every setting has one value"))
	}
	if n := s.minimum(); s.Plays < n {
		errs = append(errs, fmt.Errorf("%d plays are too few: with %d baselines, %d workloads and %d held-out ones, at least %d are required",
			s.Plays, len(s.Policies()), s.Workloads, s.HeldOut, n))
	}
	return errors.Join(errs...)
}

// claimLevel is ClaimLevel for all goals together. An objective whose goals are invalid counts
// as one goal.
func (s *Search) claimLevel() float64 {
	return 1 - (1-ClaimLevel)/float64(max(1, len(s.Objective.Goals)))
}

// Policies returns the baselines with the policies of constraints, and the start.
func (s *Search) Policies() []string {
	var list []string
	for _, names := range [][]string{{s.Space.Render(s.Space.Start)}, s.Baselines, s.Objective.Policies()} {
		for _, name := range names {
			if !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// reserve is the number of plays on held-out workloads.
func (s *Search) reserve() int { return s.HeldOut * (len(s.Policies()) + 1 + s.extra()) }

// extra is the number of members of the front that are played on held-out workloads. With
// one metric the front is the winner.
func (s *Search) extra() int { return min(maxFront, len(s.Objective.Metrics())-1) }

// first is the number of workloads that every candidate plays.
func (s *Search) first() int { return statistics.ExactPairs(RaceLevel) }

// minimum is the number of plays of a search with two candidates.
func (s *Search) minimum() int {
	return s.reserve() + s.Workloads*len(s.Policies()) + 2*s.first()
}

// Run searches. It returns the error of Play, or an error if a metric of the objective is
// absent.
func (s *Search) Run(ctx context.Context) (*Result, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	r := &race{
		Search: s, random: rand.New(rand.NewPCG(s.Seed, 0x74756e65)), byPolicy: map[string]*Candidate{}, baselines: s.Policies(),
	}
	if err := r.playBaselines(ctx); err != nil {
		return nil, err
	}
	if err := r.iterate(ctx); err != nil {
		return nil, err
	}
	return r.finish(ctx)
}

// playBaselines plays all workloads with the baselines, of which the first is the start.
func (r *race) playBaselines(ctx context.Context) error {
	var list []*Candidate
	for _, name := range r.baselines {
		c := &Candidate{Policy: name}
		r.byPolicy[name] = c
		list = append(list, c)
	}
	r.start = list[0]
	r.start.Point = r.Space.Start
	r.list = list[:1]
	if err := r.play(ctx, list, r.Workloads); err != nil {
		return err
	}
	return r.checkMetrics(list)
}

// checkMetrics returns an error if no play of a baseline has a metric of the objective.
func (r *race) checkMetrics(list []*Candidate) error {
	var errs []error
	for _, g := range r.Objective.Metrics() {
		present := slices.ContainsFunc(list[0].played, func(v Values) bool { _, ok := v[g.Metric]; return ok })
		if present {
			continue
		}
		definition, _ := metrics.Define(g.Metric)
		var offer []string
		for _, name := range slices.Sorted(maps.Keys(list[0].played[0])) {
			if d, _ := metrics.Define(name); d.Name == definition.Name {
				offer = append(offer, name)
			}
		}
		text := "no workload has a value of it"
		if len(offer) > 0 {
			text = "use one of " + strings.Join(offer, ", ")
		}
		errs = append(errs, fmt.Errorf("metric %s is absent: %s", g.Metric, text))
	}
	return errors.Join(errs...)
}

// play plays the workloads from those that each candidate has played up to to.
func (r *race) play(ctx context.Context, list []*Candidate, to int) error {
	var plays []Play
	var of []*Candidate
	for _, c := range list {
		for w := len(c.played); w < to; w++ {
			plays, of = append(plays, Play{Policy: c.Policy, Workload: w}), append(of, c)
		}
	}
	values, err := r.Play(ctx, plays)
	if err != nil {
		return err
	}
	for i, v := range values {
		of[i].played = append(of[i].played, v)
	}
	r.used += len(plays)
	return nil
}

// left is the number of plays that the race may still use.
func (r *race) left() int { return r.Plays - r.reserve() - r.used }

// finalists is the number of candidates that can play all workloads after the last iteration.
const finalists = 3

// iterate makes and races candidates until the plays are used.
func (r *race) iterate(ctx context.Context) error {
	iterations := 2 + int(math.Log2(float64(len(r.Space.Axes)+1)))
	survivors := []*Candidate{r.start}
	leave := finalists * (r.Workloads - r.first())
	for i := 1; ; i++ {
		left := r.left() - leave
		share := left / max(1, iterations-i+1)
		fresh := r.offspring(survivors, max(2, share/(r.first()+1)), i)
		fresh = fresh[:max(0, min(len(fresh), left/r.first()))]
		if len(fresh) == 0 {
			break
		}
		r.list = append(r.list, fresh...)
		var err error
		if survivors, err = r.heat(ctx, i, append(survivors, fresh...), left); err != nil {
			return err
		}
	}
	_, err := r.heat(ctx, 0, survivors, r.left())
	return err
}

// offspring returns up to n new candidates: in the first iteration from the whole space, later
// near the survivors.
func (r *race) offspring(parents []*Candidate, n, iteration int) (list []*Candidate) {
	add := func(p Point) {
		name := r.Space.Render(p)
		if r.byPolicy[name] == nil && (r.Accept == nil || r.Accept(name)) {
			c := &Candidate{Policy: name, Point: p}
			r.byPolicy[name] = c
			list = append(list, c)
		}
	}
	if all := r.Space.size(n + 2); all < n+2 { // small: the whole space
		for i := range all {
			add(r.Space.at(i))
		}
		return list
	}
	width := math.Pow(0.5, float64(iteration-1))
	for tries := 0; len(list) < n && tries < 50*n; tries++ {
		switch {
		case iteration == 1 || r.random.IntN(8) == 0:
			add(r.Space.random(r.random))
		default: // better parents have more children
			add(r.Space.near(parents[min(r.random.IntN(len(parents)), r.random.IntN(len(parents)))].Point, width, r.random))
		}
	}
	return list
}

// heat plays one workload after the other with all candidates, with at most the given number
// of plays, and eliminates those that are shown to be worse. It returns the others, best
// first, at most as many as become parents. The last heat has iteration 0 and continues to
// the last workload.
func (r *race) heat(ctx context.Context, iteration int, list []*Candidate, plays int) ([]*Candidate, error) {
	last, parents := iteration == 0, 2+len(r.Space.Axes)
	for last && len(list) > 1 && missing(list, r.Workloads) > plays {
		list = list[:len(list)-1]
	}
	until := r.used + plays
	for to := r.first(); to <= r.Workloads; to++ {
		n := missing(list, to)
		if r.used+n > until || to > r.first() && (len(list) == 1 && !last || !last && len(list) <= parents) {
			break
		}
		if n == 0 {
			continue
		}
		if err := r.play(ctx, list, to); err != nil {
			return nil, err
		}
		before := len(list)
		list = r.eliminate(list)
		r.note(Round{Iteration: iteration, Workloads: to, Candidates: before, Eliminated: before - len(list), Best: list[0].Policy})
	}
	r.sort(list)
	return list[:min(len(list), parents)], nil
}

// missing returns the number of plays until all candidates have played to workloads.
func missing(list []*Candidate, to int) (n int) {
	for _, c := range list {
		n += max(0, to-len(c.played))
	}
	return n
}

func (r *race) note(n Round) {
	r.rounds = append(r.rounds, n)
	if r.Round != nil {
		r.Round(n)
	}
}

// eliminate returns the candidates that are not shown to violate a constraint or to be worse
// than the best one, best first.
func (r *race) eliminate(list []*Candidate) []*Candidate {
	r.sort(list)
	best := list[0]
	return slices.DeleteFunc(list, func(c *Candidate) bool {
		c.Lost = c != best && (r.violates(c) && !r.violates(best) || r.worse(c, best))
		return c.Lost
	})
}

// violates reports whether a candidate is shown to violate a constraint.
func (r *race) violates(c *Candidate) bool {
	return slices.ContainsFunc(r.Objective.Constraints, func(k Constraint) bool {
		i, ok := statistics.ExactMedian(r.slack(k, c), RaceLevel)
		return ok && i.High < 0
	})
}

// worse reports whether a candidate is shown to be worse than another in a goal, and its
// median is better in none.
func (r *race) worse(c, than *Candidate) bool {
	shown := false
	for _, g := range r.Objective.Goals {
		i, ok := statistics.ExactMedian(gains(g, c.played, than.played), RaceLevel)
		if ok && i.Median > 0 {
			return false
		}
		shown = shown || ok && i.High < 0
	}
	return shown
}

// slack returns by how much each workload of a candidate respects a constraint; negative if
// it violates it.
func (r *race) slack(k Constraint, c *Candidate) []float64 {
	if k.Policy != "" {
		return gains(Goal{k.Metric, k.Better}, c.played, r.byPolicy[k.Policy].played)
	}
	return gains(Goal{k.Metric, k.Better}, c.played, slices.Repeat([]Values{{k.Metric: k.Number}}, len(c.played)))
}

// gains returns the improvements of a over b on the workloads that both have played and that
// have the metric.
func gains(g Goal, a, b []Values) (list []float64) {
	for i := range min(len(a), len(b)) {
		x, hasX := a[i][g.Metric]
		y, hasY := b[i][g.Metric]
		switch {
		case !hasX || !hasY:
		case g.Better == metrics.Higher:
			list = append(list, x-y)
		default:
			list = append(list, y-x)
		}
	}
	return list
}

// sort sorts candidates, best first, by the workloads that all have played.
func (r *race) sort(list []*Candidate) {
	common := r.Workloads
	for _, c := range list {
		common = min(common, len(c.played))
	}
	type rank struct {
		violated int
		gain     float64
	}
	ranks := map[*Candidate]rank{}
	for _, c := range list {
		var k rank
		k.violated, k.gain = r.rank(c, common)
		ranks[c] = k
	}
	slices.SortStableFunc(list, func(a, b *Candidate) int {
		x, y := ranks[a], ranks[b]
		return cmp.Or(cmp.Compare(x.violated, y.violated), cmp.Compare(y.gain, x.gain))
	})
}

// rank returns the number of constraints that a candidate violates on the median of its
// first workloads, and the mean over the goals of its relative gain over the start.
func (r *race) rank(c *Candidate, workloads int) (violated int, gain float64) {
	seen := *c
	seen.played = c.played[:workloads]
	for _, k := range r.Objective.Constraints {
		if statistics.Median(r.slack(k, &seen)) < 0 {
			violated++
		}
	}
	for _, g := range r.Objective.Goals {
		scale := math.Abs(medianOf(g.Metric, r.start.played))
		if m := statistics.Median(gains(g, seen.played, r.start.played)); !math.IsNaN(m) {
			gain += m / max(scale, 1e-9)
		}
	}
	return violated, gain
}

func medianOf(metric string, played []Values) float64 {
	var xs []float64
	for _, v := range played {
		if x, ok := v[metric]; ok {
			xs = append(xs, x)
		}
	}
	if len(xs) == 0 {
		return 0
	}
	return statistics.Median(xs)
}
