package importer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// escapeMark introduces an escaped byte in the names of a scenario.
const escapeMark = "--"

// escapeName returns a valid name of a scenario for any ID of Nomad. Each byte that a
// name may not contain is written as -- and two hexadecimal digits, and so is a hyphen
// that would make the result ambiguous. Most IDs are not changed. unescapeName is the
// inverse.
func escapeName(id string) string {
	var b strings.Builder
	for i := range len(id) {
		ambiguous := id[i] == '-' && i+1 < len(id) && (id[i+1] == '-' || !scenario.IsNameByte(id[i+1]))
		if ambiguous || !scenario.IsNameByte(id[i]) {
			fmt.Fprintf(&b, "%s%02x", escapeMark, id[i])
		} else {
			b.WriteByte(id[i])
		}
	}
	return b.String()
}

// escapeNames replaces every ID in the scenario that is not a valid name, and records an
// example. References are replaced alike.
func (w *nomadWriter) escapeNames() {
	e := &nameEscaper{changed: map[string]string{}, nodes: w.names}
	f := w.file
	for i := range f.Namespaces {
		e.escape(&f.Namespaces[i].Name)
	}
	for i := range f.Nodes {
		e.escape(&f.Nodes[i].ID, &f.Nodes[i].Datacenter, &f.Nodes[i].Class)
	}
	for i := range f.Jobs {
		e.job(&f.Jobs[i])
	}
	for i := range f.Running {
		r := &f.Running[i]
		e.escape(&r.ID, &r.Job, &r.Group, &r.Node)
	}
	for i := range f.Events {
		e.escape(&f.Events[i].Submit)
	}
	for _, n := range e.notes() {
		w.report.Note(n.Count, n.Subject, n.Handling)
	}
}

// EscapeJob replaces the names in a job of Nomad, as the import of its cluster does. It
// notes an example if any name is changed.
func EscapeJob(job *scenario.Job) []Note {
	e := &nameEscaper{changed: map[string]string{}}
	e.job(job)
	return e.notes()
}

// A nameEscaper replaces names that scenarios do not have.
type nameEscaper struct {
	changed  map[string]string // names by ID, without IDs that are names
	nodes    map[string]string // names of nodes by ID; may be nil
	patterns int               // conditions that compare changed names with patterns
}

// escape replaces IDs by names.
func (e *nameEscaper) escape(ids ...*string) {
	for _, id := range ids {
		if name := escapeName(*id); name != *id {
			e.changed[*id] = name
			*id = name
		}
	}
}

func (e *nameEscaper) job(job *scenario.Job) {
	e.escape(&job.ID, &job.Namespace)
	job.Datacenters = slices.Clone(job.Datacenters)
	for k := range job.Datacenters {
		e.escape(&job.Datacenters[k])
	}
	for k := range job.Groups {
		g := &job.Groups[k]
		e.escape(&g.Name)
		for i := range g.Constraints {
			e.constraint(&g.Constraints[i])
		}
		for i := range g.Affinities {
			e.constraint(&g.Affinities[i].Constraint)
		}
		for i := range g.Spread {
			e.spread(&g.Spread[i])
		}
	}
}

// holdsName reports whether a built-in attribute holds a name of the scenario.
func holdsName(attribute string) bool {
	return attribute == "node.id" || attribute == "node.class" || attribute == "node.datacenter"
}

// constraint replaces the values of a condition on names of nodes, classes or datacenters.
func (e *nameEscaper) constraint(c *scenario.Constraint) {
	if !holdsName(c.Attribute) {
		return
	}
	switch model.Operator(c.Operator) {
	case model.OpEqual, model.OpNotEqual:
		e.value(c.Attribute, &c.Value)
	case model.OpIn, model.OpNotIn:
		c.Values = slices.Clone(c.Values)
		for k := range c.Values {
			e.value(c.Attribute, &c.Values[k])
		}
	case model.OpIsSet, model.OpIsNotSet, model.OpDistinctHosts, model.OpDistinctProperty:
	default:
		e.patterns++
	}
}

func (e *nameEscaper) spread(s *scenario.Spread) {
	if !holdsName(s.Attribute) || len(s.Targets) == 0 {
		return
	}
	targets := make(map[string]int, len(s.Targets))
	for value, percent := range s.Targets {
		e.value(s.Attribute, &value)
		targets[value] = percent
	}
	s.Targets = targets
}

// value replaces a value with which an attribute is compared. Nodes have their name as ID
// in the scenario.
func (e *nameEscaper) value(attribute string, v *string) {
	if attribute == "node.id" {
		*v = cmp.Or(e.nodes[*v], *v)
	}
	e.escape(v)
}

// notes describes the changes, or returns nil if there are none.
func (e *nameEscaper) notes() []Note {
	if len(e.changed) == 0 {
		return nil
	}
	example := slices.MinFunc(slices.Collect(maps.Keys(e.changed)), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	notes := []Note{{
		Count: len(e.changed), Subject: "IDs with characters that names in scenarios do not have",
		Handling: fmt.Sprintf("each such byte is written as %s and its hexadecimal code: %q is %s", escapeMark, example, e.changed[example]),
	}}
	if e.patterns > 0 {
		notes = append(notes, Note{Count: e.patterns, Subject: "patterns on names of nodes, classes or datacenters", Handling: "compared with the names in the scenario"})
	}
	return notes
}
