package rulestest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/plugins/rules/schema"
)

// A Generator writes random expressions that pass the checks of types.
type Generator struct {
	Rand  *rand.Rand
	Scope schema.Scope
	// Standard omits the functions that CEL itself lacks.
	Standard bool
}

// Expression returns an expression of a type that is nested at most depth deep.
func (g *Generator) Expression(t schema.Type, depth int) string {
	if depth <= 0 || g.Rand.IntN(8) == 0 {
		return g.leaf(t)
	}
	sub := func(t schema.Type) string { return g.Expression(t, depth-1) }
	if g.Rand.IntN(6) == 0 {
		return fmt.Sprintf("(%s ? %s : %s)", sub(schema.Bool), sub(t), sub(t))
	}
	switch t {
	case schema.Bool:
		return g.condition(sub)
	case schema.String:
		return g.leaf(t)
	case schema.Timestamp:
		return fmt.Sprintf("(%s %s %s)", sub(t), g.of("+", "-"), sub(schema.Duration))
	}
	return g.number(t, sub)
}

func (g *Generator) of(list ...string) string { return list[g.Rand.IntN(len(list))] }

func (g *Generator) condition(sub func(schema.Type) string) string {
	switch g.Rand.IntN(7) {
	case 0, 1:
		return fmt.Sprintf("(%s %s %s)", sub(schema.Bool), g.of("&&", "||"), sub(schema.Bool))
	case 2:
		return "!" + sub(schema.Bool)
	case 3:
		return fmt.Sprintf("(%s %s %s)", sub(schema.String), g.of("==", "!="), sub(schema.String))
	case 4:
		if g.Rand.IntN(2) == 0 {
			return fmt.Sprintf("(%s in [1, -7, 20, %d])", sub(schema.Int), g.Rand.Int64())
		}
		return fmt.Sprintf("%s.%s(%s)", g.leaf(schema.String), g.of("startsWith", "endsWith", "contains"), sub(schema.String))
	case 5:
		if len(g.maps(true, 0)) > 0 {
			name, key := g.of(g.maps(true, 0)...), g.of("tier", "cost", "team", "absent")
			return g.of(fmt.Sprintf("has(%s.%s)", name, key), fmt.Sprintf("('%s' in %s)", key, name))
		}
	}
	t := []schema.Type{schema.Int, schema.Double, schema.Duration, schema.Timestamp}[g.Rand.IntN(4)]
	return fmt.Sprintf("(%s %s %s)", sub(t), g.of("<", "<=", ">", ">=", "==", "!="), sub(t))
}

func (g *Generator) number(t schema.Type, sub func(schema.Type) string) string {
	if !g.Standard && g.Rand.IntN(3) == 0 {
		switch g.Rand.IntN(3) {
		case 0:
			return fmt.Sprintf("%s(%s, %s)", g.of("min", "max"), sub(t), sub(t))
		case 1:
			return fmt.Sprintf("abs(%s)", sub(t))
		}
		switch t {
		case schema.Duration:
			return fmt.Sprintf("(%s * %s)", sub(t), sub([]schema.Type{schema.Int, schema.Double}[g.Rand.IntN(2)]))
		case schema.Double:
			return g.of(fmt.Sprintf("(%s / %s)", sub(schema.Duration), sub(schema.Duration)),
				fmt.Sprintf("%s(%s)", g.of("sqrt", "exp", "log", "floor", "ceil"), sub(t)), fmt.Sprintf("pow(%s, %s)", sub(t), sub(t)))
		}
	}
	switch t {
	case schema.Int:
		switch g.Rand.IntN(5) {
		case 0:
			return fmt.Sprintf("int(%s)", sub(schema.Double))
		case 1:
			return "-" + g.leaf(schema.Int)
		case 2:
			return fmt.Sprintf("%s.%s()", g.leaf(schema.Duration), g.of("getHours", "getMinutes", "getSeconds"))
		}
		return fmt.Sprintf("(%s %s %s)", sub(t), g.of("+", "-", "*", "/", "%"), sub(t))
	case schema.Double:
		if g.Rand.IntN(4) == 0 {
			return fmt.Sprintf("double(%s)", sub(schema.Int))
		}
		return fmt.Sprintf("(%s %s %s)", sub(t), g.of("+", "-", "*", "/"), sub(t))
	}
	if g.Rand.IntN(3) == 0 {
		return fmt.Sprintf("(%s - %s)", sub(schema.Timestamp), sub(schema.Timestamp))
	}
	return fmt.Sprintf("(%s %s %s)", sub(t), g.of("+", "-"), sub(t))
}

// leaf returns a constant or a name.
func (g *Generator) leaf(t schema.Type) string {
	var names []string
	for _, f := range schema.Fields {
		if f.Type == t && f.Scope&g.Scope != 0 {
			names = append(names, f.Name)
		}
	}
	for _, s := range schema.Spans {
		if t == schema.Duration && schema.Fields[schema.Lookup(s.Of)].Scope&g.Scope != 0 {
			names = append(names, s.Name)
		}
	}
	if t == schema.Timestamp {
		names = append(names, schema.Now)
	}
	for _, m := range append(g.maps(false, t), g.maps(true, t)...) {
		names = append(names, fmt.Sprintf("%s['%s']", m, g.of("cpu", "memory", "disk", "tier", "cost", "absent")))
	}
	if len(names) > 0 && g.Rand.IntN(3) > 0 {
		return g.of(names...)
	}
	return g.constant(t)
}

// maps returns the maps of a type; 0: of any type.
func (g *Generator) maps(optional bool, t schema.Type) []string {
	var names []string
	for _, m := range schema.Maps {
		if m.Optional == optional && m.Scope&g.Scope != 0 && (t == 0 || m.Type == t) {
			names = append(names, m.Name)
		}
	}
	return names
}

func (g *Generator) constant(t schema.Type) string {
	switch t {
	case schema.Bool:
		return g.of("true", "false")
	case schema.Int:
		return g.of("0", "1", "-1", "10", "9223372036854775807", "-9223372036854775807", "2147483648", strconv.Itoa(g.Rand.IntN(100)))
	case schema.Double:
		text := g.of("0.0", "-0.0", "1.0", "0.5", "1e308", "-1e308", "5e-324", "9.3e18", strconv.FormatFloat(g.Rand.NormFloat64(), 'e', -1, 64))
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text
	case schema.Duration:
		return g.of("duration('0s')", "duration('10m')", "duration('-1h')", "duration('2562047h')", "duration('3ns')")
	case schema.Timestamp:
		return g.of("timestamp('1970-01-01T00:00:00Z')", "timestamp('2262-01-01T00:00:00Z')", "timestamp('1700-01-01T00:00:00Z')")
	}
	return g.of("''", "'a'", "'b'", "'gold'", "'service'", "'web'", "'größe'")
}
