package scenario

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/suggest"
)

type deviceUse = model.DeviceUse

// checkRunning checks the allocations that run before time 0: their references must
// exist, and they must fit on their nodes together.
func (c *checker) checkRunning() {
	var root *path
	list := root.field("running")
	rooms := newFreeCapacity(c)
	c.runningDevices = make([][]deviceUse, len(c.f.Running))
	for i := range c.f.Running {
		r, p := &c.f.Running[i], list.item(i)
		c.unique(p.field("id"), "running", "id", r.ID, i, c.running)
		switch {
		case r.StartedAt > 0:
			c.add(p.field("startedAt"), fmt.Sprintf("%v is after the start: expected an earlier time, such as -2h", r.StartedAt), "submit the job with an event instead")
		case r.StartedAt < -maxDuration:
			c.add(p.field("startedAt"), fmt.Sprintf("%v is too long ago: expected at most %v (50 years)", r.StartedAt, maxDuration), "check the unit")
		}
		if r.Binding != "" {
			c.checkRunningBinding(p, r)
			continue
		}
		placeable := c.needJob(p.field("job"), r.Job) && c.needGroup(p.field("group"), r.Job, r.Group)
		c.needNode(p.field("node"), r.Node)
		if _, ok := c.node(r.Node); ok && placeable {
			c.runningDevices[i] = rooms.reserve(p, r)
		}
	}
}

// freeCapacity tracks the free capacity of the nodes with running allocations.
type freeCapacity struct {
	c     *checker
	dims  *model.Dimensions // nil if there are too many
	nodes map[string]*nodeFree
	jobs  map[int]*model.Job
}

type nodeFree struct {
	node    *model.Node
	free    model.Vector
	ports   []uint16
	devices []int32
}

func newFreeCapacity(c *checker) *freeCapacity {
	r := &freeCapacity{c: c, nodes: map[string]*nodeFree{}, jobs: map[int]*model.Job{}}
	if len(c.f.Running) == 0 || c.incomplete["dimensions"] {
		return r
	}
	var all []model.Resources
	for i := range c.f.Nodes {
		all = append(all, model.Resources(c.f.Nodes[i].Capacity), model.Resources(c.f.Nodes[i].Reserved))
	}
	for i := range c.f.Jobs {
		for j := range c.f.Jobs[i].Groups {
			all = append(all, model.Resources(c.f.Jobs[i].Groups[j].Resources))
		}
	}
	r.dims, _ = model.NewDimensions().With(all...)
	return r
}

// reserve deducts the request of a running entry from its node and returns the devices
// that satisfy it. Among several possible choices of device groups it picks the first
// in the order of the requests and the ids of the groups. Entries are placed in file
// order, so an earlier entry can use capacity that a later one requires.
func (r *freeCapacity) reserve(p *path, entry *Running) []deviceUse {
	at, _ := r.c.node(entry.Node)
	if r.dims == nil || r.c.invalid[fmt.Sprintf("nodes[%d]", at)] || r.c.invalid[fmt.Sprintf("jobs[%d]", r.c.jobs[entry.Job])] {
		return nil // the request or the node is invalid
	}
	job := r.c.jobs[entry.Job]
	node, group := r.node(entry.Node, at), r.job(job).Groups[r.c.groupsOf(job)[entry.Group]]
	choice, lack, ok := node.fit(&group.Ask)
	if !ok {
		remedy := "run fewer allocations there before the start, or raise its capacity"
		if near := model.SimilarResource(lack.Format(r.dims, &group.Ask)); near != "" && lack.Kind == model.ShortageResource && node.free[lack.At] <= 0 {
			remedy = suggest.Question(near)
		}
		r.c.add(p, r.shortageMessage(node, group, lack, entry), remedy)
		return nil
	}
	return node.reserve(&group.Ask, choice)
}

// shortageMessage describes the resource that the node lacks.
func (r *freeCapacity) shortageMessage(node *nodeFree, group *model.Group, lack model.Shortage, entry *Running) string {
	resource := lack.Format(r.dims, &group.Ask)
	switch lack.Kind {
	case model.ShortageResource:
		return fmt.Sprintf("%s requires %d %s of %s: node %s has %d free", entry.ID, group.Ask.Vec[lack.At], model.UnitOf(group.Ask.Vec[lack.At], resource), resource, entry.Node, max(node.free[lack.At], 0))
	case model.ShortagePort:
		return fmt.Sprintf("%s requires %s, which is in use on node %s", entry.ID, resource, entry.Node)
	}
	return fmt.Sprintf("%s requires %d of %s: no device group on node %s has that many free", entry.ID, group.Ask.Devices[lack.At].Count, resource, entry.Node)
}

func (r *freeCapacity) node(id string, at int) *nodeFree {
	if node, ok := r.nodes[id]; ok {
		return node
	}
	node := r.c.f.Nodes[at].model()
	node.ID = id
	node.Compile(r.dims)
	made := &nodeFree{node: node, free: node.Avail, ports: slices.Clone(node.Ports)}
	for _, d := range node.Devices {
		made.devices = append(made.devices, d.Count)
	}
	r.nodes[id] = made
	return made
}

func (r *freeCapacity) job(at int) *model.Job {
	if job, ok := r.jobs[at]; ok {
		return job
	}
	job := r.c.f.Jobs[at].resolve(&classes{})
	job.Compile(r.dims)
	r.jobs[at] = job
	return job
}

func (r *nodeFree) fit(ask *model.Ask) ([]int16, model.Shortage, bool) {
	view := model.NewFreeCapacity(&r.free, r.ports, r.devices)
	lack := model.Shortage{Kind: model.ShortageDevice}
	for _, choice := range r.node.DeviceChoices(ask) {
		if lack = model.Fits(view, ask, choice); lack.Kind == model.ShortageNone {
			return choice, lack, true
		}
		if lack.Kind != model.ShortageDevice {
			break // other devices cannot resolve this shortage
		}
	}
	return nil, lack, false
}

func (r *nodeFree) reserve(ask *model.Ask, choice []int16) []deviceUse {
	r.free.Sub(&ask.Vec)
	for _, port := range ask.Ports {
		at, _ := slices.BinarySearch(r.ports, port)
		r.ports = slices.Insert(r.ports, at, port)
	}
	var uses []deviceUse
	for i, at := range choice {
		r.devices[at] -= ask.Devices[i].Count
		uses = append(uses, deviceUse{ID: r.node.Devices[at].ID, Count: ask.Devices[i].Count})
	}
	return uses
}

// allocations returns the allocations of the running entries. Each gets the lowest free
// index of its group; allocations of system jobs have index 0.
func (c *checker) allocations(jobs []*model.Job) []*model.Allocation {
	next := map[*model.Group]int{}
	allocs := make([]*model.Allocation, 0, len(c.f.Running))
	for i := range c.f.Running {
		r := &c.f.Running[i]
		if r.Binding != "" {
			continue
		}
		at := c.jobs[r.Job]
		job := jobs[at]
		a := &model.Allocation{
			ID: r.ID, Job: job, Group: job.Groups[c.groupsOf(at)[r.Group]], NodeID: r.Node, Devices: c.runningDevices[i],
			Desired: model.DesiredRun, Client: model.ClientRunning,
			Started: true, StartTime: int64(r.StartedAt), CreateTime: int64(r.StartedAt),
		}
		a.Index = next[a.Group]
		next[a.Group]++
		allocs = append(allocs, a)
	}
	return allocs
}

// target returns the job or the binding with an id; the other is nil.
func (c *checker) target(id string, jobs []*model.Job, bindings []*model.Binding) (*model.Job, *model.Binding) {
	if at, ok := c.bindings[id]; ok {
		return nil, bindings[at]
	}
	return jobs[c.jobs[id]], nil
}

// steps returns the events as steps.
func (c *checker) steps(jobs []*model.Job, bindings []*model.Binding) []Step {
	var steps []Step
	for i := range c.f.Events {
		e := &c.f.Events[i]
		s := Step{At: int64(e.At)}
		switch {
		case e.Submit != "":
			s.Do = Submit
			s.Job, s.Binding = c.target(e.Submit, jobs, bindings)
		case e.Stop != "":
			s.Do = Stop
			s.Job, s.Binding = c.target(e.Stop, jobs, bindings)
		case e.NodeDown != "":
			s.Do, s.Node = NodeDown, e.NodeDown
		case e.NodeUp != "":
			s.Do, s.Node = NodeUp, e.NodeUp
		default:
			s.Do, s.Node = Drain, e.Drain
		}
		steps = append(steps, s)
	}
	return steps
}
