package compare

import (
	"fmt"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/preempt"
)

// chosenBecause describes the criterion that decided between nodes, or returns "" if there
// was no other option.
func chosenBecause(r *preempt.Reason) string {
	switch {
	case r.Others == 0:
		return ""
	case r.Node == "":
		return "every option is on this node"
	case r.By == preempt.ByOrder:
		return "equal to " + r.Node + ": the order of nodes decided"
	case r.By == preempt.ByScore:
		return fmt.Sprintf("score %s against %s of %s", Number(r.Chosen), Number(r.Second), r.Node)
	}
	return fmt.Sprintf("tier %d of the policy is %s against %s of %s", r.By-preempt.ByTier+1, Number(r.Chosen), Number(r.Second), r.Node)
}

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
