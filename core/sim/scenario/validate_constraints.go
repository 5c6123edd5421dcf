package scenario

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
)

// checkConstraint checks that a constraint has exactly the fields its operator
// requires. MayCount is true for hard constraints of groups, the only ones that may
// count allocations.
func (c *valueChecker) checkConstraint(p *path, k *Constraint, mayCount bool) {
	operator := model.Operator(k.Operator)
	if invalid := fieldcheck.Operator(k.Operator, mayCount); invalid.Found() {
		c.report(p.field("operator"), invalid)
		return
	}
	if k.Values != nil && operator != model.OpIn && operator != model.OpNotIn {
		c.add(p.field("value"), fmt.Sprintf("%s compares with one value, not with a list", operator), "use in or notin for lists")
		return
	}
	if operator == model.OpDistinctHosts {
		value := k.Value
		if value == "true" { // accepted without effect
			value = ""
		}
		c.report(p, fieldcheck.DistinctHosts(k.Attribute, value))
		return
	}
	if k.Attribute == "" {
		c.add(p.field("attribute"), "attribute is missing", "name an attribute, such as zone, node.id, node.class or node.datacenter")
	}
	c.report(p.field("value"), fieldcheck.Operand(operator, k.Value, k.Values, operandRemedy(operator)))
}

// operandRemedy returns the remedy for a missing value.
func operandRemedy(operator model.Operator) string {
	switch operator {
	case model.OpIn, model.OpNotIn:
		return "write `value: [a, b]`"
	case model.OpEqual, model.OpNotEqual:
		return "add `value: `; use is_set or is_not_set to test for the attribute"
	}
	return "add `value: `"
}

// checkRequest checks a device request of a group.
func (c *valueChecker) checkRequest(p *path, r *DeviceRequest) {
	c.report(p.field("id"), fieldcheck.DeviceID(r.ID))
	if r.Count != nil {
		c.report(p.field("count"), fieldcheck.DeviceCount(int64(*r.Count)))
	}
	for i := range r.Constraints {
		c.checkConstraint(p.field("constraints").item(i), &r.Constraints[i], false)
	}
}
