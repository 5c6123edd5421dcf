package jobspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model/jsonschema"
	"github.com/cede-scheduler/cede/sdk/client"
)

// hclFile reads a file in Nomad's dialect, which contains one job block.
func (r *parser) hclFile(v *value) *client.Job {
	file := r.object("a job file", "", v)
	file.unsupported(map[string]string{
		"locals":    "write it as a block: locals { name = value }",
		"variables": `declare each by itself: variable "name" { default = ... }`,
	})
	jobs := file.fields("job")
	file.known["variable"] = true
	file.done()
	if len(jobs) == 0 {
		if len(r.problems) == 0 {
			r.add(position{1, 1}, "the file has no job block", `write job "name" { ... }; `+"`cede job init` writes an example")
		}
		return nil
	}
	for _, again := range jobs[1:] {
		r.add(again.at, "unexpected second job: a file holds one job", "move it to its own file")
	}
	if jobs[0].value.kind != kindObject {
		r.add(jobs[0].at, "expected a job block, found "+jobs[0].value.describe(), `write job "name" { ... }`)
		return nil
	}
	r.origins[""] = origin{at: jobs[0].value.at}
	j := &client.Job{}
	nomadJob(r.object("job", "", jobs[0].value), j)
	return j
}

// Remedies for Nomad features that cede does not support.
const (
	noRollout   = "remove it: cede replaces changed instances at once"
	noContainer = "remove it: agents run the drivers exec and sim"
	noElsewhere = "remove it: cede schedules and runs tasks and leaves the rest to other tools"
)

var nomadJobUnsupported = map[string]string{
	"update": noRollout, "reschedule": "remove it: lost and failed instances are always rescheduled", "migrate": "set it on the group",
	"periodic": "submit the job from a timer of your own", "parameterized": "submit a job for each run", "multiregion": "submit the job to each region",
	"vault": noElsewhere, "consul": noElsewhere, "consul_token": noElsewhere, "vault_token": noElsewhere, "ui": noElsewhere,
	"id": "the name of the job block is its id", "task": "move it into a group",
}

var nomadGroupUnsupported = map[string]string{
	"update": noRollout, "reschedule": "remove it: lost and failed instances are always rescheduled", "restart": "remove it: failed instances are always rescheduled",
	"service": noElsewhere, "scaling": noElsewhere, "vault": noElsewhere, "consul": noElsewhere, "volume": noContainer,
	"shutdown_delay": noRollout, "stop_after_client_disconnect": "remove it: instances on a disconnected node keep running; disconnect { lost_after } sets when they are replaced",
	"prevent_reschedule_on_lost": "use disconnect { replace = false }: instances on a disconnected node are then kept until it reconnects",
}

var nomadTaskUnsupported = map[string]string{
	"artifact": noContainer, "template": noContainer, "volume_mount": noContainer, "csi_plugin": noContainer, "dispatch_payload": noContainer,
	"service": noElsewhere, "scaling": noElsewhere, "vault": noElsewhere, "consul": noElsewhere, "identity": noElsewhere, "secret": noElsewhere, "action": noElsewhere,
	"logs": "remove it: log limits are set in the agent configuration", "lifecycle": "tasks of a group start together; leader = true stops them together",
	"restart": "remove it: failed instances are always rescheduled", "kind": noElsewhere, "shutdown_delay": noRollout, "schedule": noElsewhere,
}

func nomadJob(o *object, j *client.Job) {
	o.label("job", "ID", set(&j.ID))
	o.text("name", "Name", set(&j.Name))
	o.text("namespace", "Namespace", set(&j.Namespace))
	o.text("region", "Region", set(&j.Region))
	o.text("type", "Type", set(&j.Type))
	o.integer("priority", "Priority", setPtr(&j.Priority))
	o.boolean("all_at_once", "AllAtOnce", set(&j.AllAtOnce))
	o.texts("datacenters", "Datacenters", set(&j.Datacenters))
	o.text("node_pool", "NodePool", func(pool string) {
		o.nodePool = pool
		if pool != "default" && pool != "all" && !o.schedulingOnly {
			o.reject("NodePool", o.origins["NodePool"].at, fmt.Sprintf("node_pool: unknown node pool %.40q: only \"default\" exists", pool), "leave it out; select nodes with a constraint on ${node.class}")
		}
	})
	nomadPlacement.read(o, &j.Constraints, &j.Affinities, &j.Spreads)
	o.textTable("meta", "Meta", set(&j.Meta))
	o.text("priority_class", "PriorityClass", set(&j.PriorityClass))
	o.text("preemption_policy", "PreemptionPolicy", set(&j.PreemptionPolicy))
	o.boolean("preemptible", "Preemptible", setPtr(&j.Preemptible))
	o.preemptionToleration(&j.Toleration, "min_preemptor_priority", "min_runtime")
	o.text("disruption_mode", "DisruptionMode", set(&j.DisruptionMode))
	o.text("policy", "Policy", set(&j.Policy))
	o.each("a group", "group", "TaskGroups", func(o *object) {
		g := &client.TaskGroup{}
		nomadGroup(o, g)
		j.TaskGroups = append(j.TaskGroups, g)
	})
	o.unsupported(nomadJobUnsupported)
	o.done()
	o.exclusive(j)
}

// exclusive rejects a job that has both a priority and a priority class: in a file,
// one of them is a mistake. The API's JSON may hold both, since the server returns
// both.
func (o *object) exclusive(j *client.Job) {
	if j.Priority != nil && j.PriorityClass != "" {
		w := o.origins["PriorityClass"]
		o.reject("PriorityClass", w.at, w.name+" and priority are mutually exclusive", "remove one of the two")
	}
}

// nomadTargets reads the target blocks of a spread.
func nomadTargets(o *object, s *client.Spread) {
	o.each("a target", "target", "SpreadTarget", func(o *object) {
		t := &client.SpreadTarget{}
		if len(o.value.labels) > 0 {
			o.label("target", "Value", set(&t.Value))
		} else {
			o.text("value", "Value", set(&t.Value))
		}
		o.integer("percent", "Percent", set(&t.Percent))
		o.done()
		s.SpreadTarget = append(s.SpreadTarget, t)
	})
}

// nomadConstraint reads a constraint, including Nomad's short forms such as version =
// ">= 1.2" in place of operator and value. It reads all fields of the block, so it
// also rejects unknown ones.
func nomadConstraint(o *object) *client.Constraint {
	c := &client.Constraint{}
	o.text("attribute", "LTarget", set(&c.LTarget))
	o.text("operator", "Operand", set(&c.Operand))
	o.operand("value", c)
	for _, short := range []string{"version", "regexp"} {
		o.text(short, "RTarget", func(text string) { c.Operand, c.RTarget = short, text })
	}
	o.text("distinct_property", "LTarget", func(text string) { c.Operand, c.LTarget = "distinct_property", text })
	o.boolean("distinct_hosts", "Operand", func(on bool) {
		c.Operand = "distinct_hosts"
		if !on {
			o.reject(o.subpath("Operand"), o.origins[o.subpath("Operand")].at, "distinct_hosts = false has no effect", "remove the constraint")
		}
	})
	o.unsupported(map[string]string{
		"semver": "use version", "set_contains": "use regexp, or an attribute for each value",
		"set_contains_all": "use regexp, or an attribute for each value", "set_contains_any": "use regexp, or an attribute for each value",
	})
	o.done()
	if c.Operand == "" && c.LTarget != "" {
		c.Operand = "=" // Nomad's default
	}
	return c
}

// operand reads the value that a constraint compares with: one scalar, or a list of
// scalars.
func (o *object) operand(name string, c *client.Constraint) {
	declare(o, name, jsonschema.AnyOf(jsonschema.Scalar(), jsonschema.List(jsonschema.Scalar())))
	v := o.one(name, "RTarget")
	switch {
	case v == nil:
	case v.kind == kindText || v.kind == kindNumber || v.kind == kindBool:
		c.RTarget = v.text
	case v.kind == kindList:
		values := make([]string, len(v.list))
		for i, e := range v.list {
			if !e.invalid && e.kind != kindText && e.kind != kindNumber && e.kind != kindBool {
				o.typeError(name, "RTarget", e, "a string", "write one value in quotes")
			}
			values[i] = e.text
		}
		c.RTarget = joinValues(values)
	default:
		o.typeError(name, "RTarget", v, "a string or a list of strings", "write one value in quotes, or several in [ ]")
	}
}

func nomadGroup(o *object, g *client.TaskGroup) {
	o.label("group", "Name", set(&g.Name))
	o.integer("count", "Count", setPtr(&g.Count))
	o.integer("min_count", "MinCount", set(&g.MinCount))
	nomadPlacement.read(o, &g.Constraints, &g.Affinities, &g.Spreads)
	o.textTable("meta", "Meta", set(&g.Meta))
	o.textTable("labels", "Labels", set(&g.Labels))
	o.each("a network", "network", "Networks", func(o *object) { g.Networks = append(g.Networks, nomadNetwork(o)) })
	if m := o.child("a migrate block", "migrate", "Migrate"); m != nil {
		g.Migrate = &client.MigrateStrategy{}
		m.integer("max_parallel", "MaxParallel", setPtr(&g.Migrate.MaxParallel))
		m.unsupported(map[string]string{"health_check": noRollout, "min_healthy_time": noRollout, "healthy_deadline": noRollout})
		m.done()
	}
	if d := o.child("an ephemeral_disk block", "ephemeral_disk", "EphemeralDisk"); d != nil {
		g.EphemeralDisk = &client.EphemeralDisk{}
		d.integer("size", "SizeMB", setPtr(&g.EphemeralDisk.SizeMB))
		d.unsupported(map[string]string{"sticky": "remove it: a replacement starts with an empty disk", "migrate": "remove it: a replacement starts with an empty disk"})
		d.done()
	}
	g.Colocate, g.Separate = o.terms("a colocate block", "colocate", "Colocate", "topology_key"), o.terms("a separate block", "separate", "Separate", "topology_key")
	g.Tolerations = o.tolerations("toleration")
	o.nomadDisconnect(&g.Disconnect)
	o.duration("duration", "Duration", set(&g.Duration))
	o.duration("checkpoint", "Checkpoint", set(&g.Checkpoint))
	o.numberTable("annotations", "Annotations", set(&g.Annotations))
	if r := o.child("a resources block", "resources", "Resources"); r != nil {
		g.Resources = map[string]int64{}
		r.others(nil, func(resource string, n int64) { g.Resources[resource] = n })
	}
	o.each("a device", "device", "Devices", func(o *object) { g.Devices = append(g.Devices, nomadDevice(o)) })
	o.each("a task", "task", "Tasks", func(o *object) {
		t := &client.Task{}
		if o.schedulingOnly && o.ignoreTask() {
			return
		}
		nomadTask(o, t)
		g.Tasks = append(g.Tasks, t)
	})
	o.unsupported(nomadGroupUnsupported)
	o.done()
}

func nomadNetwork(o *object) *client.NetworkResource {
	n := &client.NetworkResource{}
	o.text("mode", "Mode", func(mode string) {
		if n.Mode = mode; mode != "host" && !o.schedulingOnly {
			w := o.origins[o.subpath("Mode")]
			o.reject(o.subpath("Mode"), w.at, fmt.Sprintf("mode: network mode %.40q is not supported", mode), "use host, or leave it out")
		}
	})
	o.integer("mbits", "MBits", setPtr(&n.MBits))
	i := 0
	for _, f := range o.fields("port") {
		at := fmt.Sprintf("ReservedPorts[%d]", i)
		i++
		if f.value.kind != kindObject {
			o.typeError("port", at, f.value, "a port block", `write port "http" { static = 8080 }`)
			continue
		}
		p := o.object("a port", o.subpath(at), f.value)
		port := client.Port{}
		p.label("port", "Label", set(&port.Label))
		p.origins[p.path] = origin{f.value.at, "port"}
		p.integer("static", "Value", set(&port.Value))
		p.integer("to", "To", set(&port.To))
		p.text("host_network", "HostNetwork", set(&port.HostNetwork))
		p.unsupported(map[string]string{"ignore_collision": "remove it: two instances cannot share a host port"})
		p.done()
		if !p.known["static"] || port.Value == 0 && !p.rejected[p.subpath("Value")] {
			if !slices.ContainsFunc(f.value.fields, func(f *field) bool { return f.name == "static" }) {
				if !o.ignore("port without static") {
					o.reject(o.subpath(at), f.value.at, "port has no static value: dynamic ports are not supported", "add static = PORT")
				}
				continue
			}
		}
		n.ReservedPorts = append(n.ReservedPorts, port)
	}
	o.unsupported(map[string]string{"dns": noContainer, "hostname": noContainer, "cni": noContainer})
	o.done()
	return n
}

func nomadDevice(o *object) *client.RequestedDevice {
	d := &client.RequestedDevice{}
	o.label("device", "Name", set(&d.Name))
	o.integer("count", "Count", func(n int) { d.Count = deviceCount(o, n) })
	o.each("a constraint", "constraint", "Constraints", func(o *object) {
		d.Constraints = append(d.Constraints, nomadConstraint(o))
	})
	o.unsupported(map[string]string{"affinity": "use a constraint: devices are not ranked"})
	o.done()
	return d
}

// deviceCount rejects negative counts, which the API's unsigned type cannot represent.
func deviceCount(o *object, n int) *uint64 {
	if n < 0 {
		o.reject(o.subpath("Count"), o.origins[o.subpath("Count")].at, fmt.Sprintf("count: %d devices: expected 1 or more", n), "remove the sign")
		return nil
	}
	count := uint64(n)
	return &count
}

func nomadTask(o *object, t *client.Task) {
	o.label("task", "Name", set(&t.Name))
	o.text("driver", "Driver", set(&t.Driver))
	o.text("user", "User", set(&t.User))
	o.free("config", "Config", set(&t.Config))
	o.textTable("env", "Env", set(&t.Env))
	o.textTable("meta", "Meta", set(&t.Meta))
	nomadPlacement.read(o, &t.Constraints, &t.Affinities, nil)
	o.duration("kill_timeout", "KillTimeout", setPtr(&t.KillTimeout))
	o.text("kill_signal", "KillSignal", set(&t.KillSignal))
	o.boolean("leader", "Leader", set(&t.Leader))
	if r := o.child("a resources block", "resources", "Resources"); r != nil {
		t.Resources = &client.Resources{}
		nomadResources(r, t.Resources)
	}
	o.unsupported(nomadTaskUnsupported)
	o.done()
}

func nomadResources(o *object, r *client.Resources) {
	o.count("cpu", "CPU", &r.CPU)
	o.count("memory", "MemoryMB", &r.MemoryMB)
	o.count("disk", "DiskMB", &r.DiskMB)
	o.each("a network", "network", "Networks", func(o *object) { r.Networks = append(r.Networks, nomadNetwork(o)) })
	o.each("a device", "device", "Devices", func(o *object) { r.Devices = append(r.Devices, nomadDevice(o)) })
	o.others(map[string]string{
		"cores": "use cpu: whole cores cannot be reserved", "memory_max": "remove it: memory is the limit of the task",
		"numa": "remove it", "secrets": "remove it", "iops": "remove it", "custom": "name the resource itself: licences = 2",
	}, func(resource string, n int64) {
		if r.Other == nil {
			r.Other = map[string]int64{}
		}
		r.Other[resource] = n
	})
}

// count reads an amount that the API represents as an int.
func (o *object) count(resource, path string, to **int) {
	o.amount(resource, resource, path, func(n int64) { m := int(n); *to = &m })
}

// others reads every remaining field as an amount of the resource with its name.
// Fields listed in unsupported have another meaning in Nomad and are rejected.
func (o *object) others(unsupported map[string]string, to func(resource string, n int64)) {
	if o.schema != nil {
		o.schema.Additional = jsonschema.Quantity()
	}
	inner := "Other"
	if strings.HasSuffix(o.path, "]") || !strings.Contains(o.path, "Tasks[") {
		inner = ""
	}
	for _, f := range o.value.fields {
		if _, no := unsupported[f.name]; no || o.known[f.name] || f.block {
			continue
		}
		o.amount(f.name, f.name, strings.TrimPrefix(keyPath(inner, f.name), "."), func(n int64) { to(f.name, n) })
	}
	o.unsupported(unsupported)
	o.done()
}
