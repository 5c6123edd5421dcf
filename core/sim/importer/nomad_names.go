package importer

import (
	"fmt"
	"strings"

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
	changed := map[string]string{}
	escape := func(ids ...*string) {
		for _, id := range ids {
			if name := escapeName(*id); name != *id {
				changed[*id] = name
				*id = name
			}
		}
	}
	f := w.file
	for i := range f.Namespaces {
		escape(&f.Namespaces[i].Name)
	}
	for i := range f.Nodes {
		escape(&f.Nodes[i].ID, &f.Nodes[i].Datacenter)
	}
	for i := range f.Jobs {
		job := &f.Jobs[i]
		escape(&job.ID, &job.Namespace)
		for k := range job.Datacenters {
			escape(&job.Datacenters[k])
		}
		for k := range job.Groups {
			escape(&job.Groups[k].Name)
			escapeConstraints(job.Groups[k].Constraints, escape)
		}
	}
	for i := range f.Running {
		r := &f.Running[i]
		escape(&r.ID, &r.Job, &r.Group, &r.Node)
	}
	for i := range f.Events {
		escape(&f.Events[i].Submit)
	}
	example := ""
	for id := range changed {
		if example == "" || len(id) < len(example) || len(id) == len(example) && id < example {
			example = id
		}
	}
	if example != "" {
		w.report.note(len(changed), "IDs with characters that names in scenarios do not have",
			fmt.Sprintf("each such byte is written as %s and its hexadecimal code: %q is %s", escapeMark, example, changed[example]))
	}
}

// escapeConstraints replaces the values of constraints that name nodes or datacenters.
func escapeConstraints(list []scenario.Constraint, escape func(...*string)) {
	for i := range list {
		c := &list[i]
		if c.Attribute != "node.id" && c.Attribute != "node.datacenter" {
			continue
		}
		if c.Operator == "=" || c.Operator == "!=" {
			escape(&c.Value)
		}
		for k := range c.Values {
			escape(&c.Values[k])
		}
	}
}
