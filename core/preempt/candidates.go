package preempt

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// candidateSet holds the candidates of the node at hand: ascending by priority, then in
// tie order.
type candidateSet struct {
	rows      []*state.Row
	mustLeave []uint8 // by row: the SDK's reasons
	narrower  protect.Narrower
	left      []int64         // scratch of narrow
	charged   protect.Charges // scratch of narrow
}

// reset empties the set.
func (c *candidateSet) reset() { c.rows, c.mustLeave = c.rows[:0], c.mustLeave[:0] }

// collect fills the set with the rows that may be evicted at all: of sufficiently low
// priority, preemptible, of another job, not an affinity target of the group, and not
// protected. It adds to e.Separated. Rows are ascending by priority, so the loop ends
// at the ceiling.
func (c *candidateSet) collect(s *search, guard *protect.Guard, e *columns.Entry) {
	c.reset()
	rules := s.req.Rules
	for at := range e.Rows {
		row := &e.Rows[at]
		if int64(row.Priority) > s.scope.Ceiling {
			break
		}
		if job := row.Group.Job; job.NonPreemptible || s.isOwn(job) {
			continue
		}
		if rules != nil && rules.IsAffinityTarget(e.Pos, row) {
			continue
		}
		if e.Guarded && !guard.IsEvictable(e.Slot, row) {
			continue
		}
		c.rows = append(c.rows, row)
	}
	c.markLeaving(s, e)
	if e.HasSeparation {
		for at := range e.Rows {
			if rules.Separated(e.Pos, &e.Rows[at]) {
				e.Separated++
			}
		}
	}
	e.Separated += int32(len(e.Remote()))
	if !s.req.TieOrder.ByID() {
		c.sort(s) // rows of a snapshot are sorted by ID
	}
	for _, row := range e.Remote() {
		c.insert(s, row, sdk.MustLeaveSeparation)
	}
}

// markLeaving fills the reasons for which candidates must leave. There are none where amounts
// alone decide.
func (c *candidateSet) markLeaving(s *search, e *columns.Entry) {
	c.mustLeave = scratch.Zeroed(c.mustLeave, len(c.rows))
	if e.AmountsOnly {
		return
	}
	for at, row := range c.rows {
		c.mustLeave[at] = s.mustLeave(e.Pos, row)
	}
}

// compareRows orders rows by priority, then in tie order.
func (s *search) compareRows(a, b *state.Row) int {
	if a.Priority != b.Priority {
		return cmp.Compare(a.Priority, b.Priority)
	}
	return s.req.TieOrder.Compare(a.Alloc.ID, b.Alloc.ID)
}

// sort reorders candidates of equal priority by the seed of the tie order.
func (c *candidateSet) sort(s *search) {
	marks := make(map[*state.Row]uint8, len(c.rows))
	for i, row := range c.rows {
		marks[row] = c.mustLeave[i]
	}
	slices.SortFunc(c.rows, s.compareRows)
	for i, row := range c.rows {
		c.mustLeave[i] = marks[row]
	}
}

// insert adds a candidate where it belongs.
func (c *candidateSet) insert(s *search, row *state.Row, mustLeave uint8) {
	at, _ := slices.BinarySearchFunc(c.rows, row, s.compareRows)
	c.rows, c.mustLeave = slices.Insert(c.rows, at, row), slices.Insert(c.mustLeave, at, mustLeave)
}

// filter removes the candidates for which keep returns false.
func (c *candidateSet) filter(keep func(i int) bool) {
	kept := 0
	for i, row := range c.rows {
		if keep(i) {
			c.rows[kept], c.mustLeave[kept] = row, c.mustLeave[i]
			kept++
		}
	}
	c.rows, c.mustLeave = c.rows[:kept], c.mustLeave[:kept]
}

// addCohorts adds the members on other nodes of all-or-none jobs with candidates, so
// that the policy is called to allow their eviction, too. Cohorts are few and their
// members are cached by the guard.
func (c *candidateSet) addCohorts(s *search, guard *protect.Guard, pos int32) {
	var added []model.JobKey
	for _, row := range slices.Clone(c.rows) {
		key := row.Group.Job.Key()
		if !row.Group.Job.AllOrNone || slices.Contains(added, key) {
			continue
		}
		added = append(added, key)
		for _, member := range guard.Cohort(key).Rows {
			if member.Alloc.NodePos != pos && !slices.Contains(c.rows, member) {
				c.insert(s, member, 0)
			}
		}
	}
}

// dropCohorts removes the members on other nodes that addCohorts added, and the
// candidates of cohorts of which the policy does not allow every member. shown are the
// candidates that the policy was called about; the set holds those that it allows.
func (c *candidateSet) dropCohorts(e *columns.Entry, shown []*state.Row) {
	var broken []model.JobKey
	for _, row := range shown {
		if row.Group.Job.AllOrNone && !slices.Contains(c.rows, row) {
			broken = append(broken, row.Group.Job.Key())
		}
	}
	c.filter(func(i int) bool {
		row := c.rows[i]
		isHere := row.Alloc.NodePos == e.Pos || slices.Contains(e.Remote(), row)
		return isHere && !slices.Contains(broken, row.Group.Job.Key())
	})
}

// reachAmounts returns how many candidates matter to an option where amounts alone
// decide: all of them, or for a policy that goes by ascending priority those up to the
// first priority with which the group fits. It returns 0 if the group does not fit even
// with every candidate evicted. It costs a pass over the candidates for each dimension
// that is short.
func (c *candidateSet) reachAmounts(s *search, e *columns.Entry) int {
	ask := &s.req.Group.Ask
	n := 0
	for _, d := range ask.Dims {
		free := e.Free(int(d))
		at := 0
		for ; at < len(c.rows) && free < ask.Vec[d]; at++ {
			free += c.rows[at].Group.Ask.Vec[d]
		}
		if free < ask.Vec[d] {
			return 0
		}
		n = max(n, at)
	}
	return c.levelEnd(s, e, n)
}

// levelEnd extends a prefix of the candidates to the end of its last priority, or to all
// of them if the policy does not go by ascending priority.
func (c *candidateSet) levelEnd(s *search, e *columns.Entry, n int) int {
	if !s.traits.ascending || e.ShowAll {
		return len(c.rows)
	}
	for n < len(c.rows) && n > 0 && c.rows[n].Priority == c.rows[n-1].Priority {
		n++
	}
	return n
}

// narrow removes candidates that a policy which puts budgets before ascending
// priorities cannot reach. If the candidates overrun no budget together, all of them
// stay, and the policy is shown no more than the first sufficient priority.
func (c *candidateSet) narrow(s *search, e *columns.Entry, deficit []int64) {
	e.ShowAll = s.traits.budgetsFirst && s.scope.Budgets.Overrun(c.rows, &c.charged)
	if !e.ShowAll || !e.AmountsOnly {
		return
	}
	c.left = append(c.left[:0], deficit...)
	if reached, ok := c.narrower.Reach(&s.scope, c.rows, c.left); ok {
		c.filter(func(i int) bool { return reached[i] })
	}
}

// reach returns how many candidates matter to an option if the request contains ports or
// devices, or if separation applies: it removes candidates priority by priority until the
// group fits. check must be that of the option before any eviction. It returns 0 if the
// group never fits.
func (c *candidateSet) reach(s *search, e *columns.Entry, check *fit.Check) int {
	for n := 0; n < len(c.rows); {
		for to := c.levelEnd(s, e, n+1); n < to; n++ {
			check.Remove(c.rows[n], c.mustLeave[n])
		}
		if check.Fits() {
			return n
		}
	}
	return 0
}

// collectAgain collects the candidates of an option without those that strict budgets
// kept.
func (c *candidateSet) collectAgain(s *search, guard *protect.Guard, e *columns.Entry) {
	all := e.Limits.All
	if s.traits.delta == nil {
		e.Separated = 0
		c.collect(s, guard, e)
		all = slices.Clone(c.rows)
	}
	c.reset()
	for _, row := range all {
		if !slices.Contains(e.Limits.Blocked, row) {
			c.rows, c.mustLeave = append(c.rows, row), append(c.mustLeave, s.mustLeave(e.Pos, row))
		}
	}
}

// findRemote finds out whether evictions on other nodes make a node feasible that the
// rules forbid. Every conflicting allocation must be evictable. It costs a pass over
// the conflicting allocations, whose number the rules bound.
func (s *search) findRemote(guard *protect.Guard, e *columns.Entry, pos int32) bool {
	if !s.traits.remote {
		return false
	}
	own := s.req.Group.Job.Key()
	allocs, ok := s.req.Rules.RemoteConflicts(pos)
	if !ok {
		return false
	}
	guard.Findings.NonFinal = true // allocations on other nodes decide
	var rows []*state.Row
	for _, a := range allocs {
		if a.LostWith(s.scope.Snap.Node(a.NodeID), s.scope.Now) {
			return false // it leaves without an eviction, as soon as its job is evaluated
		}
		row := protect.RowOf(s.scope.Snap, a)
		if int64(row.Priority) > s.scope.Ceiling || a.Job.NonPreemptible || a.Job.Key() == own ||
			s.req.Rules.IsAffinityTarget(AnyNode, row) || !guard.IsEvictable(e.Slot, row) {
			return false
		}
		rows = append(rows, row)
	}
	e.Limits = &columns.Limits{Remote: rows}
	return true
}
