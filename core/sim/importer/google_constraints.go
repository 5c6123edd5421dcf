package importer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// attributes relates the attributes of machines to the constraints that read them.
//
// In the trace an absent attribute equals an empty one and 0; in a scenario it does
// not. Therefore every machine without an attribute that some constraint reads gets
// the value 0, and empty values become 0 on both sides. This loses nothing because
// the trace treats the three as equal.
//
// If an attribute is only compared for equality, the values that constraints name are
// retained and every other value becomes "other". No constraint can distinguish them,
// and machines that would otherwise all be different (one of the attributes has
// hundreds of values) become equal.
type attributes struct {
	clauses     map[string][]clause              // by the text in the trace
	constraints map[string][]scenario.Constraint // the same, as scenario constraints
}

// clause is one comparison.
type clause struct{ attribute, operator, value string }

const (
	absentValue = "0"
	otherValue  = "other"
)

var googleOperators = map[string]model.Operator{
	"==": model.OpEqual, "!=": model.OpNotEqual, "<": model.OpLess, ">": model.OpGreater,
}

// readConstraints reads the constraint and attribute files if they exist.
func (g *google) readConstraints(src Source) error {
	constraints := src.Match("constraints*.csv")
	attributes := src.Match("machine_attributes*.csv")
	switch {
	case len(constraints) == 0:
		return nil
	case len(attributes) == 0:
		g.Report.Note(len(constraints), "constraint files without a file of machine attributes", "not imported")
		return nil
	case len(constraints) > 1 || len(attributes) > 1:
		return fmt.Errorf("several files of constraints or machine attributes (%s); provide one of each",
			strings.Join(append(constraints, attributes...), ", "))
	}
	if err := g.readClauses(src, constraints[0]); err != nil {
		return err
	}
	return g.readAttributes(src, attributes[0])
}

// readClauses reads the constraints of the tasks from a file.
func (g *google) readClauses(src Source, file string) error {
	t, err := g.OpenTable(src, file)
	if err != nil {
		return err
	}
	defer t.Close()
	job, index, list := t.Column("job_id"), t.Column("task_index"), t.Column("constraints")
	byTask := make(map[taskKey]string)
	g.attributes.clauses = make(map[string][]clause)
	for t.Next() {
		text := t.Text(list)
		if _, known := g.attributes.clauses[text]; !known {
			text = strings.Clone(text)
			g.attributes.clauses[text] = parseClauses(t, text)
		}
		byTask[taskKey{t.ID(job), t.ID(index)}] = text
	}
	for i := range g.tasks {
		key := taskKey{g.tasks[i].job, g.tasks[i].index}
		if text, ok := byTask[key]; ok {
			g.tasks[i].clauses = text
			delete(byTask, key)
		}
	}
	g.Report.Note(len(byTask), "constraints of tasks that are not in the trace", "ignored")
	return t.Err()
}

// parseClauses parses "Ql,>,4;Ql,<,14;wN,==,2".
func parseClauses(t *build.Table, text string) []clause {
	var list []clause
	for part := range strings.SplitSeq(text, ";") {
		f := strings.Split(part, ",")
		if len(f) != 3 || f[0] == "" || googleOperators[f[1]] == "" {
			t.Fail("constraint %.80q; expected attribute,operator,value with ==, !=, < or >", part)
			return nil
		}
		if f[1] == "<" || f[1] == ">" {
			if _, err := strconv.ParseFloat(f[2], 64); err != nil {
				t.Fail("constraint %.80q; expected a number to compare with", part)
			}
		}
		list = append(list, clause{f[0], f[1], f[2]})
	}
	return list
}

// attributeUse describes how constraints read an attribute.
type attributeUse struct {
	ordered bool
	named   map[string]bool
}

// uses returns the use of each attribute by the constraints of imported tasks. It also
// converts these constraints into scenario constraints.
func (a *attributes) uses() map[string]*attributeUse {
	all := make(map[string]*attributeUse)
	a.constraints = make(map[string][]scenario.Constraint)
	for text, clauses := range a.clauses {
		var list []scenario.Constraint
		for _, c := range clauses {
			r := all[c.attribute]
			if r == nil {
				r = &attributeUse{named: make(map[string]bool)}
				all[c.attribute] = r
			}
			c.value = cmp.Or(c.value, absentValue)
			r.named[c.value] = true
			r.ordered = r.ordered || c.operator == "<" || c.operator == ">"
			list = append(list, scenario.Constraint{
				Attribute: c.attribute, Operator: string(googleOperators[c.operator]), Value: c.value,
			})
		}
		a.constraints[text] = list
	}
	return all
}

// readAttributes sets the attributes of nodes that constraints read.
func (g *google) readAttributes(src Source, file string) error {
	t, err := g.OpenTable(src, file)
	if err != nil {
		return err
	}
	defer t.Close()
	id := t.Column("machine_id")
	readings := g.attributes.uses()
	columns := make(map[string]int)
	for i, name := range t.Columns() {
		if i != id && readings[name] != nil {
			columns[name] = i
		}
	}
	for _, name := range slices.Sorted(maps.Keys(readings)) {
		if _, ok := columns[name]; !ok {
			g.Report.Note(1, "attributes that constraints read and no machine has", "0 on every node, as in the trace")
		}
	}
	rows := make(map[string]map[string]string)
	for t.Next() {
		values := make(map[string]string, len(columns))
		for name, i := range columns {
			values[name] = t.Text(i)
		}
		rows[strconv.FormatUint(t.ID(id), 10)] = values
	}
	g.attach(rows, readings)
	return t.Err()
}

// attach sets the attributes of every node from the rows of the attribute file.
func (g *google) attach(rows map[string]map[string]string, readings map[string]*attributeUse) {
	for i := range g.File.Nodes {
		n := &g.File.Nodes[i]
		values, known := rows[n.ID]
		if !known {
			g.Report.Note(1, "machines without a row of attributes", "all attributes are 0")
		}
		attrs := maps.Clone(n.Attributes)
		if attrs == nil {
			attrs = make(map[string]string)
		}
		for name, r := range readings {
			attrs[name] = r.value(values[name])
		}
		n.Attributes = attrs
	}
}

// value returns the scenario value of an attribute value of the trace.
func (r *attributeUse) value(v string) string {
	switch {
	case v == "":
		return absentValue
	case !r.ordered && !r.named[v] && !r.named[otherValue]:
		return otherValue
	}
	return v
}
