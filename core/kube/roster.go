package kube

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// Roster is a cluster that stays while nodes come and go, and pods on them, so that
// who asks often about a large one need not translate all of it each time. What it says
// of a pod is what translating everything anew would say.
//
// Nodes, jobs and groups that it has given out it never changes: another version
// of a job comes in the place of the first. Where something comes that the nodes or
// groups would have to be told otherwise for, it says so, and another roster must
// be made.
//
// A Roster serves one goroutine at a time.
type Roster struct {
	*Cluster
	force   *workforce
	running map[*Job]map[string]int // by group
	ids     map[string]bool         // of jobs
	crew    crew
}

// NewRoster makes the roster of a cluster, in which the wishes of pods that are
// expected can be told.
func NewRoster(d *Dump, expected []*Pod) *Roster {
	r := &Roster{running: map[*Job]map[string]int{}, ids: map[string]bool{}}
	t := NewTranslator(nil, &Notes{})
	t.lasting = true
	r.Cluster, r.force = translate(d, t, expected)
	r.enlist(d)
	for _, j := range r.Jobs {
		r.ids[j.ID] = true
	}
	for _, i := range r.Instances {
		r.count(i.Job, i.Group.Name, 1)
	}
	r.settled = true
	return r
}

func (r *Roster) count(j *Job, group string, by int) {
	if r.running[j] == nil {
		r.running[j] = map[string]int{}
	}
	r.running[j][group] += by
}

// Asked is what a pod would be here.
type Asked struct {
	Job   *model.Job // another version, with one instance more in the group; not compiled
	Group string
	Notes *Notes // of the pod alone

	job   *Job
	shape jobShape
	group *model.Group // as the pod's own, compiled nowhere
	known bool         // the job has the group already
	form  string       // of the group
}

// Ask says what a pod is that has no node yet; false where this roster cannot tell.
func (r *Roster) Ask(p *Pod) (*Asked, bool) { return r.ask(p, false) }

func (r *Roster) ask(p *Pod, own bool) (*Asked, bool) {
	a := &Asked{Notes: &Notes{}}
	r.new, r.Notes = false, a.Notes
	p.TellsSiblingsBy(func(key string) { r.new = r.new || !r.keeps[key] })
	a.group = r.Group(p, own)
	if r.new {
		return nil, false
	}
	owner := ownerOf(p)
	var class string
	a.shape, class = r.force.jobShape(p, &owner)
	a.form = owner.group + " " + shapeOf(a.group)
	a.job = r.force.jobs[a.shape]
	if a.job == nil {
		a.job = newJob(p, &a.shape, class)
		a.job.ID = r.freeID(&a.shape)
	}
	r.version(a, owner.group)
	return a, true
}

// version makes the job with one more instance.
func (r *Roster) version(a *Asked, name string) {
	job := *a.job.Job
	job.Groups = slices.Clone(job.Groups)
	a.Job = &job
	if g := a.job.groups[a.form]; g != nil {
		a.Group, a.known = g.Name, true
		i := slices.IndexFunc(job.Groups, func(o *model.Group) bool { return o.Name == g.Name })
		one := *job.Groups[i]
		if one.Count = 1; !job.Type.PerNode() {
			one.Count += r.running[a.job][g.Name]
		}
		job.Groups[i] = &one
		return
	}
	a.group.Name, a.group.Count = a.job.freeName(name), 1
	a.group.Labels = r.Label(job.Namespace, a.group.Labels)
	a.Group = a.group.Name
	job.Groups = append(job.Groups, a.group)
}

// freeID is the id of a job that comes later: the same for each pod of its shape.
func (r *Roster) freeID(s *jobShape) string {
	id := fmt.Sprintf("%s.%s.%d.%t.%t", s.owner, s.kind, s.priority, s.never, s.leaving)
	for r.ids[id] {
		id += "."
	}
	return id
}

// Join takes in a pod that has come to its node. Where changed is true the job must
// be stored before the instance. It is false where this roster cannot tell the pod.
// The node may have to be retold.
func (r *Roster) Join(p *Pod) (i *Instance, changed, ok bool) {
	node := r.force.nodes[p.Spec.NodeName]
	if node == nil || p.finished() {
		return nil, false, true
	}
	owner := ownerOf(p)
	a, ok := r.ask(p, owner.kind == kindDaemonSet)
	if !ok || r.clashes(node, a.group) {
		return nil, false, false
	}
	r.force.fit(p, a.group)
	if !a.known {
		a.job.Job, a.job.groups[a.form] = a.Job, a.group
		r.force.jobs[a.shape], r.ids[a.job.ID] = a.job, true
	}
	r.count(a.job, a.Group, 1)
	return &Instance{Pod: p, Job: a.job, Group: a.job.Group(a.Group), Node: node.ID}, !a.known, true
}

// KeptFor is whether the labels by which this roster tells the pods of one workload from
// each other are those that somebody reads. With fewer, or more, of them pods would be
// of other groups.
func (r *Roster) KeptFor(read func(label string) bool) bool {
	return !slices.ContainsFunc(perInstance, func(label string) bool { return r.keeps[label] != read(label) })
}

// clashes is whether somebody on a node has one of the ports already.
func (r *Roster) clashes(n *model.Node, g *model.Group) bool {
	u := r.force.used[n.ID]
	return u != nil && slices.ContainsFunc(g.Ports, func(port uint16) bool { return u.ports[port] })
}

// Leave lets go of an instance, whose node may have to be retold. It is false where
// another one may have ports then that it was told without.
func (r *Roster) Leave(i *Instance) bool {
	u := r.force.used[i.Node]
	if u == nil || r.force.clashed[i.Node] {
		return false
	}
	for name, amount := range i.Group.Resources {
		u.sum[name] -= amount
	}
	maps.DeleteFunc(u.ports, func(port uint16, _ bool) bool { return slices.Contains(i.Group.Ports, port) })
	r.count(i.Job, i.Group.Name, -1)
	return true
}
