package policytest

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Select returns the picks of p for in. It fails the test unless every option is answered.
func Select(t testing.TB, p policy.VictimSelector, in *policy.Candidates) *policy.Selection {
	t.Helper()
	var s policy.Selection
	s.Reset()
	if err := p.SelectVictims(in, &s); err != nil {
		t.Fatal(err)
	}
	if s.Len() != in.Len() {
		t.Fatalf("%d answers for %d options", s.Len(), in.Len())
	}
	return &s
}

// Gaps returns the gap that p requires for each row, and the time at which p requests
// a new evaluation.
func Gaps(t testing.TB, p policy.DeltaHook, in *policy.Candidates) (gaps []int32, recheckAt int64) {
	t.Helper()
	gaps = make([]int32, in.Rows.Len())
	for row := range gaps {
		gaps[row] = in.Preemptor.Delta
	}
	var recheck policy.Recheck
	if err := p.PriorityDelta(in, gaps, &recheck); err != nil {
		t.Fatal(err)
	}
	return gaps, recheck.Time()
}

// Eligible returns the rows of option i that may be evicted with the given gaps, as
// indexes into its rows.
func Eligible(in *policy.Candidates, gaps []int32, i int) []int {
	rows := []int{}
	for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
		gap := int64(in.Preemptor.Priority) - int64(in.Rows.Priority[row])
		if gap > 0 && gap >= int64(gaps[row]) && gaps[row] != policy.NeverEligible {
			rows = append(rows, int(row-in.FirstRow[i]))
		}
	}
	return rows
}

// Picks returns the picks of option i as indexes into its rows.
func Picks(in *policy.Candidates, s *policy.Selection, i int) []int {
	picks := []int{}
	for _, row := range s.Rows(i) {
		picks = append(picks, int(row-in.FirstRow[i]))
	}
	return picks
}

// Names returns the names of some rows of option i.
func (c *Case) Names(i int, rows []int) []string {
	list := []string{}
	for _, k := range rows {
		list = append(list, c.Options[i].Rows[k].Name)
	}
	return list
}
