package scenario

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/cede-scheduler/cede/core/internal/suggest"
)

// maxFields is the most fields that a struct of the schema has.
const maxFields = 32

func (s *structPlan) decode(d *decoder, v reflect.Value, start event) {
	var seen [maxFields]int // line by field; 0: not seen
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
			d.problem(start.line, field.name+" is missing", fmt.Sprintf("add `%s: ` and %s", field.name, r.what))
			d.pop(mark)
		}
	}
}

// field decodes the value of a field. Null means that the field is absent,
// except among expectations, where it could be taken for "none": those must be
// written out.
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

func (d *decoder) duplicate(line int, what string, first int) {
	d.problem(line, fmt.Sprintf("%s is given twice, first on line %d", what, first), "remove one of the two")
}

// unknown refuses a field and steps over its value.
func (s *structPlan) unknown(d *decoder, ev event) {
	name := string(ev.text[:min(len(ev.text), 100)])
	mark := d.push(step{key: name, index: -1}, ev.line)
	known := make([]string, len(s.fields))
	for i := range s.fields {
		known[i] = s.fields[i].name
	}
	remedy := "known fields: " + strings.Join(known, ", ")
	if near := suggest.Nearest(name, known); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	}
	d.problem(ev.line, fmt.Sprintf("unknown field %.100q", name), remedy)
	d.skip(d.src.next())
	d.pop(mark)
}

func pointerPlan(of *plan) *plan {
	return &plan{what: of.what, decode: func(d *decoder, v reflect.Value, ev event) {
		p := reflect.New(v.Type().Elem())
		of.decode(d, p.Elem(), ev)
		v.Set(p)
	}}
}

func slicePlan(of *plan, many string) *plan {
	what := "a list of " + many
	return &plan{what: what, decode: func(d *decoder, v reflect.Value, ev event) {
		if ev.kind != kindList {
			d.wrongType(ev, what, `write [...] or lines that start with "- "; [] is the empty list`)
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

// mapPlan is for maps with free keys. Texts in them (labels, attributes) may
// be written as numbers or booleans and keep their notation.
func mapPlan(of *plan, texts bool) *plan {
	what := "a mapping from names to " + strings.TrimPrefix(strings.TrimPrefix(of.what, "a "), "an ") + "s"
	if texts {
		of = &plan{what: of.what, decode: decodeText}
	}
	return &plan{what: what, decode: func(d *decoder, v reflect.Value, ev event) {
		if ev.kind != kindObject {
			d.wrongType(ev, what, "write {name: value} or indented lines")
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

// entries decodes each entry of an open mapping with free keys.
func (d *decoder) entries(each func(key string, value event)) {
	d.spend(200)
	first := len(d.keys)
	var many map[string]int // line by key, once a scan would take long
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

// keyLine is a key of a mapping that is being read.
type keyLine struct {
	key  string
	line int
}

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
