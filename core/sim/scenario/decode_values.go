package scenario

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/jsonschema"
)

func decodeString(d *decoder, v reflect.Value, ev event) {
	switch ev.kind {
	case kindString:
	case kindNumber, kindBool:
		d.problem(ev.line, "expected a string, found "+found(ev), fmt.Sprintf("put it in quotes: %q", ev.text))
	default:
		d.wrongType(ev, "a string", "write one value, in quotes if in doubt")
		return
	}
	v.SetString(d.intern(ev.text))
}

// decodeText accepts any scalar and stores its notation.
func decodeText(d *decoder, v reflect.Value, ev event) {
	switch ev.kind {
	case kindString, kindNumber, kindBool:
		v.SetString(d.intern(ev.text))
	default:
		d.wrongType(ev, "a string, a number, true or false", `write one value; "" is the empty string`)
	}
}

// decodeOperand decodes the value of a constraint, a scalar or a list. v is the Constraint.
func decodeOperand(d *decoder, v reflect.Value, ev event) {
	c := v.Addr().Interface().(*Constraint)
	if ev.kind != kindList {
		decodeText(d, reflect.ValueOf(&c.Value).Elem(), ev)
		return
	}
	c.Values = []string{}
	for i := 0; ; i++ {
		ev := d.src.next()
		if ev.kind == kindListEnd {
			return
		}
		mark := d.push(step{index: i}, ev.line)
		var value string
		decodeText(d, reflect.ValueOf(&value).Elem(), ev)
		d.spend(16)
		c.Values = append(c.Values, value)
		d.pop(mark)
	}
}

func decodeBool(d *decoder, v reflect.Value, ev event) {
	if ev.kind != kindBool {
		d.wrongType(ev, "true or false", "write true or false, without quotes")
		return
	}
	v.SetBool(strings.EqualFold(string(ev.text), "true"))
}

func decodePreemptionMode(d *decoder, v reflect.Value, ev event) {
	var mode PreemptionMode
	switch {
	case ev.kind == kindBool:
		mode.On = strings.EqualFold(string(ev.text), "true")
	case ev.kind == kindString && string(ev.text) == observeText:
		mode.Observe = true
	default:
		d.wrongType(ev, "true, false or observe", "write true, false or observe; observe records decisions and evicts nothing")
		return
	}
	v.Set(reflect.ValueOf(mode))
}

func decodeFloat(d *decoder, v reflect.Value, ev event) {
	f, ok := math.NaN(), false
	if ev.kind == kindNumber {
		f, ok = parseFloat(ev.text)
	}
	if !ok {
		d.wrongType(ev, "a number", "write a finite number, without quotes")
		return
	}
	v.SetFloat(f)
}

// parseFloat parses a finite number, including YAML's notations. It returns false if
// text is not one.
func parseFloat(text []byte) (float64, bool) {
	if n, ok := parseInt(text); ok {
		return float64(n), true
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(string(text), "_", ""), 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// exceeds reports whether text is a number of a larger magnitude than most.
func exceeds(text []byte, most float64) bool {
	f, err := strconv.ParseFloat(strings.ReplaceAll(string(text), "_", ""), 64)
	return (err == nil || errors.Is(err, strconv.ErrRange)) && math.Abs(f) >= most
}

// parseInt parses a whole number, including 1e3, 5.0 and YAML's notations 0x1f, 0o17,
// 0b11 and 1_000. It rejects a leading zero, because YAML 1.1 parsers read 010 as 8.
func parseInt(text []byte) (int64, bool) {
	s := string(text)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		digits := strings.TrimLeft(s, "+-")
		return n, digits == "0" || digits[0] != '0'
	}
	s = strings.ReplaceAll(s, "_", "")
	if digits := strings.TrimLeft(s, "+-"); len(digits) > 2 && digits[0] == '0' && strings.ContainsRune("xob", rune(digits[1])) {
		n, err := strconv.ParseInt(s, 0, 64)
		return n, err == nil
	}
	// Above 2^53 a float64 may differ from the written number.
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// intPlan returns the plan of a signed integer with the bounds of its type.
func intPlan(t reflect.Type) *plan {
	least, most := int64(math.MinInt64), int64(math.MaxInt64)
	noun := "an integer"
	remedy := "write digits, without quotes"
	if t.Bits() == 32 {
		least, most = math.MinInt32, math.MaxInt32
		remedy = "write digits, without quotes, from -2147483648 to 2147483647"
	}
	return &plan{noun: noun, schema: jsonschema.Integer(float64(least), float64(most)), decode: func(d *decoder, v reflect.Value, ev event) {
		if ev.kind != kindNumber {
			d.wrongType(ev, noun, remedy)
			return
		}
		n, ok := parseInt(ev.text)
		switch {
		case ok && !v.OverflowInt(n):
			v.SetInt(n)
		case !ok && !exceeds(ev.text, math.MaxInt64):
			d.wrongType(ev, noun, remedy)
		case ev.text[0] == '-':
			d.problem(ev.line, fmt.Sprintf("%.40s is too small: expected %d or more", ev.text, least), "write a larger number")
		default:
			d.problem(ev.line, fmt.Sprintf("%.40s is too large: expected at most %d", ev.text, most), "write a smaller number")
		}
	}}
}

// uintPlan returns the plan of an unsigned integer; uint16 is a port.
func uintPlan(t reflect.Type) *plan {
	noun, remedy := "an integer of 0 or more", "write digits, without quotes"
	least, most := 0.0, float64(math.MaxUint64)
	if t.Kind() == reflect.Uint16 {
		noun, remedy = "a port from 1 to 65535", "write digits, without quotes"
		least, most = 1, math.MaxUint16
	}
	return &plan{noun: noun, schema: jsonschema.Integer(least, most), decode: func(d *decoder, v reflect.Value, ev event) {
		if ev.kind != kindNumber {
			d.wrongType(ev, noun, remedy)
			return
		}
		n, err := strconv.ParseUint(string(ev.text), 10, 64)
		if err != nil {
			if m, ok := parseInt(ev.text); ok && m >= 0 {
				n, err = uint64(m), nil
			}
		}
		if err != nil || v.OverflowUint(n) {
			d.wrongType(ev, noun, remedy)
			return
		}
		v.SetUint(n)
	}}
}

func decodeDuration(d *decoder, v reflect.Value, ev event) {
	const remedy = "write 90s, 1h30m, 250ms, or a number of seconds"
	var t Duration
	var err error
	switch ev.kind {
	case kindString:
		t, err = ParseDuration(string(ev.text))
	case kindNumber:
		t, err = parseSeconds(string(ev.text))
	default:
		d.wrongType(ev, "a duration", remedy)
		return
	}
	switch {
	case err == nil:
		v.SetInt(int64(t))
	case errors.Is(err, errTooLong):
		d.problem(ev.line, fmt.Sprintf("%.40s is too long: expected at most %v (50 years)", ev.text, maxDuration), "check the unit; omit it for an unlimited duration")
	default:
		d.problem(ev.line, "expected a duration, found "+found(ev), remedy)
	}
}

// decodePositive decodes a duration of which 0 and absence have different meanings.
func decodePositive(d *decoder, v reflect.Value, ev event) {
	problems := d.problems.len()
	decodeDuration(d, v, ev)
	if v.Int() == 0 && d.problems.len() == problems {
		d.problem(ev.line, "0s: expected a duration of more than 0", "omit it for an unlimited duration")
	}
}

// decodeQuantities decodes amounts of resources. Fractions of the unit are rounded
// down for capacity and up for requests, so that a request never fits by rounding.
func decodeQuantities(d *decoder, v reflect.Value, ev event) {
	if ev.kind != kindObject {
		d.wrongType(ev, "a mapping from resources to amounts", "write {cpu: 500, memory: 2Gi} or indented lines")
		return
	}
	parse := model.ParseQuantity
	if d.path[len(d.path)-1].key == "capacity" {
		parse = model.ParseCapacity
	}
	q := Quantities{}
	v.Set(reflect.ValueOf(q))
	d.entries(func(resource string, ev event) { q[resource] = d.amount(resource, ev, parse) })
}

// amount decodes one amount: a number in the resource's unit, or a quantity string.
func (d *decoder) amount(resource string, ev event, parse func(resource, text string) (int64, error)) int64 {
	switch ev.kind {
	case kindNumber:
		n, ok := parseInt(ev.text)
		if !ok {
			d.wrongType(ev, "a whole number of "+model.Unit(resource), "write an integer, or a quantity in quotes such as "+example(resource))
		}
		return n // Validate checks the bounds
	case kindString:
		n, err := parse(resource, string(ev.text))
		switch {
		case errors.Is(err, model.ErrInvalidQuantity):
			d.problem(ev.line, err.Error(), fmt.Sprintf("write a whole number of %s, or a quantity such as %s", model.Unit(resource), example(resource)))
		case errors.Is(err, model.ErrNegativeQuantity):
			d.problem(ev.line, err.Error()+": expected an amount of 0 or more", "remove the sign")
		case err != nil:
			d.problem(ev.line, fmt.Sprintf("%v %s", err, model.Unit(resource)), "check the suffix")
		}
		return n
	}
	d.wrongType(ev, "an amount", fmt.Sprintf("write a whole number of %s, or a quantity such as %s", model.Unit(resource), example(resource)))
	return 0
}

// example returns a typical quantity of a resource, for hints.
func example(resource string) string {
	switch resource {
	case "cpu":
		return `"500m"`
	case "memory", "disk":
		return `"2Gi"`
	case "network":
		return `"1G"`
	}
	return `"2"`
}

// decodeConfig decodes the free-form configuration of a policy.
func decodeConfig(d *decoder, v reflect.Value, ev event) {
	if ev.kind != kindObject {
		d.wrongType(ev, "a mapping", "write {key: value} or indented lines")
		return
	}
	v.Set(reflect.ValueOf(d.any(ev)))
}

// any decodes a free-form value of a policy's configuration. It returns an int64 for
// whole numbers and a float64 for others.
func (d *decoder) any(ev event) any {
	switch ev.kind {
	case kindString:
		return d.intern(ev.text)
	case kindBool:
		return strings.EqualFold(string(ev.text), "true")
	case kindNumber:
		if n, ok := parseInt(ev.text); ok {
			return n
		}
		f, ok := parseFloat(ev.text)
		if !ok {
			d.wrongType(ev, "a finite number", "put it in quotes if it is a string")
		}
		return f
	case kindList:
		list := []any{}
		for i := 0; ; i++ {
			ev := d.src.next()
			if ev.kind == kindListEnd {
				return list
			}
			mark := d.push(step{index: i}, ev.line)
			d.spend(50)
			list = append(list, d.any(ev))
			d.pop(mark)
		}
	case kindObject:
		m := map[string]any{}
		d.entries(func(key string, ev event) { m[key] = d.any(ev) })
		return m
	}
	return nil
}
