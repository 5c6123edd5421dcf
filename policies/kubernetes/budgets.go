package kubernetes

import (
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// budgets says which rows of an option overrun a disruption budget. The rows of
// a node are charged to private copies of the budgets, the most important first,
// as if all of them went; what is charged to one that has nothing left overruns
// it. So it is the less important ones of a workload that are spared first.
type budgets struct {
	refs  *policy.BudgetRefs // nil: there are none
	slack []int32
	left  []int32 // by budget: what the option at hand has left; else slack

	kept, overrun []int32 // scratch of divide
}

// load sets the options that are asked about.
func (b *budgets) load(in *policy.Candidates) {
	b.refs = nil
	if in.Shared == nil || in.Rows.Budgets == nil || len(in.Rows.Budgets.At) == 0 {
		return
	}
	b.refs, b.slack = in.Rows.Budgets, in.Shared.Budgets.Slack
	b.left = append(b.left[:0], b.slack...)
}

// of is the budgets that a row is charged to.
func (b *budgets) of(row int32) []int32 { return b.refs.At[b.refs.First[row]:b.refs.First[row+1]] }

// charge charges a row and tells whether that overruns a budget.
func (b *budgets) charge(row int32) (overrun bool) {
	for _, at := range b.of(row) {
		b.left[at]--
		overrun = overrun || b.left[at] < 0
	}
	return overrun
}

// restore gives back what the rows of an option, from a row to another, were charged.
func (b *budgets) restore(from, to int) {
	for _, at := range b.refs.At[b.refs.First[from]:b.refs.First[to]] {
		b.left[at] = b.slack[at]
	}
}

// runOut is whether the rows of an option overrun a budget between them.
func (b *budgets) runOut(from, to int) bool {
	if b.refs == nil || b.refs.First[from] == b.refs.First[to] {
		return false
	}
	overrun := false
	for row := from; row < to; row++ {
		overrun = b.charge(int32(row)) || overrun
	}
	b.restore(from, to)
	return overrun
}

// divide divides all rows of an option, which come with the least important
// first, into those that overrun no budget and those that do. Both keep the order.
func (b *budgets) divide(rows []int32) (kept, overrun []int32) {
	b.kept, b.overrun = b.kept[:0], b.overrun[:0]
	for _, row := range slices.Backward(rows) {
		if b.charge(row) {
			b.overrun = append(b.overrun, row)
		} else {
			b.kept = append(b.kept, row)
		}
	}
	slices.Reverse(b.kept)
	slices.Reverse(b.overrun)
	for _, row := range rows {
		for _, at := range b.of(row) {
			b.left[at] = b.slack[at]
		}
	}
	return b.kept, b.overrun
}
