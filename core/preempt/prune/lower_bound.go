package prune

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/state"
)

// An Estimator computes the least cost of evictions on a node from priorities, amounts
// and budgets: in a fraction of the time of a call to the policy. If the policy also
// declares the order of victims, the estimate is exact (predict.go).
//
// An Estimator serves one worker.
type Estimator struct {
	scope *protect.Scope
	mode  EstimatorMode

	deficit []int64 // of the node at hand, by tracked dimension
	left    []int64 // its remainder while rows are released
	below   []int64 // its remainder before the highest priority was reached
	starts  []int64 // scratch of latestStart
	lost    []int64 // of ListLeast: lost work, by row
	largest []int64 // amounts of rows, by requested dimension
	lower   []int64 // of ListLeast: those of rows below the least sufficient priority, and of earlier levels
	counts  []groupCount
	order   candidateOrder
	charged protect.Charges
}

// EstimatorMode holds the declarations of the policy.
type EstimatorMode struct {
	Predictable      bool // costs can be predicted exactly
	BudgetsFirst     bool // the policy spares budgets before it goes by priority
	CountsViolations bool // the chooser compares budget violations
}

// groupCount is how many rows of a group were counted, and how many strict budgets
// allow to be evicted.
type groupCount struct {
	group         *model.Group
	rows, allowed int
}

// Start prepares for a search.
func (e *Estimator) Start(scope *protect.Scope, mode EstimatorMode) {
	e.scope, e.mode = scope, mode
	e.order.reset()
}

// Estimate returns a lower bound of the cost of evictions on a node, or the exact cost. ok
// is false if the cost depends on more than amounts: then the policy must be called.
func (e *Estimator) Estimate(n *fit.Node) (cost Cost, exact, ok bool) {
	e.deficit = e.scope.Dims.AppendDeficit(e.deficit[:0], n, &e.scope.Group.Ask)
	if cost, ok := e.predict(n); ok {
		return cost, true, true
	}
	tight := e.mode.CountsViolations && e.scope.Budgets.Least <= 0
	cost, ok = e.lowerBound(n.Rows, tight)
	if !ok && tight {
		// Without a violation it is not enough: at least as many rows violate a budget as
		// are needed to cover the rest.
		violations := e.fewestRows(n.Rows, e.left)
		cost, ok = e.lowerBound(n.Rows, false)
		cost.Violations = violations
	}
	return cost, false, ok
}

// startDeficit copies the node's deficit to e.left and returns how many of the requested
// dimensions are short.
func (e *Estimator) startDeficit() (short int) {
	e.left = append(e.left[:0], e.deficit...)
	return e.scope.Dims.CountShort(e.left)
}

// lowerBound computes a lower bound for victims that make the request fit:
//
//   - the highest priority, as everything below it does not suffice;
//   - one victim of that priority, and as many of the lowest priorities as there have to
//     be at least;
//   - the latest start that the earliest one of the highest priority can have.
//
// With withoutTight, rows that overrun a budget in any case are left out.
// Other protection is ignored: fewer candidates do not cost less.
func (e *Estimator) lowerBound(rows []state.Row, withoutTight bool) (c Cost, ok bool) {
	highest, from, end, ok := e.sufficient(rows, withoutTight)
	if !ok {
		return c, false
	}
	c.Highest = highest
	c.Start = e.latestStart(rows[from:end], c.Highest)
	c.Victims = e.fewestRows(rows[:end], e.deficit)
	c.Sum = int64(c.Highest) + raise
	for _, row := range rows[:c.Victims-1] {
		c.Sum += int64(row.Priority) + raise
	}
	return c, true
}

// sufficient returns the least priority up to which the rows suffice, and a range that
// contains all counted rows of this priority. e.below is the deficit before them. ok is false
// if the rows do not suffice, or if no amount is short.
func (e *Estimator) sufficient(rows []state.Row, withoutTight bool) (highest int32, from, end int, ok bool) {
	s := e.scope
	short := e.startDeficit()
	e.counts = e.counts[:0]
	limited := s.Strict && s.Budgets.Least < len(rows)
	if short == 0 {
		return 0, 0, 0, false // the obstacle is not an amount
	}
	for from = -1; end < len(rows); end++ {
		row := &rows[end]
		if int64(row.Priority) > s.Ceiling || short <= 0 && row.Priority != highest {
			break
		}
		if withoutTight && s.Budgets.IsExhausted(row) || limited && e.exceedsStrict(row) {
			continue
		}
		if from < 0 || row.Priority != highest {
			highest, from = row.Priority, end
			e.below = append(e.below[:0], e.left...)
		}
		short -= s.Dims.Release(e.left, &row.Group.Ask.Vec)
	}
	return highest, from, end, short <= 0
}

// latestStart returns the latest that the earliest start among the victims of the
// highest priority can be, given how many of them are needed at least to cover the
// rest after all lower priorities.
func (e *Estimator) latestStart(rows []state.Row, priority int32) int64 {
	e.starts = e.starts[:0]
	for i := range rows {
		if rows[i].Priority == priority {
			e.starts = append(e.starts, min(e.scope.Now, rows[i].Start))
		}
	}
	slices.Sort(e.starts)
	return e.starts[max(0, len(e.starts)-int(e.fewestRows(rows, e.below)))]
}

// exceedsStrict counts a row and reports whether strict budgets allow fewer evictions
// of its group than have been counted.
func (e *Estimator) exceedsStrict(row *state.Row) bool {
	if !row.Started {
		return false
	}
	s := e.scope
	at := slices.IndexFunc(e.counts, func(c groupCount) bool { return c.group == row.Group })
	if at < 0 {
		at = len(e.counts)
		e.counts = append(e.counts, groupCount{row.Group, 0, math.MaxInt})
		budgets := s.Snap.Budgets()
		for _, b := range s.Snap.GroupBudgets(row.Group) {
			if budgets[b].Strict {
				e.counts[at].allowed = min(e.counts[at].allowed, s.Budgets.Slack[b])
			}
		}
	}
	c := &e.counts[at]
	c.rows++
	return c.rows > c.allowed
}

// fewestRows returns the least number of rows that can cover a deficit: by dimension,
// as many as if each of them held as much as the largest one. It is at least 1.
func (e *Estimator) fewestRows(rows []state.Row, deficit []int64) int32 {
	for x := range rows {
		if int64(rows[x].Priority) > e.scope.Ceiling {
			rows = rows[:x]
			break
		}
	}
	e.largest = e.addLargest(e.startLargest(e.largest), rows)
	return coverWith(deficit, e.largest, len(rows))
}

// startLargest returns the largest amounts of no rows, in the memory of largest.
func (e *Estimator) startLargest(largest []int64) []int64 {
	largest = largest[:0]
	for range e.scope.Dims.Requested {
		largest = append(largest, 1)
	}
	return largest
}

// addLargest adds rows to the largest amounts of any row, by requested dimension.
func (e *Estimator) addLargest(largest []int64, rows []state.Row) []int64 {
	tracked := e.scope.Dims.Tracked
	var last *model.Group
	for x := range rows {
		g := rows[x].Group
		if g == last {
			continue
		}
		last = g
		for i := range largest {
			largest[i] = max(largest[i], g.Ask.Vec[tracked[i]%model.MaxDimensions])
		}
	}
	return largest
}

// coverWith returns how many rows cover a deficit if each held the largest amounts: at
// least 1, and at most the number of rows.
func coverWith(deficit, largest []int64, rows int) int32 {
	n := int64(1)
	for i, most := range largest {
		if deficit[i] > 0 {
			n = max(n, (deficit[i]+most-1)/most)
		}
	}
	return int32(min(n, int64(rows)))
}
