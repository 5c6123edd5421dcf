package jobspec

import (
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/sdk/client"
)

// A job file may be read for what is scheduled of it alone: resources,
// constraints, priorities, counts. How its tasks run is then left aside, whether
// cede can run them so or not.

// IgnoredField is something of a job file that was left aside.
type IgnoredField struct {
	Name  string // as the file calls it
	Count int    // how often it stands there
	// AffectsPlacement is set of what Nomad reads when it chooses nodes.
	AffectsPlacement bool
}

// Ignored lists what Options.SchedulingOnly left aside, by name.
func (f *File) Ignored() []IgnoredField {
	var list []IgnoredField
	for _, name := range slices.Sorted(maps.Keys(f.parser.ignored)) {
		list = append(list, IgnoredField{Name: name, Count: f.parser.ignored[name], AffectsPlacement: name == "volume" || name == "Volumes"})
	}
	return list
}

// NodePool is Nomad's node pool that the file names; "" where it names none.
func (f *File) NodePool() string { return f.parser.nodePool }

// schedulingFields is what Nomad schedules by, and what says what is to be scheduled:
// what of it cede does not have is refused wherever it stands.
var schedulingFields = map[string]bool{
	"cores": true, "numa": true, "custom": true, "affinity": true, "ignore_collision": true,
	"id": true, "task": true, "multiregion": true, "locals": true, "variables": true,
	"key": true, "operator": true, "value": true, "effect": true,
	"Cores": true, "NUMA": true, "Multiregion": true, "Affinities": true,
}

// ignore puts a field aside that nothing is scheduled by, and reports whether it
// may be.
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

// isIgnoredBlock is whether the expressions of an HCL block need not be understood.
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

// runsOnce is whether a task with a lifecycle runs before or after the others, whose
// place it then shares.
func runsOnce(hook string, sidecar bool) bool { return !sidecar && hook != "poststart" }

// ignoreTask reads a task's lifecycle and reports whether the task is left aside.
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

// stripRuntime takes out of a job how its tasks run.
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

// keepHostPorts keeps fixed ports and bandwidth: modes and dynamic ports keep nothing
// off a node.
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
