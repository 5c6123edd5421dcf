package jobspec

import (
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/sdk/client"
)

// With Options.SchedulingOnly, only the parts of a job file that affect scheduling
// are read: resources, constraints, priorities, counts. How its tasks run is ignored,
// whether or not cede supports it.

// An IgnoredField is a field of a job file that was ignored.
type IgnoredField struct {
	Name  string // as in the file
	Count int    // number of occurrences
	// AffectsPlacement is set if Nomad considers the field when it chooses nodes.
	AffectsPlacement bool
}

// Ignored returns the fields that Options.SchedulingOnly ignored, sorted by name.
func (f *File) Ignored() []IgnoredField {
	var list []IgnoredField
	for _, name := range slices.Sorted(maps.Keys(f.parser.ignored)) {
		list = append(list, IgnoredField{Name: name, Count: f.parser.ignored[name], AffectsPlacement: name == "volume" || name == "Volumes"})
	}
	return list
}

// NodePool returns the Nomad node pool of the file, or "" if it names none.
func (f *File) NodePool() string { return f.parser.nodePool }

// schedulingFields lists fields that affect Nomad's scheduling or identify the
// scheduled objects. If cede does not support one of them, it is rejected even with
// SchedulingOnly.
var schedulingFields = map[string]bool{
	"cores": true, "numa": true, "custom": true, "affinity": true, "ignore_collision": true,
	"id": true, "task": true, "multiregion": true, "locals": true, "variables": true,
	"key": true, "operator": true, "value": true, "effect": true,
	"Cores": true, "NUMA": true, "Multiregion": true, "Affinities": true,
}

// ignore records a field as ignored and returns true, unless the field affects
// scheduling or the whole job is read.
func (r *parser) ignore(name string) bool {
	if !r.schedulingOnly || schedulingFields[name] {
		return false
	}
	if r.ignored == nil {
		r.ignored = map[string]int{}
	}
	r.ignored[name]++
	return true
}

// isIgnoredBlock reports whether the expressions of an HCL block need not be
// evaluated.
func (r *parser) isIgnoredBlock(block string) bool {
	switch block {
	case "config", "env", "meta":
		return r.schedulingOnly
	case "migrate", "lifecycle":
		return false
	}
	_, job := nomadJobUnsupported[block]
	_, group := nomadGroupUnsupported[block]
	_, task := nomadTaskUnsupported[block]
	return r.schedulingOnly && (job || group || task) && !schedulingFields[block]
}

// runsOnce reports whether a task with a lifecycle runs before or after the main
// tasks. Such a task uses their resources, at another time.
func runsOnce(hook string, sidecar bool) bool { return !sidecar && hook != "poststart" }

// ignoreTask reads the lifecycle of a task and reports whether the task is ignored.
func (o *object) ignoreTask() bool {
	name := "lifecycle"
	if len(o.fields(name)) == 0 {
		name = "Lifecycle"
	}
	l := o.child("a lifecycle block", name, "Lifecycle")
	if l == nil {
		return false
	}
	var hook string
	var sidecar bool
	for _, field := range [][2]string{{"hook", "sidecar"}, {"Hook", "Sidecar"}} {
		l.text(field[0], "Hook", set(&hook))
		l.boolean(field[1], "Sidecar", set(&sidecar))
	}
	return runsOnce(hook, sidecar) && o.ignore("task that runs before or after the others")
}

// stripRuntime removes from a job the fields that describe how its tasks run.
func (r *parser) stripRuntime(j *client.Job) {
	j.Meta = nil
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		g.Meta = nil
		r.keepHostPorts(g.Networks)
		g.Tasks = slices.DeleteFunc(g.Tasks, func(t *client.Task) bool { return t == nil })
		for i, t := range g.Tasks {
			g.Tasks[i] = &client.Task{
				Name: t.Name, Driver: "sim", KillTimeout: t.KillTimeout,
				Constraints: t.Constraints, Affinities: t.Affinities, Resources: t.Resources,
			}
			if t.Resources != nil {
				r.keepHostPorts(t.Resources.Networks)
			}
		}
	}
}

// keepHostPorts keeps fixed ports and bandwidth. It removes network modes and dynamic
// ports, which do not restrict the choice of nodes.
func (r *parser) keepHostPorts(list []*client.NetworkResource) {
	for _, n := range list {
		if n == nil {
			continue
		}
		if n.Mode != "" && n.Mode != "host" {
			r.ignore("network mode")
		}
		for range n.DynamicPorts {
			r.ignore("port without static")
		}
		n.Mode, n.DynamicPorts = "", nil
		for i := range n.ReservedPorts {
			n.ReservedPorts[i].Label = ""
		}
	}
}
