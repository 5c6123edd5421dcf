package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/cede-scheduler/cede/core/internal/suggest"
	"github.com/cede-scheduler/cede/core/model"
)

// maxPattern bounds regular expressions, whose compiled form is many times larger.
const maxPattern = 1000

// checkConstraint checks that a constraint has exactly the fields its operator
// requires. MayCount is true for hard constraints of groups, the only ones that may
// count allocations.
func (c *checker) checkConstraint(p *path, k *Constraint, mayCount bool) {
	operator := model.Operator(k.Operator)
	if !operator.Valid() || operator.CountsAllocations() && !mayCount {
		c.badOperator(p.field("operator"), k.Operator, mayCount)
		return
	}
	if k.Values != nil && operator != model.OpIn && operator != model.OpNotIn {
		c.add(p.field("value"), fmt.Sprintf("%s compares with one value, not with a list", operator), "use in or notin for lists")
		return
	}
	if operator == model.OpDistinctHosts {
		if k.Attribute != "" || k.Value != "" && k.Value != "true" {
			c.add(p, "distinct_hosts accepts no attribute or value", "remove them; use distinct_property for domains other than hosts")
		}
		return
	}
	if k.Attribute == "" {
		c.add(p.field("attribute"), "attribute is missing", "name an attribute, such as zone, node.id, node.class or node.datacenter")
	}
	c.checkOperand(p.field("value"), k, operator)
}

// badOperator reports an unknown operator and suggests a similar one.
func (c *checker) badOperator(p *path, operator string, mayCount bool) {
	var allowed []string
	for _, o := range model.Operators {
		if mayCount || !o.CountsAllocations() {
			allowed = append(allowed, string(o))
		}
	}
	message := fmt.Sprintf("operator %.100q is not supported here", operator)
	if operator == "" {
		message = "operator is missing"
	}
	remedy := "write one of " + strings.Join(allowed, " ")
	if near := suggest.Nearest(operator, allowed); near != "" && len(operator) > 2 {
		remedy = fmt.Sprintf("did you mean %s?", near)
	}
	c.add(p, message, remedy)
}

// checkOperand checks the value against the operator.
func (c *checker) checkOperand(p *path, k *Constraint, operator model.Operator) {
	switch operator {
	case model.OpIsSet, model.OpIsNotSet:
		if k.Value != "" {
			c.add(p, fmt.Sprintf("%s accepts no value", operator), "remove it")
		}
		return
	case model.OpDistinctProperty:
		if n, err := strconv.Atoi(k.Value); k.Value != "" && (err != nil || n < 1) {
			c.add(p, fmt.Sprintf("%.100q is not a valid number of instances per value: expected a whole number of 1 or more", k.Value), "omit it for 1")
		}
		return
	}
	if k.Value == "" && len(k.Values) == 0 {
		c.add(p, "value is missing", operandRemedy(operator))
		return
	}
	switch operator {
	case model.OpRegexp:
		if len(k.Value) > maxPattern {
			c.add(p, fmt.Sprintf("a regular expression of %d bytes: expected at most %d", len(k.Value), maxPattern), "use a shorter one")
		} else if _, err := regexp.Compile(k.Value); err != nil {
			c.add(p, fmt.Sprintf("%.100q is not a valid regular expression: %v", k.Value, trimError(err)), "correct it; the syntax is RE2's")
		}
	case model.OpVersion:
		if _, err := parseVersions(k.Value); err != nil {
			c.add(p, fmt.Sprintf("%.100q is not a valid version constraint", k.Value), `write it as ">= 1.2, < 2.0"`)
		}
	case model.OpIn, model.OpNotIn:
		if slices.Contains(k.Values, "") {
			c.add(p, "an empty string in the list", "remove it")
		}
	}
}

func operandRemedy(operator model.Operator) string {
	switch operator {
	case model.OpIn, model.OpNotIn:
		return "write `value: [a, b]`"
	case model.OpEqual, model.OpNotEqual:
		return "add `value: `; use is_set or is_not_set to test for the attribute"
	}
	return "add `value: `"
}

// trimError returns the message of a regexp error without its redundant prefix.
func trimError(err error) string {
	return strings.TrimPrefix(err.Error(), "error parsing regexp: ")
}

func parseVersions(text string) (version.Constraints, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("longer than %d bytes", maxPattern)
	}
	return version.NewConstraint(text)
}

// checkRequest checks a device request of a group.
func (c *checker) checkRequest(p *path, r *DeviceRequest) {
	if parts := strings.SplitN(r.ID, "/", 3); slices.Contains(parts, "") {
		c.add(p.field("id"), fmt.Sprintf("%.100q is not a valid device id: expected type, vendor/type or vendor/type/model", r.ID), "write it as gpu, nvidia/gpu or nvidia/gpu/a100")
	}
	if r.Count != nil && *r.Count < 1 {
		c.add(p.field("count"), fmt.Sprintf("%d devices: expected 1 or more", *r.Count), "remove the request, or request 1 or more")
	}
	for i := range r.Constraints {
		c.checkConstraint(p.field("constraints").item(i), &r.Constraints[i], false)
	}
}
