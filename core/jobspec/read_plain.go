package jobspec

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/jsonschema"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Schema returns the JSON Schema of a job file in YAML or JSON, in the vocabulary of
// scenarios. It holds the fields that the reader of these files reads: each read of an
// empty object declares its field.
func Schema() *jsonschema.Schema {
	o := newParser("").declareObject("a job")
	plainJob(o, &client.Job{})
	// The job may be wrapped, as in the documents of the API.
	o.schema.Set("job", &jsonschema.Schema{Ref: "#"})
	bare, wrapped := &jsonschema.Schema{Required: o.schema.Required}, &jsonschema.Schema{Required: []string{"job"}}
	o.schema.Required, o.schema.AnyOf = nil, []*jsonschema.Schema{bare, wrapped}
	return o.schema
}

// plainJob reads a job, including its tasks, in the vocabulary of scenarios.
func plainJob(o *object, j *client.Job) {
	o.text("id", "ID", set(&j.ID))
	o.text("name", "Name", set(&j.Name))
	o.text("namespace", "Namespace", set(&j.Namespace))
	o.text("region", "Region", set(&j.Region))
	o.text("type", "Type", set(&j.Type))
	o.integer("priority", "Priority", setPtr(&j.Priority))
	o.text("priorityClass", "PriorityClass", set(&j.PriorityClass))
	o.text("preemptionPolicy", "PreemptionPolicy", set(&j.PreemptionPolicy))
	o.boolean("preemptible", "Preemptible", setPtr(&j.Preemptible))
	o.preemptionToleration(&j.Toleration, "minPreemptorPriority", "minRuntime")
	o.text("disruptionMode", "DisruptionMode", set(&j.DisruptionMode))
	o.boolean("allAtOnce", "AllAtOnce", set(&j.AllAtOnce))
	o.texts("datacenters", "Datacenters", set(&j.Datacenters))
	o.text("policy", "Policy", set(&j.Policy))
	o.textTable("meta", "Meta", set(&j.Meta))
	plainPlacement.read(o, &j.Constraints, &j.Affinities, &j.Spreads)
	o.each("a group", "groups", "TaskGroups", func(o *object) {
		g := &client.TaskGroup{}
		plainGroup(o, g)
		j.TaskGroups = append(j.TaskGroups, g)
	})
	describe(o, func(s *jsonschema.Schema) {
		s.Require("id", "groups")
		setOptions(s, "type", jobTypes)
		setOptions(s, "preemptionPolicy", preemptionPolicies)
		setOptions(s, "disruptionMode", disruptionModes)
	})
	o.done()
	o.exclusive(j)
}

// plainTargets reads the targets of a spread: a mapping from values to percentages.
func plainTargets(o *object, s *client.Spread) {
	declare(o, "targets", jsonschema.Map(jsonschema.Int32()))
	i := 0
	for _, f := range o.fields("targets") {
		if f.value.kind != kindObject {
			o.typeError("targets", "SpreadTarget", f.value, "a mapping from values to percentages", "write {a: 50, b: 50}")
			continue
		}
		for _, e := range f.value.fields {
			at := fmt.Sprintf("SpreadTarget[%d].Percent", i)
			i++
			o.origins[o.subpath(at)] = origin{e.value.at, e.name}
			percent, _ := o.integerOf(e.name, at, e.value)
			s.SpreadTarget = append(s.SpreadTarget, &client.SpreadTarget{Value: e.name, Percent: percent})
		}
	}
}

func plainConstraint(o *object) *client.Constraint {
	c := &client.Constraint{}
	o.text("attribute", "LTarget", set(&c.LTarget))
	o.text("operator", "Operand", set(&c.Operand))
	o.operand("value", c)
	describeConstraint(o, true)
	o.done()
	return c
}

// describeConstraint adds the rules of a constraint to the schema. mayCount reports whether
// operators that count allocations are valid. Of them, distinct_hosts has no attribute.
func describeConstraint(o *object, mayCount bool) {
	describe(o, func(s *jsonschema.Schema) {
		operators := slices.Collect(maps.Keys(operatorSynonyms))
		for _, op := range model.Operators {
			if mayCount || !op.CountsAllocations() {
				operators = append(operators, string(op))
			}
		}
		slices.Sort(operators)
		setOptions(s, "operator", operators)
		if !mayCount {
			s.AnyOf = nil
			s.Require("attribute")
			return
		}
		s.RequireUnless("attribute", "operator", string(model.OpDistinctHosts))
	})
}

func plainGroup(o *object, g *client.TaskGroup) {
	o.text("name", "Name", set(&g.Name))
	o.integer("count", "Count", setPtr(&g.Count))
	o.integer("minCount", "MinCount", set(&g.MinCount))
	o.amountTable("resources", "Resources", set(&g.Resources))
	o.plainPorts(&g.Networks)
	o.each("a device request", "devices", "Devices", func(o *object) { g.Devices = append(g.Devices, plainDevice(o)) })
	o.textTable("labels", "Labels", set(&g.Labels))
	o.textTable("meta", "Meta", set(&g.Meta))
	plainPlacement.read(o, &g.Constraints, &g.Affinities, &g.Spreads)
	g.Colocate, g.Separate = o.terms("a term", "colocate", "Colocate", "topologyKey"), o.terms("a term", "separate", "Separate", "topologyKey")
	g.Tolerations = o.tolerations("tolerations")
	o.disconnect(&g.Disconnect, "lostAfter", nil)
	o.integer("maxParallelEvictions", "Migrate.MaxParallel", func(n int) { g.Migrate = &client.MigrateStrategy{MaxParallel: &n} })
	o.duration("duration", "Duration", set(&g.Duration))
	o.duration("checkpoint", "Checkpoint", set(&g.Checkpoint))
	o.numberTable("annotations", "Annotations", set(&g.Annotations))
	o.each("a task", "tasks", "Tasks", func(o *object) {
		t := &client.Task{}
		plainTask(o, t)
		g.Tasks = append(g.Tasks, t)
	})
	o.duration("killTimeout", "Tasks.KillTimeout", func(d time.Duration) {
		if len(g.Tasks) == 0 {
			o.add(o.origins[o.subpath("Tasks.KillTimeout")].at, "killTimeout: the group has no tasks to stop", "remove it, or add tasks")
		}
		for _, t := range g.Tasks {
			if t.KillTimeout == nil {
				t.KillTimeout = &d
			}
		}
	})
	describe(o, func(s *jsonschema.Schema) {
		s.Require("name")
		for _, name := range []string{"count", "minCount", "maxParallelEvictions"} {
			s.SetMinimum(name, 0)
		}
	})
	o.done()
}

// plainPorts reads a list of host ports.
func (o *object) plainPorts(to *[]*client.NetworkResource) {
	declare(o, "ports", jsonschema.List(jsonschema.Int32()))
	v := o.one("ports", "Networks[0].ReservedPorts")
	if v == nil {
		return
	}
	if v.kind != kindList {
		o.typeError("ports", "Networks[0].ReservedPorts", v, "a list of ports", "write [8080, 8443]")
		return
	}
	n := &client.NetworkResource{}
	for i, e := range v.list {
		at := fmt.Sprintf("Networks[0].ReservedPorts[%d].Value", i)
		o.origins[o.subpath(at)] = origin{e.at, "ports"}
		port, _ := o.integerOf("ports", at, e)
		n.ReservedPorts = append(n.ReservedPorts, client.Port{Label: fmt.Sprintf("port%d", port), Value: port})
	}
	if len(n.ReservedPorts) > 0 {
		*to = append(*to, n)
	}
}

func plainDevice(o *object) *client.RequestedDevice {
	d := &client.RequestedDevice{}
	o.text("id", "Name", set(&d.Name))
	o.integer("count", "Count", func(n int) { d.Count = deviceCount(o, n) })
	o.each("a constraint", "constraints", "Constraints", func(o *object) {
		d.Constraints = append(d.Constraints, plainConstraint(o))
		describeConstraint(o, false)
	})
	describe(o, func(s *jsonschema.Schema) {
		s.Require("id")
		s.SetMinimum("count", 1)
	})
	o.done()
	return d
}

func plainTask(o *object, t *client.Task) {
	o.text("name", "Name", set(&t.Name))
	o.text("driver", "Driver", set(&t.Driver))
	o.text("user", "User", set(&t.User))
	o.free("config", "Config", set(&t.Config))
	o.textTable("env", "Env", set(&t.Env))
	o.textTable("meta", "Meta", set(&t.Meta))
	o.duration("killTimeout", "KillTimeout", setPtr(&t.KillTimeout))
	o.text("killSignal", "KillSignal", set(&t.KillSignal))
	o.boolean("leader", "Leader", set(&t.Leader))
	plainPlacement.read(o, &t.Constraints, &t.Affinities, nil)
	if r := o.child("a mapping from resources to amounts", "resources", "Resources"); r != nil {
		t.Resources = &client.Resources{}
		r.count("cpu", "CPU", &t.Resources.CPU)
		r.count("memory", "MemoryMB", &t.Resources.MemoryMB)
		r.count("disk", "DiskMB", &t.Resources.DiskMB)
		r.others(nil, func(resource string, n int64) {
			if t.Resources.Other == nil {
				t.Resources.Other = map[string]int64{}
			}
			t.Resources.Other[resource] = n
		})
	}
	describe(o, func(s *jsonschema.Schema) {
		s.Require("name", "driver")
		s.Properties["driver"].Enum = drivers
		setOptions(s, "killSignal", signals)
	})
	o.done()
}
