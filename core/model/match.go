package model

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-version"
)

// matcher is the compiled form of a constraint.
type matcher struct {
	pattern  *regexp.Regexp
	versions version.Constraints
}

// compile prepares patterns and version ranges. One that does not parse never
// holds; validation has reported it already.
func (c *Constraint) compile() {
	switch c.Operator {
	case OpRegexp:
		c.pattern, _ = regexp.Compile(c.Value)
	case OpVersion:
		c.versions, _ = version.NewConstraint(c.Value)
	}
}

// Holds reports whether the constraint holds for an attribute with this value or,
// if set is false, for a node without the attribute. A missing attribute satisfies
// only !=, notin and is_not_set. Order is numeric if both sides are numbers, else
// bytewise. Operators that count allocations always hold here: they read no
// attribute.
func (c *Constraint) Holds(value string, set bool) bool {
	switch c.Operator {
	case OpIsSet:
		return set
	case OpIsNotSet:
		return !set
	case OpNotEqual:
		return !set || value != c.Value
	case OpNotIn:
		return !set || !slices.Contains(c.list(), value)
	case OpDistinctHosts, OpDistinctProperty:
		return true
	}
	return set && c.holdsSet(value)
}

func (c *Constraint) holdsSet(value string) bool {
	switch c.Operator {
	case OpEqual:
		return value == c.Value
	case OpLess:
		return compareValues(value, c.Value) < 0
	case OpLessEqual:
		return compareValues(value, c.Value) <= 0
	case OpGreater:
		return compareValues(value, c.Value) > 0
	case OpGreaterEqual:
		return compareValues(value, c.Value) >= 0
	case OpIn:
		return slices.Contains(c.list(), value)
	case OpRegexp:
		return c.pattern != nil && c.pattern.MatchString(value)
	case OpVersion:
		v, err := version.NewVersion(value)
		return err == nil && c.versions != nil && c.versions.Check(v)
	}
	return false
}

// list is the values of in and notin; a single Value may hold several,
// separated by commas.
func (c *Constraint) list() []string {
	if len(c.Values) > 0 || c.Value == "" {
		return c.Values
	}
	list := strings.Split(c.Value, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

func compareValues(a, b string) int {
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	if errA == nil && errB == nil {
		return cmp.Compare(x, y)
	}
	return strings.Compare(a, b)
}

// String is the constraint as a person would write it.
func (c *Constraint) String() string {
	switch c.Operator {
	case OpIsSet, OpIsNotSet:
		return c.Attribute + " " + string(c.Operator)
	case OpDistinctHosts:
		return string(c.Operator)
	case OpDistinctProperty:
		return string(c.Operator) + " " + c.Attribute
	}
	value := c.Value
	if len(c.Values) > 0 {
		value = "[" + strings.Join(c.Values, ", ") + "]"
	}
	return c.Attribute + " " + string(c.Operator) + " " + value
}

// compileAll prepares every constraint of a list.
func compileAll(cs []Constraint) {
	for i := range cs {
		cs[i].compile()
	}
}
