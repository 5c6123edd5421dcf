package policytest

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// violations returns how many of the given rows of an option exceed a budget when
// they are evicted in this order.
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

// charge charges a row to its budgets and reports whether it exceeds one.
func (c *Case) charge(left map[string]int32, r *Row) (overrun bool) {
	for _, name := range r.Budgets {
		left[name]--
		overrun = overrun || left[name] < 0
	}
	return overrun
}

// overruns reports whether evicting all rows of an option exceeds a budget.
func (c *Case) overruns(o *Option) bool {
	left, overrun := c.slacks(), false
	for k := range o.Rows {
		overrun = c.charge(left, &o.Rows[k]) || overrun
	}
	return overrun
}

// under returns the number of rows of an option that a budget covers.
func (c *Case) under(o *Option, budget string) (n int32) {
	for k := range o.Rows {
		if slices.Contains(o.Rows[k].Budgets, budget) {
			n++
		}
	}
	return n
}

// budgets assigns the rows to some of three budgets.
func (c *Case) budgets(r *rand.Rand) {
	for k := range 3 {
		c.Budgets = append(c.Budgets, Budget{Name: "b" + strconv.Itoa(k), Slack: int32(r.IntN(4))})
	}
	for i := range c.Options {
		for k := range c.Options[i].Rows {
			row := &c.Options[i].Rows[k]
			row.Budgets = nil // an option may share its rows with the previous one
			for _, b := range c.Budgets {
				if r.IntN(3) == 0 {
					row.Budgets = append(row.Budgets, b.Name)
				}
			}
		}
	}
}

// budgetTable returns the table of all budgets.
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

// unknownBudget returns a budget that a row refers to and the case does not define.
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
