package jobspec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model/jsonschema"
	"github.com/cede-scheduler/cede/core/suggest"
)

// An object is a mapping that is being read. Each read declares a field as known;
// done rejects all fields that were not read.
type object struct {
	*parser
	desc         string // such as "a job" or "a group", for messages
	path         string // path in the API; "" for the job
	value        *value
	known        map[string]bool
	notSupported map[string]string // remedies by field, for fields that Nomad has and cede does not support
	// fromAPI is set for generated JSON, in which misspelt fields are unlikely.
	fromAPI bool
	// schema collects the fields that are read, for Schema; nil: a file is read.
	schema *jsonschema.Schema
}

// declare adds a field to the schema, if there is one. A field that is null counts as absent.
func declare(o *object, name string, s *jsonschema.Schema) {
	if o.schema != nil {
		s.Nullable = true // in place: child and each complete it afterwards
		o.schema.Set(name, s)
	}
}

// describe adds to the schema of an object, if there is one, the rules that are checked after
// the object was read. They are those that one field decides.
func describe(o *object, rules func(s *jsonschema.Schema)) {
	if o.schema != nil {
		rules(o.schema)
	}
}

// setOptions lists the values of a text, which may also be empty.
func setOptions(s *jsonschema.Schema, name string, values []string) {
	field := *s.Properties[name]
	if field.Enum = slices.Clip(values); !slices.Contains(values, "") {
		field.Enum = append(field.Enum, "")
	}
	s.Set(name, &field)
}

// declareObject returns an empty object that collects the fields that are read.
func (r *parser) declareObject(what string) *object {
	inner := r.object(what, "", &value{kind: kindObject})
	inner.schema = jsonschema.Object()
	return inner
}

func (r *parser) object(what, path string, v *value) *object {
	return &object{parser: r, desc: what, path: path, value: v, known: map[string]bool{}}
}

// subpath returns the path of a field of the object.
func (o *object) subpath(path string) string {
	switch {
	case o.path == "":
		return path
	case path == "" || path[0] == '[':
		return o.path + path
	}
	return o.path + "." + path
}

// fields returns the fields with the given name and declares the name as known.
func (o *object) fields(name string) []*field {
	o.known[name] = true
	var list []*field
	for _, f := range o.value.fields {
		if f.name == name {
			list = append(list, f)
		}
	}
	return list
}

// one returns the value of a field that may occur once. It returns nil if the field
// is absent, null or invalid.
func (o *object) one(name, path string) *value {
	list := o.fields(name)
	if len(list) == 0 {
		return nil
	}
	for _, again := range list[1:] {
		o.add(again.at, fmt.Sprintf("duplicate %s: first defined on line %d", name, list[0].at.line), "remove one of the two")
	}
	v := list[0].value
	if v.invalid {
		o.rejected[o.subpath(path)] = true
	}
	if v.invalid || v.kind == kindNull {
		return nil
	}
	o.origins[o.subpath(path)] = origin{v.at, name}
	return v
}

// The remedies for values of the wrong type.
var (
	mappingRemedy = bySyntax{api: `write {"name": value}`, hcl: "write { name = value }", yaml: "write {name: value}"}
	fieldsRemedy  = bySyntax{api: "write an object of its fields", hcl: "write it as a block of its fields", yaml: "write it as a mapping of its fields"}
	listRemedy    = bySyntax{api: "write it as a list: [{...}]", hcl: "write each as a block", yaml: "write it as a list: each begins with -"}
)

// typeError rejects a value of the wrong type.
func (o *object) typeError(name, path string, v *value, expected, remedy string) {
	o.reject(o.subpath(path), v.at, fmt.Sprintf("%s: expected %s, found %s", name, expected, v.describe()), remedy)
}

// set and setPtr return functions that store a value in to.
func set[T any](to *T) func(T)     { return func(v T) { *to = v } }
func setPtr[T any](to **T) func(T) { return func(v T) { *to = &v } }

func (o *object) text(name, path string, to func(string)) {
	declare(o, name, jsonschema.Text())
	v := o.one(name, path)
	switch {
	case v == nil:
	case v.kind == kindText:
		to(v.text)
	case v.kind == kindNumber || v.kind == kindBool:
		o.typeError(name, path, v, "a string", fmt.Sprintf("put it in quotes: %q", v.text))
	default:
		o.typeError(name, path, v, "a string", "write one value in quotes")
	}
}

func (o *object) boolean(name, path string, to func(bool)) {
	declare(o, name, jsonschema.Bool())
	v := o.one(name, path)
	switch {
	case v == nil:
	case v.kind == kindBool:
		to(strings.EqualFold(v.text, "true"))
	default:
		o.typeError(name, path, v, "true or false", "write true or false, without quotes")
	}
}

func (o *object) integer(name, path string, to func(int)) {
	declare(o, name, jsonschema.Int32())
	if v := o.one(name, path); v != nil {
		if n, ok := o.integerOf(name, path, v); ok {
			to(n)
		}
	}
}

// integerOf reads a 32-bit integer. All integers except amounts have this range.
func (o *object) integerOf(name, path string, v *value) (int, bool) {
	if v.kind == kindNumber {
		n, ok := parseInteger(v.text)
		if ok && n >= math.MinInt32 && n <= math.MaxInt32 {
			return int(n), true
		}
		if ok {
			o.typeError(name, path, v, "a number from -2147483648 to 2147483647", "check the number")
			return 0, false
		}
	}
	o.typeError(name, path, v, "an integer", "write digits, without quotes")
	return 0, false
}

func (o *object) duration(name, path string, to func(time.Duration)) {
	declare(o, name, jsonschema.Duration())
	v := o.one(name, path)
	if v == nil {
		return
	}
	d, err := parseDuration(v)
	if err != nil {
		o.typeError(name, path, v, "a duration", err.Error())
		return
	}
	to(d)
}

// amount reads an amount of a resource.
func (o *object) amount(resource, name, path string, to func(int64)) {
	declare(o, name, jsonschema.Quantity())
	if v := o.one(name, path); v != nil {
		o.amountOf(resource, name, path, v, to)
	}
}

func (o *object) amountOf(resource, name, path string, v *value, to func(int64)) {
	n, err := parseAmount(resource, v)
	if err != nil {
		o.typeError(name, path, v, "an amount of "+resource, err.Error())
		return
	}
	to(n)
}

// texts reads a list of strings.
func (o *object) texts(name, path string, to func([]string)) {
	declare(o, name, jsonschema.List(jsonschema.Scalar()))
	v := o.one(name, path)
	if v == nil {
		return
	}
	if v.kind != kindList {
		o.typeError(name, path, v, "a list", `write ["a", "b"]`)
		return
	}
	list := make([]string, 0, len(v.list))
	for i, e := range v.list {
		at := fmt.Sprintf("%s[%d]", path, i)
		o.origins[o.subpath(at)] = origin{e.at, name}
		switch {
		case e.invalid:
		case e.kind == kindText || e.kind == kindNumber || e.kind == kindBool:
			list = append(list, e.text)
		default:
			o.typeError(name, at, e, "a string", "write one value in quotes")
		}
	}
	to(list)
}

// table reads a mapping with arbitrary keys.
func table[T any](o *object, name, path string, one func(key, path string, v *value) (T, bool)) map[string]T {
	var m map[string]T
	for _, f := range o.fields(name) { // blocks with the same name are merged
		if f.value.invalid || f.value.kind == kindNull {
			continue
		}
		o.origins[o.subpath(path)] = origin{f.value.at, name}
		if f.value.kind != kindObject {
			o.typeError(name, path, f.value, "a mapping", o.remedyOf(mappingRemedy))
			continue
		}
		if m == nil {
			m = map[string]T{}
		}
		o.noLabels(f)
		for _, e := range f.value.fields {
			if _, twice := m[e.name]; twice {
				o.add(e.at, fmt.Sprintf("duplicate key %.100q", e.name), "remove one of the two")
				continue
			}
			at := keyPath(path, e.name)
			o.origins[o.subpath(at)] = origin{e.value.at, e.name}
			if e.value.invalid {
				continue
			}
			if v, ok := one(e.name, at, e.value); ok {
				m[e.name] = v
			}
		}
	}
	return m
}

// keyPath returns the path of a key of a mapping.
func keyPath(path, key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !plainRune(r) }) {
		return fmt.Sprintf("%s[%.100q]", path, key)
	}
	return path + "." + key
}

// textTable reads a mapping of strings such as labels. It accepts any scalar as text.
func (o *object) textTable(name, path string, to func(map[string]string)) {
	declare(o, name, jsonschema.Map(jsonschema.Scalar()))
	m := table(o, name, path, func(key, at string, v *value) (string, bool) {
		switch v.kind {
		case kindText, kindNumber, kindBool:
			return v.text, true
		}
		o.typeError(key, at, v, "a string", `write one value; "" is the empty string`)
		return "", false
	})
	if m != nil {
		to(m)
	}
}

func (o *object) amountTable(name, path string, to func(map[string]int64)) {
	declare(o, name, jsonschema.Map(jsonschema.Quantity()))
	m := table(o, name, path, func(key, at string, v *value) (n int64, ok bool) {
		o.amountOf(key, key, at, v, func(m int64) { n, ok = m, true })
		return n, ok
	})
	if m != nil {
		to(m)
	}
}

func (o *object) numberTable(name, path string, to func(map[string]float64)) {
	declare(o, name, jsonschema.Map(jsonschema.Number()))
	m := table(o, name, path, func(key, at string, v *value) (float64, bool) {
		f, ok := parseNumber(v.text)
		if v.kind != kindNumber || !ok {
			o.typeError(key, at, v, "a number", "write a finite number, without quotes")
			return 0, false
		}
		return f, true
	})
	if m != nil {
		to(m)
	}
}

// free reads a mapping with arbitrary values, such as a driver configuration.
func (o *object) free(name, path string, to func(map[string]any)) {
	declare(o, name, jsonschema.Free())
	v := o.one(name, path)
	switch {
	case v == nil:
	case v.kind == kindObject:
		locateValues(o, path, v)
		to(v.plainObject())
	default:
		o.typeError(name, path, v, "a mapping", o.remedyOf(mappingRemedy))
	}
}

// locateValues records the positions of the fields of a mapping, and of the elements of their
// lists.
func locateValues(o *object, path string, v *value) {
	for _, f := range v.fields {
		at := o.subpath(keyPath(path, f.name))
		if _, repeated := o.origins[at]; repeated {
			continue
		}
		o.origins[at] = origin{f.value.at, f.name}
		for i, e := range f.value.list {
			o.origins[fmt.Sprintf("%s[%d]", at, i)] = origin{e.at, f.name}
		}
	}
}

// child reads a mapping that may occur once. It returns nil if it is absent.
func (o *object) child(what, name, path string) *object {
	if o.schema != nil {
		inner := o.declareObject(what)
		declare(o, name, inner.schema)
		return inner
	}
	v := o.one(name, path)
	if v == nil {
		return nil
	}
	if v.kind != kindObject {
		o.typeError(name, path, v, what, o.remedyOf(fieldsRemedy))
		return nil
	}
	return o.object(what, o.subpath(path), v)
}

// each calls one for each block with the given name, or for each element of a list.
func (o *object) each(what, name, path string, one func(*object)) {
	if o.schema != nil {
		inner := o.declareObject(what)
		one(inner)
		declare(o, name, jsonschema.List(inner.schema))
		return
	}
	i := 0
	visit := func(v *value) {
		at := fmt.Sprintf("%s[%d]", path, i)
		i++
		o.origins[o.subpath(at)] = origin{v.at, name}
		if v.invalid {
			return
		}
		if v.kind != kindObject {
			o.typeError(name, at, v, what, o.remedyOf(fieldsRemedy))
			return
		}
		if !o.isFull() {
			one(o.object(what, o.subpath(at), v))
		}
	}
	fields := o.fields(name)
	for n, f := range fields {
		if n > 0 && !f.block {
			o.add(f.at, fmt.Sprintf("duplicate %s: first defined on line %d", name, fields[0].at.line), "remove one of the two")
			continue
		}
		o.origins[o.subpath(path)] = origin{f.value.at, name}
		switch {
		case f.value.invalid, f.value.kind == kindNull:
		case f.block:
			visit(f.value)
		case f.value.kind == kindList:
			for _, e := range f.value.list {
				visit(e)
			}
		default:
			o.typeError(name, path, f.value, "a list", o.remedyOf(listRemedy))
		}
	}
}

// label reads the single label of a block, which is its name.
func (o *object) label(kind, path string, to func(string)) {
	labels := o.value.labels
	if len(labels) != 1 {
		o.reject(o.subpath(path), o.value.at, fmt.Sprintf("%s has %d labels: expected one", kind, len(labels)), fmt.Sprintf("write %s \"name\" { ... }", kind))
		return
	}
	o.origins[o.subpath(path)] = origin{labels[0].at, kind}
	to(labels[0].text)
}

// noLabels rejects labels on a block that takes none.
func (o *object) noLabels(f *field) {
	if len(f.value.labels) > 0 {
		o.add(f.value.labels[0].at, fmt.Sprintf("%s takes no label, found %.40q", f.name, f.value.labels[0].text), "remove the label")
	}
}

// unsupported sets the fields that Nomad has and cede does not support. They are
// rejected by name, because ignoring them silently would change the meaning of the
// job.
func (o *object) unsupported(fields map[string]string) { o.notSupported = fields }

// done rejects every field that was not read.
func (o *object) done() {
	for _, f := range o.value.fields {
		if o.known[f.name] {
			continue
		}
		name := f.name[:min(len(f.name), 100)]
		thing := "field"
		if f.block {
			thing = "block"
		}
		path := o.subpath(name)
		why, ok := o.notSupported[f.name]
		if (ok || o.fromAPI) && o.ignore(f.name) {
			continue
		}
		if ok {
			o.reject(path, f.at, fmt.Sprintf("%s %q of %s is not supported", thing, name, o.desc), why)
			continue
		}
		known := slices.Sorted(maps.Keys(o.known))
		o.reject(path, f.at, fmt.Sprintf("unknown %s %q in %s", thing, name, o.desc), suggest.Field(name, known))
	}
}
