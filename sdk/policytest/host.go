package policytest

import (
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// EvictUntilFit turns the answer of SelectVictims into victims, as the host does: it
// evicts rows in the given order until the option fits, and then reprieves redundant
// rows in reverse order of picking. If keepRedundant is set, it returns the lists
// unchanged. For each option, it returns indexes into the option's rows in the order
// of picking, or nil if the option does not fit.
//
// It is written for clarity, not speed: it is the reference implementation for tests.
func EvictUntilFit(in *policy.Candidates, s *policy.Selection, keepRedundant bool) [][]int {
	victims := make([][]int, in.Len())
	for i := range victims {
		picks := make([]int, 0, len(s.Rows(i)))
		for _, row := range s.Rows(i) {
			if !keepRedundant && Fits(in, i, picks) {
				break
			}
			picks = append(picks, int(row-in.FirstRow[i]))
		}
		if !Fits(in, i, picks) {
			continue
		}
		for k := len(picks) - 1; k >= 0 && !keepRedundant; k-- {
			without := append(append([]int{}, picks[:k]...), picks[k+1:]...)
			if Fits(in, i, without) {
				picks = without
			}
		}
		victims[i] = picks
	}
	return victims
}

// Fits reports whether the preemptor fits on option i after the given rows are
// evicted, according to the columns.
func Fits(in *policy.Candidates, i int, gone []int) bool {
	first := int(in.FirstRow[i])
	for d := range in.Need {
		need := in.Need[d][i]
		for _, v := range gone {
			need -= in.Rows.Use[d][first+v]
		}
		if need > 0 {
			return false
		}
	}
	for r := range in.DeviceNeed {
		need := in.DeviceNeed[r][i]
		for _, v := range gone {
			need -= in.Rows.Devices[r][first+v]
		}
		if need > 0 {
			return false
		}
	}
	must := int32(0)
	for _, v := range gone {
		if in.Rows.MustLeave[first+v] != 0 {
			must++
		}
	}
	return must == in.MustLeave[i]
}

// Truncate drops the rows that a host does not show to a policy with Info.Ascending:
// for each option, the rows above the lowest priority p such that the preemptor fits
// if all rows up to p are evicted. Rows that exceed a budget with no slack come after
// all others. If a row exceeds a budget that has slack, nothing is dropped.
func (c *Case) Truncate() {
	in := c.Candidates()
	for i := range c.Options {
		if c.overruns(&c.Options[i]) {
			c.truncateAround(in, i)
			continue
		}
		rows := c.Options[i].Rows
		gone := []int{}
		for k, row := range rows {
			if k > 0 && row.Priority != rows[k-1].Priority && Fits(in, i, gone) {
				c.Options[i].Rows = rows[:k]
				break
			}
			gone = append(gone, k)
		}
	}
}

func (c *Case) truncateAround(in *policy.Candidates, i int) {
	o := &c.Options[i]
	left := c.slacks()
	tight := make([]bool, len(o.Rows))
	for k := range o.Rows {
		for _, name := range o.Rows[k].Budgets {
			if left[name] > 0 && c.under(o, name) > left[name] {
				return
			}
			tight[k] = tight[k] || left[name] <= 0
		}
	}
	var gone []int
	for _, overrun := range []bool{false, true} {
		reached := false
		for k := range o.Rows {
			if tight[k] != overrun {
				continue
			}
			if same := reached && o.Rows[k].Priority == o.Rows[gone[len(gone)-1]].Priority; !same && Fits(in, i, gone) {
				break
			}
			gone, reached = append(gone, k), true
		}
	}
	slices.Sort(gone)
	var rows []Row
	for _, k := range gone {
		rows = append(rows, o.Rows[k])
	}
	o.Rows = rows
}
