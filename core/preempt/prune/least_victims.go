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
	Levels []LeastLevel // of levels; empty: all options exceed the limit
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

// OneVictim returns a victim of a priority that loses no work.
func OneVictim(priority int32) LeastLevel {
	return LeastLevel{Count: 1, Priority: [maxListed]int32{priority}}
}

// A Limit excludes options from lists.
type Limit struct {
	// Ceiling is the highest priority of victims in lists. Options with a higher one need no
	// list: the policy ranks each of them at least as far behind as Key.
	Ceiling int64
	Key     Key
}

// ListLeast fills in the least victims on a node. It returns false if the cost depends on more
// than amounts, so that the policy must be called. Annotations are such a case if the policy
// reads them: an instance without one may cost more or less than one with it.
//
// With a limit, one list holds for all levels: a policy that ranks higher priorities behind
// whatever else they cost usually distinguishes few of those below the limit.
func (e *Estimator) ListLeast(n *fit.Node, read sdk.Columns, limit *Limit, v *LeastVictims) bool {
	s, ceiling, levels := e.scope, e.scope.Ceiling, maxLevels
	if limit != nil {
		ceiling, levels = limit.Ceiling, 1
	}
	v.Levels = v.levels[:0]
	e.deficit = s.Dims.AppendDeficit(e.deficit[:0], n, &s.Group.Ask)
	if s.Dims.CountShort(e.deficit) == 0 || read.Has(sdk.AnnotationColumns) && haveAnnotations(n, s.Ceiling) {
		return false
	}
	rows := upTo(n.Rows, ceiling)
	highest, from, _, ok := e.sufficient(rows, false)
	if !ok {
		return limit != nil
	}
	for from > 0 && rows[from-1].Priority == highest {
		from--
	}
	e.lost = e.lost[:0]
	for i := range rows {
		e.lost = append(e.lost, lostWork(&rows[i], s.Now))
	}
	e.lower = e.addLargest(e.startLargest(e.lower), rows[:from])
	e.largest = e.startLargest(e.largest)
	for n, end := 1, from; end < len(rows); n++ {
		level, first := rows[end].Priority, end
		for end < len(rows) && (n == levels || rows[end].Priority == level) {
			end++
		}
		e.largest = e.addLargest(e.largest, rows[first:end])
		at := len(v.Levels)
		v.Levels = v.levels[:at+1]
		e.listLevel(&v.Levels[at], rows[:end], from, first)
		if v.isImplied(at) {
			v.Levels = v.levels[:at]
		}
	}
	if read.Has(sdk.UseColumns) {
		v.Use = leastUse(rows, s.Snap.Dims().Len())
	}
	return true
}

// upTo returns the rows up to a priority.
func upTo(rows []state.Row, ceiling int64) []state.Row {
	for i := range rows {
		if int64(rows[i].Priority) > ceiling {
			return rows[:i]
		}
	}
	return rows
}

// haveAnnotations reports whether a row of a node up to a priority has annotations.
func haveAnnotations(n *fit.Node, ceiling int64) bool {
	if n.Chunk.HasAnnotations()>>n.Index&1 == 0 {
		return false
	}
	rows := upTo(n.Rows, ceiling)
	for i := range rows {
		if len(rows[i].Group.Annotations) > 0 {
			return true
		}
	}
	return false
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

// listLevel lists the least victims if one of rows[first:] is a victim, and none above them.
// rows[from:] have at least the least sufficient priority. Their largest amounts must be in
// e.largest, those of the others in e.lower.
//
// The first victim is the row of least lost work at that level. It may stand for any other row
// of the level: if a set contains another one, that one loses at least as much, and the rest of
// the set is among the remaining rows. So its row is left out of the lists of the others.
func (e *Estimator) listLevel(l *LeastLevel, rows []state.Row, from, first int) {
	least := first
	for i := first + 1; i < len(rows); i++ {
		if e.lost[i] < e.lost[least] {
			least = i
		}
	}
	// Everything below the least sufficient priority does not suffice, so that some victims are
	// at or above it: as many as cover what is left, if each freed as much as the largest.
	high := min(maxListed, int(coverWith(e.below, e.largest, len(rows)-from)))
	for i, most := range e.largest {
		e.lower[i] = max(e.lower[i], most)
	}
	l.Count = min(maxListed, max(high, int(coverWith(e.deficit, e.lower, len(rows)))))
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
