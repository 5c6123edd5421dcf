package policytest

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Select asks p about in, and fails the test unless every option is answered.
func Select(t testing.TB, p policy.VictimSelector, in *policy.Candidates) *policy.Selection {
	t.Helper()
	var s policy.Selection
	s.Reset()
	if err := p.SelectVictims(in, &s); err != nil {
		t.Fatal(err)
	}
	if s.Len() != in.Len() {
		t.Fatalf("%d answers to %d options", s.Len(), in.Len())
	}
	return &s
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
