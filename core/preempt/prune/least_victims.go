package prune

import (
	"math"

	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// Limits of least victims. More would make bounds closer, and calls longer.
const (
	maxListed = 4 // victims
	maxLevels = 3 // lists of a node
)

// LeastVictims are fictitious victims on some nodes, in a few lists each. The victims of any
// option on a node are at least as many as those of one of its lists, and can be paired with
// them such that each is at least as high in every column. So a policy with Info.Monotone gives
// no option lower tiers than it gives to one of the lists.
//
// The lists of all nodes are in one array: a search makes one or more for every node, and
// copying them from node to node would take longer than finding them.
type LeastVictims struct {
	Levels []LeastLevel
	Uses   []int64 // of each victim of a level, by level and then by dimension; empty: the policy does not read it
}

// Reset removes all lists.
func (v *LeastVictims) Reset() { v.Levels, v.Uses = v.Levels[:0], v.Uses[:0] }

// A LeastLevel contains the victims of options with a certain highest priority: the least
// sufficient one, or the next ones above it. The last level of a node holds for all others.
type LeastLevel struct {
	Node     int32            // position; set by the caller of ListLeast
	Count    int32            // of the victims
	Priority [maxListed]int32 // the highest first
	LostWork [maxListed]int64 // nanoseconds
}

// AppendUse appends the use of a dimension, one of dims, by each victim of each level. It is 0
// for levels without a use.
func (v *LeastVictims) AppendUse(uses []float64, d, dims int) []float64 {
	for i, at := 0, d; i < len(v.Levels); i, at = i+1, at+dims {
		use := 0.0
		if at < len(v.Uses) {
			use = float64(v.Uses[at])
		}
		for range v.Levels[i].Count {
			uses = append(uses, use)
		}
	}
	return uses
}

// OneVictim returns a victim of a priority on a node that loses no work.
func OneVictim(node, priority int32) LeastLevel {
	return LeastLevel{Node: node, Count: 1, Priority: [maxListed]int32{priority}}
}

// A Limit excludes options from lists.
type Limit struct {
	// Ceiling is the highest priority of victims in lists. Options with a higher one need no
	// list: the policy ranks each of them at least as far behind as Key.
	Ceiling int64
	Key     Key
}

// ListLeast appends the lists of a node: none if all options exceed the limit. It returns false
// if the cost depends on more than amounts, so that the policy must be called. Annotations are
// such a case if the policy reads them: an instance without one may cost more or less than one
// with it.
//
// With a limit, one list holds for all levels: a policy that ranks higher priorities behind
// whatever else they cost usually distinguishes few of those below the limit.
func (e *Estimator) ListLeast(n *fit.Node, read sdk.Columns, limit *Limit, v *LeastVictims) bool {
	s, ceiling, levels := e.scope, e.scope.Ceiling, maxLevels
	if limit != nil {
		ceiling, levels = limit.Ceiling, 1
	}
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
	of := len(v.Levels)
	for n, end := 1, from; end < len(rows); n++ {
		level, first := rows[end].Priority, end
		for end < len(rows) && (n == levels || rows[end].Priority == level) {
			end++
		}
		e.largest = e.addLargest(e.largest, rows[first:end])
		v.Levels = append(v.Levels, LeastLevel{})
		l := &v.Levels[len(v.Levels)-1]
		if e.listLevel(l, rows[:end], from, first); l.isImplied(v.Levels[of : len(v.Levels)-1]) {
			v.Levels = v.Levels[:len(v.Levels)-1]
		}
	}
	if read.Has(sdk.UseColumns) {
		v.addUse(of, rows, s.Snap.Dims().Len())
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
func (l *LeastLevel) isImplied(earlier []LeastLevel) bool {
	for i := range earlier {
		if l.covers(&earlier[i]) {
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
	high := int(min(maxListed, coverWith(e.below, e.largest, len(rows)-from)))
	for i, most := range e.largest {
		e.lower[i] = max(e.lower[i], most)
	}
	count := min(maxListed, max(high, int(coverWith(e.deficit, e.lower, len(rows)))))
	l.Count = int32(count)
	l.Priority[0], l.LostWork[0] = rows[first].Priority, e.lost[least]
	e.listOthers(l, 1, high, from, len(rows), least)
	e.listOthers(l, high, count, 0, len(rows), least)
	for i := 1; i < count; i++ {
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

// addUse adds the least use of any row to the levels from a position on. It is at least the
// least one of the rows of each level.
func (v *LeastVictims) addUse(of int, rows []state.Row, dims int) {
	at := len(v.Uses)
	v.Uses = append(v.Uses, rows[0].Group.Ask.Vec[:dims]...)
	least := v.Uses[at:]
	for i := 1; i < len(rows); i++ {
		if rows[i].Group == rows[i-1].Group {
			continue
		}
		for d, use := range rows[i].Group.Ask.Vec[:dims] {
			least[d] = min(least[d], use)
		}
	}
	for range v.Levels[of+1:] {
		v.Uses = append(v.Uses, least...)
	}
}
