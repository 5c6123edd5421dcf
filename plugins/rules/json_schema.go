package rules

import (
	"math"

	"github.com/cede-scheduler/cede/core/model/jsonschema"
	"github.com/cede-scheduler/cede/plugins/rules/ir"
)

// Schema returns the JSON Schema of the rules of a manifest. An expression that is a number
// or true needs no quotes.
func Schema() *jsonschema.Schema {
	list := func(most int) *jsonschema.Schema {
		one := jsonschema.Scalar()
		one.MinLength = 1
		many := jsonschema.List(one)
		many.MinItems, many.MaxItems = 1, most
		return jsonschema.AnyOf(one, many)
	}
	s := jsonschema.Object()
	s.Set("eligible", list(1))
	s.Set("order", list(ir.MaxOrderEntries))
	s.Set("option", list(ir.MaxOptionEntries))
	s.Set("delta", jsonschema.Integer(0, math.MaxInt32))
	return s
}
