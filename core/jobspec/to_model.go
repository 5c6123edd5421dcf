package jobspec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/model/fieldcheck"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Defaults of unset fields, equal to Nomad's.
const (
	// DefaultCPU, in millicores, and DefaultMemoryMB, in MiB, are the resources of a
	// task that requests none.
	DefaultCPU      = 100
	DefaultMemoryMB = 300
	// DefaultKillTimeout is the time between the kill signal and SIGKILL.
	DefaultKillTimeout = 5 * time.Second
	// defaultWeight is the default weight of an affinity or a spread.
	defaultWeight = 50
	// defaultSignal is the default kill signal of a task.
	defaultSignal = "SIGTERM"
)

// ToModel converts a job of the API: it applies defaults and validates every field. A
// priority is not among the defaults, because it depends on the priority classes of the
// server: without one, Priority is 0. A priority class is stored by name and not resolved,
// and NeverPreempts is that of the job itself. ToModel returns Problems, with paths of the
// API's JSON, if the job is invalid.
func ToModel(j *client.Job) (*model.Job, error) {
	c := &conversion{}
	if j == nil {
		c.add("", "job is missing", `send {"Job": {...}}`)
		return nil, c.problems.err()
	}
	m := c.job(j)
	if err := c.problems.err(); err != nil {
		return nil, err
	}
	return m, nil
}

// A conversion collects the problems of a job while it is converted.
type conversion struct {
	problems Problems
	ports    map[string]uint16 // of the current group, by label
}

// report adds the problem of a field, if there is one.
func (c *conversion) report(path string, p fieldcheck.Problem) {
	if p.Found() {
		c.add(path, p.Text, p.Remedy)
	}
}

// addBySyntax adds a problem whose remedy depends on the syntax of the file.
func addBySyntax(c *conversion, path, message string, remedy bySyntax) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, Problem{Path: path, Message: message, Remedy: remedy.api, inSyntax: remedy})
	}
}

func (c *conversion) add(path, message, remedy string) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, Problem{Path: path, Message: message, Remedy: remedy})
	}
}

func (c *conversion) job(j *client.Job) *model.Job {
	c.checkJob(j)
	m := &model.Job{
		Namespace: cmp.Or(j.Namespace, model.DefaultNamespace), ID: j.ID, Name: j.Name, Meta: clone(j.Meta),
		PriorityClass:  j.PriorityClass,
		NeverPreempts:  j.PreemptionPolicy == "Never",
		NonPreemptible: j.Preemptible != nil && !*j.Preemptible,
		Toleration:     toleration(j.Toleration),
		AllOrNone:      j.DisruptionMode == disruptAll,
		AllAtOnce:      j.AllAtOnce, Policy: j.Policy, Stopped: j.Stop,
		Version: j.Version, SubmitTime: j.SubmitTime, CreateIndex: j.CreateIndex, ModifyIndex: j.ModifyIndex,
	}
	if m.Name == m.ID {
		m.Name = ""
	}
	m.Type, _ = model.ParseJobType(cmp.Or(j.Type, "service")) // validated by checkJob
	if j.Priority != nil {
		m.Priority = int32(*j.Priority) // validated by checkJob
	}
	if !slices.Contains(j.Datacenters, "*") {
		m.Datacenters = slices.Clone(j.Datacenters)
	}
	for i, g := range j.TaskGroups {
		if len(c.problems) == maxProblems {
			break
		}
		path := fmt.Sprintf("TaskGroups[%d]", i)
		if g == nil {
			c.add(path, "group is null", "remove it")
			continue
		}
		m.Groups = append(m.Groups, c.group(path, j, m, g))
	}
	return m
}

func clone[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	return maps.Clone(m)
}

func (c *conversion) group(path string, j *client.Job, job *model.Job, g *client.TaskGroup) *model.Group {
	c.checkGroup(path, job, g)
	c.ports = nil
	m := &model.Group{
		Name: g.Name, Count: 1, MinCount: g.MinCount, Labels: clone(g.Labels), Meta: clone(g.Meta), MaxParallelEvictions: 1,
		Duration: int64(g.Duration), Checkpoint: int64(g.Checkpoint), Annotations: clone(g.Annotations),
	}
	if g.Count != nil {
		m.Count = *g.Count
	}
	c.report(path+".MinCount", fieldcheck.MinCount(m.MinCount, m.Count))
	m.Disconnect = c.disconnect(path+".Disconnect", g.Disconnect)
	if g.Migrate != nil && g.Migrate.MaxParallel != nil {
		m.MaxParallelEvictions = *g.Migrate.MaxParallel
	}
	needs := c.groupRequest(path, g)
	c.networks(path+".Networks", m, needs, g.Networks)
	c.devices(path+".Devices", m, g.Devices)
	for at, t := range elements(c, path+".Tasks", "task", g.Tasks) {
		c.task(at, m, needs, g, t)
	}
	namePorts(m, c.ports)
	c.placement(path, m, j, g)
	m.Resources = c.checkTotal(path, needs)
	return m
}

// groupRequest returns the resources that a group requests in addition to its tasks.
func (c *conversion) groupRequest(path string, g *client.TaskGroup) map[string]int64 {
	needs := map[string]int64{}
	for _, resource := range slices.Sorted(maps.Keys(g.Resources)) {
		c.addRequest(keyPath(path+".Resources", resource), needs, resource, g.Resources[resource])
	}
	if d := g.EphemeralDisk; d != nil && d.SizeMB != nil {
		c.addRequest(path+".EphemeralDisk.SizeMB", needs, "disk", int64(*d.SizeMB))
	}
	return needs
}

// addRequest adds an amount to a request if it is within bounds.
func (c *conversion) addRequest(path string, to map[string]int64, resource string, n int64) {
	if c.checkAmount(path, resource, n) && n > 0 {
		to[resource] += n
	}
}

// checkTotal validates the sums of amounts. Each amount is within bounds and at most
// a few thousand are added, so the sums cannot overflow.
func (c *conversion) checkTotal(path string, needs map[string]int64) model.Resources {
	for _, resource := range slices.Sorted(maps.Keys(needs)) {
		if needs[resource] > model.MaxAmount {
			c.add(path, fmt.Sprintf("the group requests %d %s of %s in total: must be at most %d", needs[resource], model.Unit(resource), resource, int64(model.MaxAmount)), "check the numbers and their units")
		}
	}
	if len(needs) == 0 {
		return nil
	}
	return needs
}

// networks adds the ports and the bandwidth of networks to a request.
func (c *conversion) networks(path string, m *model.Group, needs map[string]int64, networks []*client.NetworkResource) {
	for at, n := range elements(c, path, "network", networks) {
		if n.Mode != "" && n.Mode != "host" {
			c.add(at+".Mode", fmt.Sprintf("network mode %.40q is not supported", n.Mode), "use host, or leave it out")
		}
		if n.MBits != nil {
			c.addRequest(at+".MBits", needs, "network", int64(*n.MBits))
		}
		if len(n.DynamicPorts) > 0 {
			c.add(at+".DynamicPorts", "dynamic ports are not supported", "request fixed ports: ReservedPorts, or static in HCL")
		}
		for k, p := range n.ReservedPorts {
			c.port(fmt.Sprintf("%s.ReservedPorts[%d]", at, k), m, p)
		}
	}
}

func (c *conversion) port(path string, m *model.Group, p client.Port) {
	value := path + ".Value"
	invalid := fieldcheck.Port(p.Value, slices.Contains(m.Ports, uint16(p.Value)))
	switch {
	case invalid.Found():
		c.report(value, invalid)
		return
	case len(m.Ports) == maxPorts:
		c.add(value, fmt.Sprintf("more than %d ports", maxPorts), "request fewer")
		return
	}
	m.Ports = append(m.Ports, uint16(p.Value))
	if p.Label == "" || p.Label == fmt.Sprintf("port%d", p.Value) {
		return
	}
	if len(p.Label) > maxName || !isPortName(p.Label) {
		c.add(path+".Label", fmt.Sprintf("invalid port name %.60q: expected letters, digits and _", p.Label), "tasks receive the port as CEDE_PORT_NAME")
		return
	}
	if c.ports == nil {
		c.ports = map[string]uint16{}
	}
	if first, twice := c.ports[p.Label]; twice {
		c.add(path+".Label", fmt.Sprintf("duplicate port name %.60q: already used by port %d", p.Label, first), "give each port a unique name")
	}
	c.ports[p.Label] = uint16(p.Value)
}

func (c *conversion) devices(path string, m *model.Group, devices []*client.RequestedDevice) {
	for at, d := range elements(c, path, "device request", devices) {
		c.checkDevice(at, d)
		request := model.DeviceRequest{ID: d.Name, Count: 1, Constraints: c.constraints(at+".Constraints", d.Constraints, false)}
		if d.Count != nil && *d.Count <= fieldcheck.MaxDevices {
			request.Count = int32(*d.Count)
		}
		if m.Devices = append(m.Devices, request); len(m.Devices) == fieldcheck.MaxRequests+1 {
			c.report(at, fieldcheck.DeviceRequests(len(devices)))
		}
	}
}

func (c *conversion) task(path string, m *model.Group, needs map[string]int64, g *client.TaskGroup, t *client.Task) {
	c.checkTask(path, t)
	task := &model.Task{
		Name: t.Name, Driver: t.Driver, User: t.User, Env: clone(t.Env), Leader: t.Leader,
		KillSignal: cmp.Or(t.KillSignal, defaultSignal), KillTimeout: int64(DefaultKillTimeout), Config: c.taskConfig(path+".Config", t),
	}
	if t.KillTimeout != nil {
		task.KillTimeout = int64(*t.KillTimeout)
	}
	task.Resources = c.taskRequest(path+".Resources", m, needs, g, t)
	m.KillTimeout = max(m.KillTimeout, task.KillTimeout)
	m.Tasks = append(m.Tasks, task)
}

// taskConfig returns the driver configuration of a task as JSON.
func (c *conversion) taskConfig(path string, t *client.Task) []byte {
	if len(t.Config) == 0 {
		return nil
	}
	text, err := json.Marshal(t.Config)
	switch {
	case err != nil:
		c.add(path, fmt.Sprintf("not representable as JSON: %v", err), "use strings, numbers, booleans, lists and mappings")
	case len(text) > maxConfig:
		c.add(path, fmt.Sprintf("%d bytes of configuration: expected at most %d", len(text), maxConfig), "move it to a file on the node")
	}
	return text
}

// taskRequest returns the resources of a task and adds them to those of its group. A
// task without resources gets the default, unless the group requests resources
// itself: these are then the total of an instance, and a single task may use all of
// them.
func (c *conversion) taskRequest(path string, m *model.Group, needs map[string]int64, g *client.TaskGroup, t *client.Task) model.Resources {
	if t.Resources == nil && len(g.Resources) > 0 {
		if len(g.Tasks) == 1 && len(needs) > 0 {
			return maps.Clone(needs)
		}
		return nil
	}
	share := map[string]int64{}
	r := t.Resources
	if r == nil {
		r = &client.Resources{}
	}
	given := func(name, resource string, n *int, preset int64) {
		if n != nil {
			preset = int64(*n)
		}
		c.addRequest(path+"."+name, share, resource, preset)
	}
	given("CPU", "cpu", r.CPU, DefaultCPU)
	given("MemoryMB", "memory", r.MemoryMB, DefaultMemoryMB)
	given("DiskMB", "disk", r.DiskMB, 0)
	for _, resource := range slices.Sorted(maps.Keys(r.Other)) {
		at := keyPath(path+".Other", resource)
		if _, own := share[resource]; own || resource == "cpu" || resource == "memory" || resource == "disk" {
			c.add(at, fmt.Sprintf("%.40s has its own field", resource), "use CPU, MemoryMB or DiskMB")
			continue
		}
		c.addRequest(at, share, resource, r.Other[resource])
	}
	c.networks(path+".Networks", m, share, r.Networks)
	c.devices(path+".Devices", m, r.Devices)
	for resource, n := range share {
		needs[resource] += n
	}
	if len(share) == 0 {
		return nil
	}
	return share
}
