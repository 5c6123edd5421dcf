package scenario

import (
	"fmt"
	"reflect"
)

// nameFields lists the fields that must be unique within a list, by element type.
var nameFields = map[reflect.Type]string{
	reflect.TypeFor[PolicyVariant](): "name",
	reflect.TypeFor[Namespace]():     "name",
	reflect.TypeFor[PriorityClass](): "name",
	reflect.TypeFor[Node]():          "id",
	reflect.TypeFor[Job]():           "id",
	reflect.TypeFor[Group]():         "name",
	reflect.TypeFor[Running]():       "id",
	reflect.TypeFor[Cluster]():       "id",
	reflect.TypeFor[Binding]():       "id",
}

// longList is the length above which names are compared while the list is read.
const longList = 10_000

// duplicateNames detects duplicate names while a long list is read. Validation finds
// them as well, but only after reading a list that may have millions of equal
// elements. The name is the first field of the struct.
type duplicateNames struct {
	list  reflect.Value
	field string // "" if the elements have no names
	first map[string]int
}

// checkLast compares the element that was read last with the earlier ones.
func (r *duplicateNames) checkLast(d *decoder, i, line int) {
	if r.field == "" || i+1 < longList {
		return
	}
	if i == maxNodes && r.list.Type().Elem() == reflect.TypeFor[Node]() {
		panic(fatal{problem: Problem{Line: line, Path: d.where(len(d.path)), Message: tooManyNodes, Remedy: "use fewer nodes"}})
	}
	if r.first == nil {
		r.first = make(map[string]int, 2*longList)
		for k := range i {
			if name := r.name(k); name != "" {
				if _, ok := r.first[name]; !ok {
					r.first[name] = k
				}
			}
		}
	}
	name := r.name(i)
	if name == "" {
		return // the decoder has reported the missing name
	}
	first, ok := r.first[name]
	if !ok {
		r.first[name] = i
		return
	}
	list := d.where(len(d.path) - 1)
	mark := d.push(step{key: r.field, index: -1}, line)
	d.problem(line, fmt.Sprintf("%.100q is already the %s of %s[%d]", name, r.field, list, first), "use a unique "+r.field)
	d.pop(mark)
}

func (r *duplicateNames) name(i int) string { return r.list.Index(i).Field(0).String() }
