package kubernetes

import (
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// budgets determines which rows of an option overrun a disruption budget. All rows of
// a node are charged to copies of the budgets, the most important first, as if all
// were evicted; a row that is charged to an exhausted budget overruns it. The less
// important rows of a workload are therefore reprieved first.
type budgets struct {
	refs  *policy.BudgetRefs // nil: there are none
	slack []int32
	left  []int32 // by budget: the rest for the current option; otherwise equal to slack

	kept, overrun []int32 // scratch of divide
}

// load sets the options.
func (b *budgets) load(in *policy.Candidates) {
	b.refs = nil
	if in.Shared == nil || in.Rows.Budgets == nil || len(in.Rows.Budgets.At) == 0 {
		return
	}
	b.refs, b.slack = in.Rows.Budgets, in.Shared.Budgets.Slack
	b.left = append(b.left[:0], b.slack...)
}

// of returns the budgets that a row is charged to.
func (b *budgets) of(row int32) []int32 { return b.refs.At[b.refs.First[row]:b.refs.First[row+1]] }

// charge charges a row and reports whether that overruns a budget.
func (b *budgets) charge(row int32) (overrun bool) {
	for _, at := range b.of(row) {
		b.left[at]--
		overrun = overrun || b.left[at] < 0
	}
	return overrun
}

// restore undoes the charges of a range of an option's rows.
func (b *budgets) restore(from, to int) {
	for _, at := range b.refs.At[b.refs.First[from]:b.refs.First[to]] {
		b.left[at] = b.slack[at]
	}
}

// runOut reports whether the rows of an option together overrun a budget.
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

// divide divides all rows of an option, which are sorted with the least important
// first, into those that overrun no budget and those that do. Both retain the order.
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
