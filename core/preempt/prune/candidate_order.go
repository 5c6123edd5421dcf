package prune

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/state"
)

// A candidateOrder holds the candidates of one node in the order in which they are
// evicted, as far as that was needed: ascending by priority, the youngest first. Rows are
// referred to by their position on the node.
type candidateOrder struct {
	rows         []state.Row
	order        []int32
	next         int           // in rows: where the next priority to be sorted begins
	dispositions []disposition // by row, as far as classified
	hasEvictable bool          // some classified row is evictable
	picks        []int32       // victims

	remaining []remainder // by budget
	node      uint32      // number of the node, which makes remainders of other nodes stale
	victims   []*state.Row
	// memos hold properties of groups, at the position of their hash. They
	// are valid as long as the slack of budgets does not change.
	memos [memoSlots]groupMemo
}

// A disposition determines if and when a row may be evicted.
type disposition uint8

const (
	kept        disposition = iota
	evictable               // without overrunning a budget, as far as classified
	overrunning             // after all evictable ones, as it overruns a budget
)

// A remainder is the rest of a budget's slack. It is stale unless node is that of
// the node at hand.
type remainder struct {
	node  uint32
	count int
}

// A groupMemo holds properties that all rows of a group share.
type groupMemo struct {
	group            *model.Group
	pending, started disposition // of rows that have not started, and of rows that have
	// mayOverrunFrom is the number of candidates on a node from which on started rows
	// may overrun a budget together.
	mayOverrunFrom int
	under          []int32 // budgets
}

// memoSlots is the size of the memo table. Colliding groups replace each other.
const memoSlots = 1 << 10

// reset discards all memos.
func (l *candidateOrder) reset() { clear(l.memos[:]) }

// start begins a node. rows ascend by priority.
func (l *candidateOrder) start(rows []state.Row, ceiling int64) {
	l.order, l.picks, l.dispositions, l.next, l.hasEvictable = l.order[:0], l.picks[:0], l.dispositions[:0], 0, false
	n := len(rows)
	for n > 0 && int64(rows[n-1].Priority) > ceiling {
		n--
	}
	l.rows = rows[:n]
}

// memo returns the memo of a group.
func (l *candidateOrder) memo(s *protect.Scope, g *model.Group) *groupMemo {
	m := &l.memos[g.NameHash()%memoSlots]
	if m.group != g {
		m.fill(s, g)
	}
	return m
}

func (m *groupMemo) fill(s *protect.Scope, g *model.Group) {
	*m = groupMemo{group: g, mayOverrunFrom: math.MaxInt}
	own := s.Group.Job
	if j := g.Job; j.NonPreemptible || j == own || j.ID == own.ID && j.Namespace == own.Namespace {
		return
	}
	m.pending, m.started = evictable, evictable
	if s.Budgets.Least == math.MaxInt {
		return // budgets do not matter
	}
	m.under = s.Snap.GroupBudgets(g)
	budgets := s.Snap.Budgets()
	for _, b := range m.under {
		switch slack := s.Budgets.Slack[b]; {
		case slack > 0:
			m.mayOverrunFrom = min(m.mayOverrunFrom, slack+1)
		case budgets[b].Strict:
			m.started = kept
		case m.started == evictable:
			m.started = overrunning
		}
	}
}

// classify determines the disposition of the rows up to a position. It returns true if
// it depends on the other victims whether one of them overruns a budget.
func (l *candidateOrder) classify(s *protect.Scope, to int) (depends bool) {
	for x := len(l.dispositions); x < to; x++ {
		row := &l.rows[x]
		m := l.memo(s, row.Group)
		d := m.pending
		if row.Started {
			d = m.started
			depends = depends || d != kept && m.mayOverrunFrom <= len(l.rows)
		}
		l.dispositions = append(l.dispositions, d)
		l.hasEvictable = l.hasEvictable || d == evictable
	}
	return depends
}

// sortNext appends the candidates of the next priority to the order. Insertion sort is
// stable, and a node has few rows of one priority.
func (l *candidateOrder) sortNext(s *protect.Scope) {
	at, begin := l.next, len(l.order)
	priority := l.rows[at].Priority
	for at < len(l.rows) && l.rows[at].Priority == priority {
		at++
	}
	l.classify(s, at)
	for x := l.next; x < at; x++ {
		if l.dispositions[x] == kept {
			continue
		}
		i := len(l.order)
		l.order = append(l.order, int32(x))
		for start := l.startOf(x, s.Now); i > begin && start > l.startOf(int(l.order[i-1]), s.Now); i-- {
			l.order[i], l.order[i-1] = l.order[i-1], int32(x)
		}
	}
	l.next = at
}

// startOf returns when a row started, as policies see it: now if it has not yet.
func (l *candidateOrder) startOf(x int, now int64) int64 { return min(now, l.rows[x].Start) }

// charge charges every candidate in the order, the last first, and marks those that
// overrun a budget.
func (l *candidateOrder) charge(s *protect.Scope) {
	slack := s.Budgets.Slack
	if l.node++; len(l.remaining) != len(slack) || l.node == 0 {
		l.remaining, l.node = scratch.Zeroed(l.remaining, len(slack)), 1
	}
	for _, x := range slices.Backward(l.order) {
		row := &l.rows[x]
		if !row.Started {
			continue
		}
		for _, b := range l.memo(s, row.Group).under {
			of := &l.remaining[b]
			if of.node != l.node {
				*of = remainder{l.node, slack[b]}
			}
			if of.count--; of.count < 0 {
				l.dispositions[x] = overrunning
			}
		}
	}
}

// pick picks the candidates with a disposition in order until no dimension is short. It
// subtracts their amounts from the deficit, and returns how many dimensions are short.
func (l *candidateOrder) pick(s *protect.Scope, deficit []int64, d disposition, short int) int {
	for i := 0; short > 0; i++ {
		for i == len(l.order) {
			if l.next == len(l.rows) {
				return short
			}
			l.sortNext(s)
		}
		if x := l.order[i]; l.dispositions[x] == d {
			l.picks = append(l.picks, x)
			short -= s.Dims.Release(deficit, &l.rows[x].Group.Ask.Vec)
		}
	}
	return short
}

// reprieve removes the picks that are not needed, checking the last one first. The
// last pick itself is always needed.
func (l *candidateOrder) reprieve(dims *fit.Dims, deficit []int64) {
	needed := len(l.picks) - 1 // picks[needed:] are needed
	for i := needed - 1; i >= 0; i-- {
		vec := &l.rows[l.picks[i]].Group.Ask.Vec
		if dims.Occupy(deficit, vec) == 0 {
			continue
		}
		dims.Release(deficit, vec)
		needed--
		l.picks[needed] = l.picks[i]
	}
	l.picks = append(l.picks[:0], l.picks[needed:]...)
}

// pickedRows returns the rows of the picks. The list is valid until the next call.
func (l *candidateOrder) pickedRows() []*state.Row {
	l.victims = l.victims[:0]
	for _, x := range l.picks {
		l.victims = append(l.victims, &l.rows[x])
	}
	return l.victims
}
