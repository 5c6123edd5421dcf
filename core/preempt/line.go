package preempt

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// line is the candidates of the node at hand in the order in which they go, as far as
// somebody has looked: the lowest priority first, and of one the youngest first.
// Rows are known by their position on the node.
type line struct {
	rows  []state.Row
	order []int32
	next  int     // of rows: where the priority begins that is lined up next
	fate  []fate  // by row
	known int     // the fates of the first so many rows are known
	some  bool    // of them one goes without overrunning a budget, or may
	picks []int32 // who has to go

	left    []left // by budget
	node    uint32 // a number for the node
	victims []*state.Row
	// notes is what was found of groups, each where its hash says. They hold as long as
	// what budgets have left.
	notes [noteSlots]note
}

// fate is what may become of a row.
type fate uint8

const (
	stays fate = iota
	goes
	overruns // it goes after the others, and overruns a budget
)

// left is what is left of a budget. It is as good as not there where the number is not
// that of the node at hand.
type left struct {
	node  uint32
	count int
}

// note is what holds for all rows of a group.
type note struct {
	group          *model.Group
	idle, working  fate // of a row that evicting costs no budget, and of one that works
	mayOverrunWith int  // from so many candidates on one that works may overrun a budget
	under          []int32
}

const noteSlots = 1 << 10

// note is what is known of a group.
func (s *searcher) note(g *model.Group) *note {
	n := &s.line.notes[g.NameHash()%noteSlots]
	if n.group != g {
		s.write(n, g)
	}
	return n
}

func (s *searcher) write(n *note, g *model.Group) {
	*n = note{group: g, mayOverrunWith: math.MaxInt}
	own := s.f.req.Group.Job
	if j := g.Job; j.NonPreemptible || j == own || j.ID == own.ID && j.Namespace == own.Namespace {
		return
	}
	n.idle, n.working = goes, goes
	if s.f.leastSlack == math.MaxInt {
		return // budgets do not matter
	}
	n.under = s.f.snap.GroupBudgets(g)
	budgets := s.f.snap.Budgets()
	for _, b := range n.under {
		switch slack := s.f.slacks[b]; {
		case slack > 0:
			n.mayOverrunWith = min(n.mayOverrunWith, slack+1)
		case budgets[b].Strict:
			n.working = stays
		case n.working == goes:
			n.working = overruns
		}
	}
}

// findFates finds out what may become of the rows up to a position. With open it
// depends on who else goes whether somebody overruns a budget.
func (l *line) findFates(s *searcher, to int) (open bool) {
	for ; l.known < to; l.known++ {
		row := &l.rows[l.known]
		n := s.note(row.Group)
		fate := n.idle
		if row.Started {
			fate = n.working
			open = open || fate != stays && n.mayOverrunWith <= len(l.rows)
		}
		l.fate = append(l.fate, fate)
		l.some = l.some || fate == goes
	}
	return open
}

// lineUp appends the candidates of the next priority.
func (l *line) lineUp(s *searcher) {
	at, begin := l.next, len(l.order)
	priority := l.rows[at].Priority
	for at < len(l.rows) && l.rows[at].Priority == priority {
		at++
	}
	l.findFates(s, at)
	for x := l.next; x < at; x++ {
		if l.fate[x] == stays {
			continue
		}
		i := len(l.order)
		l.order = append(l.order, int32(x))
		for start := s.startOf(x); i > begin && start > s.startOf(int(l.order[i-1])); i-- {
			l.order[i], l.order[i-1] = l.order[i-1], int32(x)
		}
	}
	l.next = at
}

// startOf is when a row started, as policies see it.
func (s *searcher) startOf(x int) int64 { return min(s.f.req.Now, s.line.rows[x].Start) }

// charge finds out who overruns a budget when everybody in line is charged, the last
// first.
func (l *line) charge(s *searcher) {
	slacks := s.f.slacks
	if l.node++; len(l.left) != len(slacks) || l.node == 0 {
		l.left, l.node = zeroed(l.left, len(slacks)), 1
	}
	for _, x := range slices.Backward(l.order) {
		row := &l.rows[x]
		if !row.Started {
			continue
		}
		for _, b := range s.note(row.Group).under {
			of := &l.left[b]
			if of.node != l.node {
				*of = left{l.node, slacks[b]}
			}
			if of.count--; of.count < 0 {
				l.fate[x] = overruns
			}
		}
	}
}

// pick picks those in line that have a fate until nothing is missing.
func (l *line) pick(s *searcher, fate fate, missing int) int {
	for i := 0; missing > 0; i++ {
		for i == len(l.order) {
			if l.next == len(l.rows) {
				return missing
			}
			l.lineUp(s)
		}
		if x := l.order[i]; l.fate[x] == fate {
			l.picks = append(l.picks, x)
			missing -= s.f.watch.frees(s.missing, &l.rows[x].Group.Ask.Vec)
		}
	}
	return missing
}

// spare leaves the picks that are needed: the others are put back, the last first.
func (l *line) spare(s *searcher) {
	needed := len(l.picks) - 1 // where those begin that are
	for i := needed - 1; i >= 0; i-- {
		vec := &l.rows[l.picks[i]].Group.Ask.Vec
		if s.f.watch.takes(s.missing, vec) == 0 {
			continue
		}
		s.f.watch.frees(s.missing, vec)
		needed--
		l.picks[needed] = l.picks[i]
	}
	l.picks = append(l.picks[:0], l.picks[needed:]...)
}
