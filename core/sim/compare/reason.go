package compare

import (
	"fmt"
	"strings"
	"time"
)

// cost returns the cost of the victims, or nil if there are none.
func (c *Choice) cost() *Cost {
	if len(c.Victims) == 0 {
		return nil
	}
	return &c.Cost
}

// costDifference lists the properties in which the victims of two choices differ.
func (c *Choice) costDifference(base *Choice) string {
	if len(c.Victims) == 0 || len(base.Victims) == 0 {
		return ""
	}
	var parts []string
	add := func(differs bool, format string, of func(*Cost) any) {
		if differs {
			parts = append(parts, fmt.Sprintf("%s "+format+", %s "+format, base.Policy, of(&base.Cost), c.Policy, of(&c.Cost)))
		}
	}
	x, y := &base.Cost, &c.Cost
	add(x.BudgetViolations != y.BudgetViolations, "violates %v budgets", func(c *Cost) any { return c.BudgetViolations })
	add(x.HighestPriority != y.HighestPriority, "evicts priority %v", func(c *Cost) any { return c.HighestPriority })
	add(x.LostWork != y.LostWork, "loses %v of work", func(c *Cost) any { return time.Duration(c.LostWork) * time.Second })
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}
