package rules

import (
	"sync"

	"cel.dev/cel-go/cel"

	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/plugins/rules/syntax"
)

// celTypes maps the types of the schema to those of CEL.
var celTypes = map[schema.Type]*cel.Type{
	schema.Bool: cel.BoolType, schema.Int: cel.IntType, schema.Double: cel.DoubleType,
	schema.String: cel.StringType, schema.Duration: cel.DurationType, schema.Timestamp: cel.TimestampType,
}

// typeOf returns the type of the schema, or false if expressions cannot have it.
func typeOf(t *cel.Type) (schema.Type, bool) {
	for ours, theirs := range celTypes {
		if theirs.IsExactType(t) {
			return ours, true
		}
	}
	return 0, false
}

// environments caches the environments, which take milliseconds to create.
var environments sync.Map // of schema.Scope to *cel.Env or error

// environment returns the environment of the rules of a scope.
func environment(scope schema.Scope) (*cel.Env, error) {
	if e, ok := environments.Load(scope); ok {
		return e.(*cel.Env), nil
	}
	options := append(Declarations(scope), syntax.Limits()...)
	e, err := cel.NewEnv(append(options, cel.Macros(cel.HasMacro))...)
	if err != nil {
		return nil, err
	}
	environments.Store(scope, e)
	return e, nil
}

// Declarations returns the names and functions of the rules of a scope.
func Declarations(scope schema.Scope) []cel.EnvOption {
	list := []cel.EnvOption{cel.Variable(schema.Now, cel.TimestampType)}
	for _, f := range schema.Fields {
		if f.Scope&scope != 0 {
			list = append(list, cel.Variable(f.Name, celTypes[f.Type]))
		}
	}
	for _, m := range schema.Maps {
		if visible(&m, scope) {
			list = append(list, cel.Variable(m.Name, cel.MapType(cel.StringType, celTypes[m.Type])))
		}
	}
	for _, s := range schema.Spans {
		if schema.Fields[schema.Lookup(s.Of)].Scope&scope != 0 {
			list = append(list, cel.Variable(s.Name, cel.DurationType))
		}
	}
	return append(list, functions()...)
}

// visible reports whether the rules of a scope may use a map.
func visible(m *schema.Map, scope schema.Scope) bool { return m.Scope&scope != 0 }

// functions returns the functions that CEL lacks.
func functions() []cel.EnvOption {
	binary := func(name, id string, a, b, result *cel.Type) cel.EnvOption {
		return cel.Function(name, cel.Overload(id, []*cel.Type{a, b}, result))
	}
	d, i, x := cel.DurationType, cel.IntType, cel.DoubleType
	list := []cel.EnvOption{
		binary("_*_", "multiply_duration_int64", d, i, d), binary("_*_", "multiply_int64_duration", i, d, d),
		binary("_*_", "multiply_duration_double", d, x, d), binary("_*_", "multiply_double_duration", x, d, d),
		binary("_/_", "divide_duration_duration", d, d, x), binary("pow", "pow_double_double", x, x, x),
		cel.Function("-_", cel.Overload("negate_duration", []*cel.Type{d}, d)),
	}
	for _, name := range []string{"min", "max"} {
		for _, t := range []*cel.Type{d, i, x, cel.TimestampType} {
			list = append(list, binary(name, name+"_"+t.String(), t, t, t))
		}
	}
	for _, t := range []*cel.Type{d, i, x} {
		list = append(list, cel.Function("abs", cel.Overload("abs_"+t.String(), []*cel.Type{t}, t)))
	}
	for _, name := range []string{"floor", "ceil", "sqrt", "exp", "log"} {
		list = append(list, cel.Function(name, cel.Overload(name+"_double", []*cel.Type{x}, x)))
	}
	return list
}
