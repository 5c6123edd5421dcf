package kubernetes_test

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

// oracle implements the description of kube-scheduler on one option directly: remove
// all, divide by budgets, reprieve. It returns the victims, the most important first,
// or nil if the option does not fit with all removed. Among rows of one priority and
// start the later one in order is the more important.
func oracle(c *policytest.Case, in *policy.Candidates, i int) []int {
	rows := c.Options[i].Rows
	all := make([]int, len(rows))
	for k := range all {
		all[k] = k
	}
	if !policytest.Fits(in, i, all) {
		return nil
	}
	byImportance := func(a, b int) int {
		return cmp.Or(cmp.Compare(rows[b].Priority, rows[a].Priority), cmp.Compare(rows[b].Age, rows[a].Age), cmp.Compare(b, a))
	}
	slices.SortFunc(all, byImportance)
	left := map[string]int32{}
	for _, b := range c.Budgets {
		left[b.Name] = b.Slack
	}
	var violating, others []int
	for _, k := range all {
		overrun := false
		for _, name := range rows[k].Budgets {
			if left[name]--; left[name] < 0 {
				overrun = true
			}
		}
		if overrun {
			violating = append(violating, k)
		} else {
			others = append(others, k)
		}
	}
	gone := slices.Clone(all)
	victims := []int{}
	for _, k := range slices.Concat(violating, others) {
		without := slices.DeleteFunc(slices.Clone(gone), func(x int) bool { return x == k })
		if policytest.Fits(in, i, without) {
			gone = without
		} else {
			victims = append(victims, k)
		}
	}
	slices.SortFunc(victims, byImportance)
	return victims
}
