package policytest

import (
	"fmt"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// A Subject is a policy under test in any runtime. Hooks that it lacks are nil.
type Subject struct {
	Info     policy.Info
	Delta    policy.DeltaHook
	Scorer   policy.VictimScorer
	Selector policy.VictimSelector
	Options  policy.OptionScorer
	Bindings policy.BindingPreemptor
	// KeepRedundant is set if the policy requests keepRedundant and is granted
	// it: its lists of victims are then used unchanged.
	KeepRedundant bool
}

// Of returns the Subject of a native policy that has been configured.
func Of(p policy.Policy) *Subject {
	s := &Subject{Info: p.Info()}
	s.Delta, _ = p.(policy.DeltaHook)
	s.Scorer, _ = p.(policy.VictimScorer)
	s.Selector, _ = p.(policy.VictimSelector)
	s.Options, _ = p.(policy.OptionScorer)
	s.Bindings, _ = p.(policy.BindingPreemptor)
	s.KeepRedundant = s.Info.KeepRedundant
	return s
}

// A Decision is the result of a policy for a case.
type Decision struct {
	// Victims holds the rows to evict for each option, in the order of picking.
	// It is nil for an option that does not fit with the evictions that the
	// policy allows.
	Victims [][]int
	// Eligible holds the rows that the policy allows to be evicted, by option.
	Eligible [][]int
	// Refused holds the eligible rows with a score of +Inf (never), by option.
	Refused [][]int
	// Chosen is the index of the best option, or -1 if none fits.
	Chosen    int
	RecheckAt int64
}

// An AnswerError reports an answer that violates a rule of its hook.
type AnswerError struct {
	Hook, Text string
}

func (e *AnswerError) Error() string { return e.Hook + ": " + e.Text }

// Decide decides a case as the host does. It calls the hooks of the policy in order,
// with those of the default policy for the ones it lacks, evicts until an option
// fits, reprieves redundant victims, and chooses an option. It is written for
// clarity, not speed.
//
// If the preemptor has the type binding, PreemptBindings decides, and nodes are
// member clusters.
func (s *Subject) Decide(c *Case) (*Decision, error) {
	if c.Preemptor.JobType == JobTypeBinding {
		return s.decideBindings(c)
	}
	d := &Decision{Chosen: -1}
	shown, err := s.eligibleCase(c, d)
	if err != nil {
		return nil, err
	}
	in := shown.Candidates()
	victims, err := s.victims(in, d)
	if err != nil {
		return nil, err
	}
	for i := range victims {
		d.Victims = append(d.Victims, mapped(victims[i], d.Eligible[i]))
		d.Refused[i] = mapped(d.Refused[i], d.Eligible[i])
	}
	return d, s.chooseOption(c, d)
}

// eligibleCase returns the case without the rows that are not eligible. It sets
// d.Eligible.
func (s *Subject) eligibleCase(c *Case, d *Decision) (*Case, error) {
	in := c.Candidates()
	gaps := slices.Repeat([]int32{in.Preemptor.Delta}, in.Rows.Len())
	if s.Delta != nil {
		var recheck policy.Recheck
		if err := s.Delta.PriorityDelta(in, gaps, &recheck); err != nil {
			return nil, err
		}
		d.RecheckAt = recheck.Time()
	}
	shown := *c
	shown.Options = slices.Clone(c.Options)
	for i := range shown.Options {
		rows := Eligible(in, gaps, i)
		d.Eligible = append(d.Eligible, rows)
		d.Refused = append(d.Refused, nil)
		o := &shown.Options[i]
		all := o.Rows
		o.Rows = nil
		for _, k := range rows {
			o.Rows = append(o.Rows, all[k])
		}
	}
	// Rows that are not shown still count as usage of the cluster.
	shown.fixTables(in)
	return &shown, nil
}

// fixTables copies the shared tables of in to the case, so that they do not change if
// rows are removed from it.
func (c *Case) fixTables(in *policy.Candidates) {
	t := in.Shared
	c.Totals = t.Totals
	c.Namespaces = nil
	for i, name := range t.Namespaces.Name {
		n := Namespace{Name: in.Strings[name], Weight: t.Namespaces.Weight[i]}
		for d := range c.Dims {
			n.Use = append(n.Use, t.Namespaces.Use[d][i])
		}
		c.Namespaces = append(c.Namespaces, n)
	}
}

func mapped(rows, to []int) []int {
	if rows == nil {
		return nil
	}
	list := make([]int, len(rows))
	for i, k := range rows {
		list[i] = to[k]
	}
	return list
}

// victims returns the victims of each option as rows of the shown case, or nil for an
// option that does not fit.
func (s *Subject) victims(in *policy.Candidates, d *Decision) ([][]int, error) {
	switch {
	case s.Selector != nil:
		return s.selected(in, s.Selector, s.KeepRedundant)
	case s.Scorer == nil:
		return s.selected(in, rules.New(), false)
	case s.Info.Adaptive:
		return s.adaptive(in, d)
	}
	scores, err := s.scores(in)
	if err != nil {
		return nil, err
	}
	var list policy.Selection
	list.Reset()
	for i := range in.Len() {
		for _, row := range evictionOrder(in, scores, i) {
			if math.IsInf(scores.Score[row], 1) {
				d.Refused[i] = append(d.Refused[i], row-int(in.FirstRow[i]))
				continue
			}
			list.Pick(row)
		}
		list.Next()
	}
	return EvictUntilFit(in, &list, false), nil
}

func (s *Subject) selected(in *policy.Candidates, p policy.VictimSelector, keep bool) ([][]int, error) {
	const hook = "SelectVictims"
	var list policy.Selection
	list.Reset()
	if err := p.SelectVictims(in, &list); err != nil {
		return nil, err
	}
	if err := checkSelection(hook, in, &list); err != nil {
		return nil, err
	}
	return EvictUntilFit(in, &list, keep), nil
}

func (s *Subject) scores(in *policy.Candidates) (*policy.VictimScores, error) {
	n := in.Rows.Len()
	out := &policy.VictimScores{Tier: make([]int64, n), Score: make([]float64, n)}
	if err := s.Scorer.ScoreVictims(in, out); err != nil {
		return nil, err
	}
	for row, score := range out.Score {
		if math.IsNaN(score) || math.IsInf(score, -1) {
			return nil, &AnswerError{"ScoreVictims", fmt.Sprintf("row %d has the score %v; scores must be finite or +Inf (never)", row, score)}
		}
	}
	return out, nil
}

// evictionOrder returns the rows of option i in the order of eviction.
func evictionOrder(in *policy.Candidates, s *policy.VictimScores, i int) []int {
	var rows []int
	for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
		rows = append(rows, int(row))
	}
	slices.SortStableFunc(rows, func(a, b int) int { return compareScored(s, a, b) })
	return rows
}

// hasTies reports whether the policy gives two rows of the same priority the same
// score. The order of the rows then decides between them.
func (s *Subject) hasTies(c *Case) bool {
	if s.Scorer == nil {
		return false
	}
	shown, err := s.eligibleCase(c, &Decision{})
	if err != nil {
		return false // another property reports the error
	}
	in := shown.Candidates()
	scores, err := s.scores(in)
	if err != nil {
		return false
	}
	for i := range in.Len() {
		rows := evictionOrder(in, scores, i)
		for k := 1; k < len(rows); k++ {
			a, b := rows[k-1], rows[k]
			if in.Rows.Priority[a] == in.Rows.Priority[b] && compareScored(scores, a, b) == 0 {
				return true
			}
		}
	}
	return false
}

func compareScored(s *policy.VictimScores, a, b int) int {
	switch {
	case s.Tier[a] != s.Tier[b]:
		if s.Tier[a] < s.Tier[b] {
			return -1
		}
		return 1
	case s.Score[a] < s.Score[b]:
		return -1
	case s.Score[a] > s.Score[b]:
		return 1
	}
	return 0
}

// adaptive picks one row of every option that does not fit yet, and calls the policy
// again, until no option changes.
func (s *Subject) adaptive(in *policy.Candidates, d *Decision) ([][]int, error) {
	whole := in
	now := cloneNeeds(in)
	picks := make([][]int, in.Len())
	var list policy.Selection
	list.Reset()
	for range in.Rows.Len() {
		scores, err := s.scores(now)
		if err != nil {
			return nil, err
		}
		picked := false
		for i := range picks {
			if Fits(whole, i, picks[i]) {
				continue
			}
			for _, row := range evictionOrder(now, scores, i) {
				k := row - int(in.FirstRow[i])
				if math.IsInf(scores.Score[row], 1) || slices.Contains(picks[i], k) {
					continue
				}
				picks[i], picked = append(picks[i], k), true
				evict(now, i, row)
				break
			}
		}
		if !picked {
			break
		}
	}
	for i := range picks {
		for _, k := range picks[i] {
			list.Pick(k + int(in.FirstRow[i]))
		}
		list.Next()
		if !Fits(whole, i, picks[i]) { // do not evict rows that the policy never picked
			for k := range int(in.FirstRow[i+1] - in.FirstRow[i]) {
				if !slices.Contains(picks[i], k) {
					d.Refused[i] = append(d.Refused[i], k)
				}
			}
		}
	}
	return EvictUntilFit(whole, &list, false), nil
}

// cloneNeeds returns a copy of in with its own columns for values that change with evictions.
func cloneNeeds(in *policy.Candidates) *policy.Candidates {
	c := *in
	clone := func(table [][]float64) [][]float64 {
		t := make([][]float64, len(table))
		for d := range table {
			t[d] = slices.Clone(table[d])
		}
		return t
	}
	c.Need, c.Freed, c.DeviceNeed = clone(in.Need), clone(in.Freed), clone(in.DeviceNeed)
	c.MustLeave = slices.Clone(in.MustLeave)
	return &c
}

// evict moves the resources of a row from need to freed.
func evict(in *policy.Candidates, i, row int) {
	for d := range in.Need {
		in.Need[d][i] -= in.Rows.Use[d][row]
		in.Freed[d][i] += in.Rows.Use[d][row]
	}
	for r := range in.DeviceNeed {
		in.DeviceNeed[r][i] -= in.Rows.Devices[r][row]
	}
	if in.Rows.MustLeave[row] != 0 {
		in.MustLeave[i]--
	}
}

// chooseOption scores the options that fit and sets d.Chosen to the best.
func (s *Subject) chooseOption(c *Case, d *Decision) error {
	fitting := *c
	fitting.Options = nil
	var at []int
	var victims [][]int
	for i, v := range d.Victims {
		if v != nil {
			fitting.Options = append(fitting.Options, c.Options[i])
			at, victims = append(at, i), append(victims, v)
		}
	}
	if len(at) == 0 {
		return nil
	}
	fitting.fixTables(c.Candidates())
	scorer := s.Options
	if scorer == nil {
		scorer = rules.New()
	}
	scores := NewScores(len(at))
	if err := scorer.ScoreOptions(fitting.OptionsOf(victims), scores); err != nil {
		return err
	}
	for i, score := range scores.Score {
		if math.IsNaN(score) || math.IsInf(score, 0) {
			return &AnswerError{"ScoreOptions", fmt.Sprintf("option %d has the score %v; scores must be finite", at[i], score)}
		}
	}
	d.Chosen = at[Best(scores)]
	return nil
}
