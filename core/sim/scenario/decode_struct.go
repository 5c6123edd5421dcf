package scenario

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/cede-scheduler/cede/core/model/jsonschema"
	"github.com/cede-scheduler/cede/core/suggest"
)

// maxFields is the largest number of fields in a struct of the schema.
const maxFields = 32

// decode reads a mapping into the struct v. It reports unknown, duplicate and missing fields.
func (s *structPlan) decode(d *decoder, v reflect.Value, start event) {
	var seen [maxFields]int // line by field; 0 if not seen yet
	for {
		ev := d.src.next()
		if ev.kind == kindObjectEnd {
			break
		}
		at, ok := s.byName[string(ev.text)]
		if !ok {
			s.unknown(d, ev)
			continue
		}
		field := &s.fields[at]
		mark := d.push(step{key: field.name, index: -1}, ev.line)
		if seen[at] > 0 {
			d.duplicate(ev.line, field.name, seen[at])
			d.skip(d.src.next())
		} else {
			seen[at] = ev.line
			s.field(d, v, field)
		}
		d.pop(mark)
	}
	for i, r := range s.required {
		if i > 0 && s.alternative >= 0 && seen[s.alternative] > 0 {
			break
		}
		if field := &s.fields[r.field]; seen[r.field] == 0 {
			mark := d.push(step{key: field.name, index: -1}, start.line)
			d.problem(start.line, field.name+" is missing", fmt.Sprintf("add `%s: ` and %s", field.name, r.hint))
			d.pop(mark)
		}
	}
}

// field decodes the value of a field. Null means that the field is absent. Under
// expect, null is an error: it could be read as "not checked" or as "none".
func (s *structPlan) field(d *decoder, v reflect.Value, field *fieldPlan) {
	ev := d.src.next()
	if ev.kind == kindNull && d.path[0].key != "expect" {
		return
	}
	if len(field.index) > 0 {
		v = v.FieldByIndex(field.index)
	}
	field.plan.decode(d, v, ev)
}

// duplicate reports a field or key that occurs a second time.
func (d *decoder) duplicate(line int, noun string, first int) {
	d.problem(line, fmt.Sprintf("%s is set twice, first on line %d", noun, first), "remove one of the two")
}

// unknown reports an unknown field and skips its value.
func (s *structPlan) unknown(d *decoder, ev event) {
	name := string(ev.text[:min(len(ev.text), 100)])
	mark := d.push(step{key: name, index: -1}, ev.line)
	known := make([]string, len(s.fields))
	for i := range s.fields {
		known[i] = s.fields[i].name
	}
	d.problem(ev.line, fmt.Sprintf("unknown field %.100q", name), suggest.Field(name, known))
	d.skip(d.src.next())
	d.pop(mark)
}

// pointerPlan returns the plan of a pointer: null leaves it nil.
func pointerPlan(of *plan) *plan {
	return &plan{noun: of.noun, schema: of.schema, decode: func(d *decoder, v reflect.Value, ev event) {
		p := reflect.New(v.Type().Elem())
		of.decode(d, p.Elem(), ev)
		v.Set(p)
	}}
}

// slicePlan returns the plan of a list. Many is the plural noun of its elements.
func slicePlan(of *plan, many string) *plan {
	noun := "a list of " + many
	return &plan{noun: noun, schema: jsonschema.List(of.schema), decode: func(d *decoder, v reflect.Value, ev event) {
		if ev.kind != kindList {
			d.wrongType(ev, noun, `write [...] or lines that start with "- "; [] is the empty list`)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		size := int(v.Type().Elem().Size())
		repeats := duplicateNames{list: v, field: nameFields[v.Type().Elem()]}
		for i := 0; ; i++ {
			ev := d.src.next()
			if ev.kind == kindListEnd {
				return
			}
			mark := d.push(step{index: i}, ev.line)
			d.spend(size)
			v.Grow(1)
			v.SetLen(i + 1)
			of.decode(d, v.Index(i), ev)
			repeats.checkLast(d, i, ev.line)
			d.pop(mark)
		}
	}}
}

// mapPlan returns the plan of a mapping with free keys. If texts is true, its values
// (labels, attributes) may be written as numbers or booleans and keep their notation.
func mapPlan(of *plan, texts bool) *plan {
	noun := "a mapping from names to " + strings.TrimPrefix(strings.TrimPrefix(of.noun, "a "), "an ") + "s"
	if texts {
		of = &plan{noun: of.noun, schema: jsonschema.Scalar(), decode: decodeText}
	}
	return &plan{noun: noun, schema: jsonschema.Map(of.schema), decode: func(d *decoder, v reflect.Value, ev event) {
		if ev.kind != kindObject {
			d.wrongType(ev, noun, "write {name: value} or indented lines")
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		d.entries(func(key string, ev event) {
			value.SetZero()
			of.decode(d, value, ev)
			v.SetMapIndex(reflect.ValueOf(key), value)
		})
	}}
}

// entries calls each for every entry of the open mapping with free keys.
func (d *decoder) entries(each func(key string, value event)) {
	d.spend(200)
	first := len(d.keys)
	var many map[string]int // line by key; used if there are too many keys for a linear scan
	for {
		ev := d.src.next()
		if ev.kind == kindObjectEnd {
			d.keys = d.keys[:first]
			return
		}
		key := d.intern(ev.text)
		mark := d.push(step{key: key, index: -1}, ev.line)
		if line := lineOf(d.keys[first:], many, key); line > 0 {
			d.duplicate(ev.line, fmt.Sprintf("%.100q", key), line)
			d.skip(d.src.next())
		} else {
			if d.keys = append(d.keys, keyLine{key, ev.line}); len(d.keys)-first > 16 {
				if many == nil {
					many = map[string]int{}
					for _, k := range d.keys[first:] {
						many[k.key] = k.line
					}
				}
				many[key] = ev.line
			}
			d.spend(50)
			each(key, d.src.next())
		}
		d.pop(mark)
	}
}

// A keyLine is a key of an open mapping and its line.
type keyLine struct {
	key  string
	line int
}

// lineOf returns the line of a key seen before, or 0.
func lineOf(few []keyLine, many map[string]int, key string) int {
	if many != nil {
		return many[key]
	}
	for i := range few {
		if few[i].key == key {
			return few[i].line
		}
	}
	return 0
}
