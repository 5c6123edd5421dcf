package prune

import (
	"math"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Limits of LeastVictims. More would make bounds closer, and calls longer.
const (
	maxListed = 4 // victims
	maxLevels = 3 // lists of a node
)

// LeastVictims are fictitious victims on a node, in a few lists. The victims of any option
// there are at least as many as those of one of the lists, and can be paired with them such
// that each is at least as high in every column. So a policy with Info.Monotone gives no option
// lower tiers than it gives to one of the lists.
type LeastVictims struct {
	Levels []LeastLevel // of levels
	Use    model.Vector // of each victim, if the policy reads it

	levels [maxLevels]LeastLevel
}

// A LeastLevel contains the victims of options with a certain highest priority: the least
// sufficient one, or the next ones above it. The last level of a node holds for all others.
type LeastLevel struct {
	Count    int              // of the victims
	Priority [maxListed]int32 // the highest first
	LostWork [maxListed]int64 // nanoseconds
}

// ListLeast fills in the least victims on a node. It returns false if the cost depends on more
// than amounts, so that the policy must be called. Annotations are such a case if the policy
// reads them: an instance without one may cost more or less than one with it.
func (e *Estimator) ListLeast(n *fit.Node, read sdk.Columns, v *LeastVictims) bool {
	s, readsAnnotations := e.scope, read.Has(sdk.AnnotationColumns)
	e.deficit = s.Dims.AppendDeficit(e.deficit[:0], n, &s.Group.Ask)
	highest, _, _, ok := e.sufficient(n.Rows, false)
	if !ok {
		return false
	}
	rows, from := n.Rows, 0
	e.lost = e.lost[:0]
	for end := range rows {
		row := &rows[end]
		if int64(row.Priority) > s.Ceiling {
			rows = rows[:end]
			break
		}
		if readsAnnotations && len(row.Group.Annotations) > 0 {
			return false
		}
		if row.Priority < highest {
			from = end + 1
		}
		e.lost = append(e.lost, lostWork(row, s.Now))
	}
	// Everything below the least sufficient priority does not suffice, so that some victims are
	// at or above it: as many as cover what is left, if each freed as much as the largest.
	high := int(e.fewestRows(rows[from:], e.below))
	v.Levels = v.levels[:0]
	e.startLargest()
	counted := 0 // rows[:counted] are in e.largest
	for n, end := 1, from; end < len(rows); n++ {
		level := rows[end].Priority
		first := end
		for end < len(rows) && (n == maxLevels || rows[end].Priority == level) {
			end++
		}
		e.addLargest(rows[counted:end])
		counted = end
		at := len(v.Levels)
		v.Levels = v.levels[:at+1]
		e.listLevel(&v.Levels[at], rows[:end], from, first, high)
		if v.isImplied(at) {
			v.Levels = v.levels[:at]
		}
	}
	if read.Has(sdk.UseColumns) {
		v.Use = leastUse(rows, s.Snap.Dims().Len())
	}
	return true
}

// isImplied reports whether the list of a level has at least the victims of an earlier one,
// each at least as high in every column, so that no option of the level has lower tiers than
// that list.
func (v *LeastVictims) isImplied(level int) bool {
	l := &v.Levels[level]
	for k := range v.Levels[:level] {
		if l.covers(&v.Levels[k]) {
			return true
		}
	}
	return false
}

// covers reports whether each victim of o can be paired with one of l that is at least as high,
// in the order of the lists.
func (l *LeastLevel) covers(o *LeastLevel) bool {
	if l.Count < o.Count {
		return false
	}
	for i := range o.Count {
		if l.Priority[i] < o.Priority[i] || l.LostWork[i] < o.LostWork[i] {
			return false
		}
	}
	return true
}

// lostWork returns the work that the eviction of a row loses, in nanoseconds.
func lostWork(row *state.Row, now int64) int64 {
	if !row.Started {
		return 0
	}
	return row.Group.LostWork(now - row.Start)
}

// listLevel lists the least victims if one of rows[first:] is a victim, and high of rows[from:].
// e.largest must hold the largest amounts of rows.
//
// The first victim is the row of least lost work at that level. It may stand for any other row
// of the level: if a set contains another one, that one loses at least as much, and the rest of
// the set is among the remaining rows. So its row is left out of the lists of the others.
func (e *Estimator) listLevel(l *LeastLevel, rows []state.Row, from, first, high int) {
	least := first
	for i := first + 1; i < len(rows); i++ {
		if e.lost[i] < e.lost[least] {
			least = i
		}
	}
	high = min(high, maxListed)
	l.Count = min(maxListed, max(high, int(e.coverWithLargest(e.deficit, len(rows)))))
	l.Priority[0], l.LostWork[0] = rows[first].Priority, e.lost[least]
	e.listOthers(l, 1, high, from, len(rows), least)
	e.listOthers(l, high, l.Count, 0, len(rows), least)
	for i := 1; i < l.Count; i++ {
		if l.Priority[i] = rows[0].Priority; i < high {
			l.Priority[i] = rows[from].Priority
		}
	}
}

// listOthers sets l.LostWork[at:end] to the least lost work of the rows from a position to
// another one, without one of them.
func (e *Estimator) listOthers(l *LeastLevel, at, end, from, to, except int) {
	if at >= end {
		return
	}
	least := l.LostWork[at:end]
	for i := range least {
		least[i] = math.MaxInt64
	}
	for i := from; i < to; i++ {
		if i == except {
			continue
		}
		work := e.lost[i]
		for k := len(least) - 1; k >= 0 && work < least[k]; k-- {
			if k+1 < len(least) {
				least[k+1] = least[k]
			}
			least[k] = work
		}
	}
}

// leastUse returns the least use of any row, by dimension.
func leastUse(rows []state.Row, dims int) model.Vector {
	least := rows[0].Group.Ask.Vec
	for i := 1; i < len(rows); i++ {
		if rows[i].Group == rows[i-1].Group {
			continue
		}
		for d, use := range rows[i].Group.Ask.Vec[:dims] {
			least[d] = min(least[d], use)
		}
	}
	return least
}
