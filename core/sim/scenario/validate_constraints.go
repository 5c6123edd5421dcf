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

// maxPattern bounds regular expressions: compiled ones take many times their
// length.
const maxPattern = 1000

// checkConstraint checks that a constraint has what its operator needs and no
// more. Only hard constraints of groups may count allocations.
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
			c.add(p, "distinct_hosts takes no attribute and no value", "remove them; for other domains than hosts use distinct_property")
		}
		return
	}
	if k.Attribute == "" {
		c.add(p.field("attribute"), "attribute is missing", "name an attribute, such as zone, node.id, node.class or node.datacenter")
	}
	c.checkOperand(p.field("value"), k, operator)
}

func (c *checker) badOperator(p *path, operator string, mayCount bool) {
	var allowed []string
	for _, o := range model.Operators {
		if mayCount || !o.CountsAllocations() {
			allowed = append(allowed, string(o))
		}
	}
	message := fmt.Sprintf("%.100q is not an operator here", operator)
	if operator == "" {
		message = "operator is missing"
	}
	remedy := "write one of " + strings.Join(allowed, " ")
	if near := suggest.Nearest(operator, allowed); near != "" && len(operator) > 2 {
		remedy = fmt.Sprintf("did you mean %s?", near)
	}
	c.add(p, message, remedy)
}

func (c *checker) checkOperand(p *path, k *Constraint, operator model.Operator) {
	switch operator {
	case model.OpIsSet, model.OpIsNotSet:
		if k.Value != "" {
			c.add(p, fmt.Sprintf("%s takes no value", operator), "remove it")
		}
		return
	case model.OpDistinctProperty:
		if n, err := strconv.Atoi(k.Value); k.Value != "" && (err != nil || n < 1) {
			c.add(p, fmt.Sprintf("%.100q is not how many instances may share a value: expected a whole number of 1 or more", k.Value), "leave it out for 1")
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
			c.add(p, fmt.Sprintf("%.100q is not a regular expression: %v", k.Value, trimError(err)), "correct it; the syntax is RE2's")
		}
	case model.OpVersion:
		if _, err := parseVersions(k.Value); err != nil {
			c.add(p, fmt.Sprintf("%.100q is not a range of versions", k.Value), `write it as ">= 1.2, < 2.0"`)
		}
	case model.OpIn, model.OpNotIn:
		if slices.Contains(k.Values, "") {
			c.add(p, "an empty text in the list", "remove it")
		}
	}
}

func operandRemedy(operator model.Operator) string {
	switch operator {
	case model.OpIn, model.OpNotIn:
		return "write `value: [a, b]`"
	case model.OpEqual, model.OpNotEqual:
		return "add `value: `; to ask whether the attribute is there use is_set or is_not_set"
	}
	return "add `value: `"
}

// trimError takes off what the message around it says already.
func trimError(err error) string {
	return strings.TrimPrefix(err.Error(), "error parsing regexp: ")
}

func parseVersions(text string) (version.Constraints, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("longer than %d bytes", maxPattern)
	}
	return version.NewConstraint(text)
}

// checkRequest checks a device request.
func (c *checker) checkRequest(p *path, r *DeviceRequest) {
	if parts := strings.SplitN(r.ID, "/", 3); slices.Contains(parts, "") {
		c.add(p.field("id"), fmt.Sprintf("%.100q names no devices: expected type, vendor/type or vendor/type/model", r.ID), "write it as gpu, nvidia/gpu or nvidia/gpu/a100")
	}
	if r.Count != nil && *r.Count < 1 {
		c.add(p.field("count"), fmt.Sprintf("%d devices: expected 1 or more", *r.Count), "remove the request, or ask for 1 or more")
	}
	for i := range r.Constraints {
		c.checkConstraint(p.field("constraints").item(i), &r.Constraints[i], false)
	}
}
