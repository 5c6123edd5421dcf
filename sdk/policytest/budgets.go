package policytest

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// violations is how many of some rows of an option overrun a budget when they
// go one after the other.
func (c *Case) violations(o *Option, rows []int) (n int32) {
	left := c.slacks()
	for _, k := range rows {
		if c.charge(left, &o.Rows[k]) {
			n++
		}
	}
	return n
}

func (c *Case) slacks() map[string]int32 {
	left := map[string]int32{}
	for _, b := range c.Budgets {
		left[b.Name] = b.Slack
	}
	return left
}

// charge charges a row to its budgets, and tells whether one is overrun.
func (c *Case) charge(left map[string]int32, r *Row) (overrun bool) {
	for _, name := range r.Budgets {
		left[name]--
		overrun = overrun || left[name] < 0
	}
	return overrun
}

// overruns is whether the rows of an option would overrun a budget between them.
func (c *Case) overruns(o *Option) bool {
	left, overrun := c.slacks(), false
	for k := range o.Rows {
		overrun = c.charge(left, &o.Rows[k]) || overrun
	}
	return overrun
}

// under is how many rows of an option are under a budget.
func (c *Case) under(o *Option, budget string) (n int32) {
	for k := range o.Rows {
		if slices.Contains(o.Rows[k].Budgets, budget) {
			n++
		}
	}
	return n
}

// budgets puts the rows under some of three budgets.
func (c *Case) budgets(r *rand.Rand) {
	for k := range 3 {
		c.Budgets = append(c.Budgets, Budget{Name: "b" + strconv.Itoa(k), Slack: int32(r.IntN(4))})
	}
	for i := range c.Options {
		for k := range c.Options[i].Rows {
			row := &c.Options[i].Rows[k]
			row.Budgets = nil // an option may share its rows with the one before
			for _, b := range c.Budgets {
				if r.IntN(3) == 0 {
					row.Budgets = append(row.Budgets, b.Name)
				}
			}
		}
	}
}

// budgetTable is the table of all budgets.
func (l *layout) budgetTable() (t policy.BudgetTable) {
	for _, b := range l.c.Budgets {
		t.Name = append(t.Name, l.id(b.Name))
		t.Slack = append(t.Slack, b.Slack)
		t.Strict = append(t.Strict, 0)
	}
	return t
}

func (l *layout) appendBudgets(to *policy.BudgetRefs, r *Row) {
	for _, name := range r.Budgets {
		at := slices.IndexFunc(l.c.Budgets, func(b Budget) bool { return b.Name == name })
		to.At = append(to.At, int32(at))
	}
	to.First = append(to.First, int32(len(to.At)))
}

// unknownBudget is a name that some row is under and no line describes.
func (c *Case) unknownBudget() (name string, found bool) {
	for i := range c.Options {
		for k := range c.Options[i].Rows {
			for _, name := range c.Options[i].Rows[k].Budgets {
				if !slices.ContainsFunc(c.Budgets, func(b Budget) bool { return b.Name == name }) {
					return name, true
				}
			}
		}
	}
	return "", false
}
