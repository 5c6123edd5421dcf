package dra

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// errNoValue means that a device lacks an attribute that a selector reads. Kubernetes
// does not select the device then.
var errNoValue = errors.New("missing attribute or capacity")

// A domains is the value of device.attributes or device.capacity: values by domain, then
// by name.
type domains map[string]map[string]any

// An amount is the value of a capacity or of quantity().
type amount int64

// A version is the value of an attribute with a semantic version.
type version string

// fields returns the fields of a device. Names without a domain belong to the driver.
func (d *Device) fields(driver string) map[string]any {
	attributes, capacity := domains{}, domains{}
	put := func(to domains, name string, value any) {
		domain, short, ok := strings.Cut(name, "/")
		if !ok {
			domain, short = driver, name
		}
		if to[domain] == nil {
			to[domain] = map[string]any{}
		}
		to[domain][short] = value
	}
	for name, a := range d.Attributes {
		switch {
		case a.Int != nil:
			put(attributes, name, *a.Int)
		case a.Bool != nil:
			put(attributes, name, *a.Bool)
		case a.String != nil:
			put(attributes, name, *a.String)
		case a.Version != nil:
			put(attributes, name, version(*a.Version))
		}
	}
	for name, c := range d.Capacity {
		if n, ok := c.Value.amount(); ok {
			put(capacity, name, amount(n))
		}
	}
	return map[string]any{"driver": driver, "attributes": attributes, "capacity": capacity, "allowMultipleAllocations": d.AllowMultiple}
}

// check returns an error if the expression uses a function or a name that evaluate does
// not have, so that such a selector is never treated as one that selects nothing.
func (e *expression) check() error {
	switch e.op {
	case "name":
		if e.text != "device" {
			return fmt.Errorf("%w: name %.20q", errExpression, e.text)
		}
	case "call":
		if arity, ok := functions[e.text]; !ok || len(e.args) != arity {
			return fmt.Errorf("%w: function %.20q", errExpression, e.text)
		}
	}
	for _, a := range e.args {
		if err := a.check(); err != nil {
			return err
		}
	}
	return nil
}

// functions lists the functions by name, with their number of arguments including the
// receiver of a method.
var functions = map[string]int{
	"has": 1, "quantity": 1, "compareTo": 2, "isGreaterThan": 2, "isLessThan": 2,
	"startsWith": 2, "endsWith": 2, "contains": 2, "matches": 2, "lowerAscii": 1, "size": 1,
}

// selects reports whether the expression is true for a device.
func (e *expression) selects(device map[string]any) bool {
	value, err := e.evaluate(device)
	selected, ok := value.(bool)
	return err == nil && ok && selected
}

// evaluate returns the value of the expression for a device. As in the language, an
// operand of || and && that fails is ignored if the other one decides.
func (e *expression) evaluate(device map[string]any) (any, error) {
	switch e.op {
	case "value":
		return e.lit, nil
	case "name":
		return device, nil
	case "||", "&&":
		return e.decide(device)
	case "call":
		return e.call(device)
	}
	values := make([]any, len(e.args))
	for i, a := range e.args {
		v, err := a.evaluate(device)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	switch e.op {
	case "list":
		return values, nil
	case ".":
		return member(values[0], e.text)
	case "[]":
		if name, ok := values[1].(string); ok {
			return member(values[0], name)
		}
	case "!":
		if b, ok := values[0].(bool); ok {
			return !b, nil
		}
	case "==", "!=":
		if !isScalar(values[0]) || !isScalar(values[1]) {
			return nil, errExpression
		}
		return (values[0] == values[1]) == (e.op == "=="), nil
	case "in":
		return isIn(values[0], values[1])
	case "<", "<=", ">", ">=":
		return compare(e.op, values[0], values[1])
	}
	return nil, errExpression
}

// decide evaluates || and &&.
func (e *expression) decide(device map[string]any) (any, error) {
	var failed error
	for _, a := range e.args {
		v, err := a.evaluate(device)
		b, ok := v.(bool)
		switch {
		case err != nil:
			failed = err
		case !ok:
			failed = errExpression
		case b == (e.op == "||"):
			return b, nil
		}
	}
	return e.op == "&&", failed
}

// isScalar reports whether a value can be compared.
func isScalar(value any) bool {
	switch value.(type) {
	case []any, map[string]any, domains:
		return false
	}
	return true
}

func member(of any, name string) (any, error) {
	var value any
	ok := false
	switch of := of.(type) {
	case map[string]any:
		value, ok = of[name]
	case domains:
		value = of[name] // a domain without values is empty
		if of[name] == nil {
			value = map[string]any{}
		}
		return value, nil
	}
	if !ok {
		return nil, errNoValue
	}
	return value, nil
}

func isIn(value, among any) (any, error) {
	switch among := among.(type) {
	case []any:
		return isScalar(value) && slices.ContainsFunc(among, func(v any) bool { return isScalar(v) && v == value }), nil
	case map[string]any:
		name, _ := value.(string)
		return slices.Contains(slices.Collect(maps.Keys(among)), name), nil
	case domains:
		name, _ := value.(string)
		return len(among[name]) > 0, nil
	}
	return nil, errExpression
}

func compare(op string, a, b any) (any, error) {
	var sign int
	switch a := a.(type) {
	case int64:
		b, ok := b.(int64)
		if !ok {
			return nil, errExpression
		}
		sign = cmpOrdered(a, b)
	case string:
		b, ok := b.(string)
		if !ok {
			return nil, errExpression
		}
		sign = strings.Compare(a, b)
	default:
		return nil, errExpression
	}
	switch op {
	case "<":
		return sign < 0, nil
	case "<=":
		return sign <= 0, nil
	case ">":
		return sign > 0, nil
	}
	return sign >= 0, nil
}

func cmpOrdered[T int64 | amount](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// call evaluates a function or a method.
func (e *expression) call(device map[string]any) (any, error) {
	values := make([]any, len(e.args))
	for i, a := range e.args {
		v, err := a.evaluate(device)
		if e.text == "has" {
			return err == nil, nil
		}
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	switch first := values[0].(type) {
	case amount:
		if second, ok := values[len(values)-1].(amount); ok && len(values) == 2 {
			return compareAmounts(e.text, first, second)
		}
	case string:
		if len(values) == 1 {
			return stringFunction(e.text, first)
		}
		if second, ok := values[1].(string); ok {
			return stringMethod(e.text, first, second)
		}
	}
	return nil, errExpression
}

func compareAmounts(name string, a, b amount) (any, error) {
	sign := cmpOrdered(a, b)
	switch name {
	case "compareTo":
		return int64(sign), nil
	case "isGreaterThan":
		return sign > 0, nil
	case "isLessThan":
		return sign < 0, nil
	}
	return nil, errExpression
}

func stringFunction(name, text string) (any, error) {
	switch name {
	case "quantity":
		if n, ok := Quantity(text).amount(); ok {
			return amount(n), nil
		}
	case "lowerAscii":
		return strings.ToLower(text), nil
	case "size":
		return int64(len([]rune(text))), nil
	}
	return nil, errExpression
}

func stringMethod(name, text, other string) (any, error) {
	switch name {
	case "startsWith":
		return strings.HasPrefix(text, other), nil
	case "endsWith":
		return strings.HasSuffix(text, other), nil
	case "contains":
		return strings.Contains(text, other), nil
	case "matches":
		pattern, err := regexp.Compile(other) // RE2, as in the language
		if err != nil {
			return nil, err
		}
		return pattern.MatchString(text), nil
	}
	return nil, errExpression
}
