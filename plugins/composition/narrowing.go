package composition

import (
	"cmp"
	"slices"

	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// narrowing restricts a call of SelectVictims to the candidates of the lowest tiers that
// suffice: for each option, those up to the first rank at which the preemptor fits if all of
// them are evicted, and those that must leave in any case. If not even all suffice, it
// retains all but the excluded ones.
type narrowing struct {
	in        sdk.Candidates
	rows      []int32 // original row of each retained row
	selection sdk.Selection
	short     rules.Shortfall
	order     []int32
	picks     []int32
}

// to returns the restricted call. It shares columns of options with in, and is valid until
// the next call.
func (n *narrowing) to(in *sdk.Candidates, ranks []int32) *sdk.Candidates {
	n.short.Load(in)
	n.in, n.rows = *in, n.rows[:0]
	first := append(make([]int32, 0, len(in.FirstRow)), 0)
	for o := range in.Len() {
		last := n.lastRank(in, o, ranks)
		for row := in.FirstRow[o]; row < in.FirstRow[o+1]; row++ {
			if ranks[row] != excluded && (ranks[row] <= last || mustLeave(in, row)) {
				n.rows = append(n.rows, row)
			}
		}
		first = append(first, int32(len(n.rows)))
	}
	if len(n.rows) == in.Rows.Len() {
		return in
	}
	n.in.FirstRow = first
	n.in.Rows = selectRows(&in.Rows, n.rows)
	return &n.in
}

func mustLeave(in *sdk.Candidates, row int32) bool {
	return len(in.Rows.MustLeave) > 0 && in.Rows.MustLeave[row] != 0
}

// lastRank returns the lowest rank such that option o fits without the candidates up to it.
func (n *narrowing) lastRank(in *sdk.Candidates, o int, ranks []int32) int32 {
	n.order = n.order[:0]
	n.short.Reset(o)
	for row := in.FirstRow[o]; row < in.FirstRow[o+1]; row++ {
		switch {
		case ranks[row] == excluded:
		case mustLeave(in, row):
			n.short.Pick(int(row))
		default:
			n.order = append(n.order, row)
		}
	}
	slices.SortStableFunc(n.order, func(a, b int32) int { return cmp.Compare(ranks[a], ranks[b]) })
	last := int32(-1)
	for _, row := range n.order {
		if n.short.Covered() {
			return last
		}
		n.short.Pick(int(row))
		last = ranks[row]
	}
	return last
}

// widen adds the selection about the restricted call to out, as rows of in and by ascending
// rank. It returns an error if the selection does not fit the call.
func (n *narrowing) widen(p *runningPart, in *sdk.Candidates, ranks []int32, out *sdk.Selection) error {
	s := &n.selection
	if s.Len() != in.Len() {
		return badAnswer(p, "answered %d options of %d", s.Len(), in.Len())
	}
	for o := range in.Len() {
		n.picks = n.picks[:0]
		for _, row := range s.Rows(o) {
			if row < 0 || int(row) >= len(n.rows) {
				return badAnswer(p, "option %d contains row %d of %d", o, row, len(n.rows))
			}
			n.picks = append(n.picks, n.rows[row])
		}
		slices.SortStableFunc(n.picks, func(a, b int32) int { return cmp.Compare(ranks[a], ranks[b]) })
		for _, row := range n.picks {
			out.Pick(int(row))
		}
		out.Next()
	}
	return nil
}

// selectRows returns a table with some of the rows of another one.
func selectRows(r *sdk.Rows, rows []int32) sdk.Rows {
	out := sdk.Rows{
		Priority: pick(r.Priority, rows), Use: pickColumns(r.Use, rows), Start: pick(r.Start, rows), LostWork: pick(r.LostWork, rows),
		Namespace: pick(r.Namespace, rows), Job: pick(r.Job, rows), Group: pick(r.Group, rows),
		Evictions: pick(r.Evictions, rows), EvictionLimit: pick(r.EvictionLimit, rows), MustLeave: pick(r.MustLeave, rows),
		Devices: pickColumns(r.Devices, rows), Relocation: pick(r.Relocation, rows),
		DisplacedPriority: pick(r.DisplacedPriority, rows), DisplacedLostWork: pick(r.DisplacedLostWork, rows),
	}
	if l := r.Labels; l != nil {
		first, at := pickLists(l.First, rows)
		out.Labels = &sdk.LabelTable{First: first, Key: pick(l.Key, at), Value: pick(l.Value, at)}
	}
	if a := r.Annotations; a != nil {
		out.Annotations = &sdk.AnnotationTable{Names: a.Names, Values: pickColumns(a.Values, rows)}
	}
	if b := r.Budgets; b != nil {
		first, at := pickLists(b.First, rows)
		out.Budgets = &sdk.BudgetRefs{First: first, At: pick(b.At, at)}
	}
	return out
}

// pick returns the elements of a column at the given positions; nil if the column is empty.
func pick[T any](column []T, at []int32) []T {
	if len(column) == 0 {
		return nil
	}
	out := make([]T, len(at))
	for i, row := range at {
		out[i] = column[row]
	}
	return out
}

func pickColumns(columns [][]float64, at []int32) [][]float64 {
	if columns == nil {
		return nil
	}
	out := make([][]float64, len(columns))
	for i := range columns {
		out[i] = pick(columns[i], at)
	}
	return out
}

// pickLists returns the bounds of the lists of some rows, and the positions of their items.
func pickLists(first, rows []int32) (bounds, at []int32) {
	bounds = append(bounds, 0)
	for _, row := range rows {
		for x := first[row]; x < first[row+1]; x++ {
			at = append(at, x)
		}
		bounds = append(bounds, int32(len(at)))
	}
	return bounds, at
}
