package state

import "fmt"

// checkBudgets counts everything that is under a budget again.
func (sn *Snapshot) checkBudgets() error {
	if sn.budgetCounts.Len() != len(sn.budgets.list) {
		return fmt.Errorf("%d budgets, %d counts", len(sn.budgets.list), sn.budgetCounts.Len())
	}
	for i, b := range sn.budgets.list {
		var want budgetCount
		for j := range sn.Jobs() {
			for _, g := range sn.jobRow(j.Key()).countedGroups() {
				if b.Matches(g) {
					want.addGroup(g, 1)
				}
			}
		}
		for a := range sn.Allocs() {
			if b.Matches(a.Group) {
				want.add(sn.jobRow(a.Job.Key()), a, sn.available(a), 1)
			}
		}
		got := sn.budgetCounts.At(i)
		want.recent = got.recent // the allocations may be gone
		if got != want {
			return fmt.Errorf("budget %s counts %+v, has %+v", b.Key(), got, want)
		}
	}
	return nil
}
