package kube

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// IncrementalCluster is a cluster that stays while nodes come and go, and pods on them, so that
// who asks often about a large one need not translate all of it each time. What it says
// of a pod is what translating everything anew would say.
//
// Nodes, jobs and groups that it has given out it never changes: another version
// of a job comes in the place of the first. Where something comes that the nodes or
// groups would have to be told otherwise for, it says so, and another roster must
// be made.
//
// A Roster serves one goroutine at a time.
type IncrementalCluster struct {
	*Cluster
	pods    *podTranslator
	running map[*Job]map[string]int // by group
	ids     map[string]bool         // of jobs
	index   nodeIndex
}

// NewIncrementalCluster makes the roster of a cluster, in which the wishes of pods that are
// expected can be told.
func NewIncrementalCluster(d *Dump, expected []*Pod) *IncrementalCluster {
	r := &IncrementalCluster{running: map[*Job]map[string]int{}, ids: map[string]bool{}}
	t := NewTranslator(nil, &Report{})
	t.keepsAllTolerations = true
	r.Cluster, r.pods = translate(d, t, expected)
	r.indexNodes(d)
	for _, j := range r.Jobs {
		r.ids[j.ID] = true
	}
	for _, i := range r.Instances {
		r.countRunning(i.Job, i.Group.Name, 1)
	}
	r.frozen = true
	return r
}

func (r *IncrementalCluster) countRunning(j *Job, group string, by int) {
	if r.running[j] == nil {
		r.running[j] = map[string]int{}
	}
	r.running[j][group] += by
}

// PodTranslation is what a pod would be here.
type PodTranslation struct {
	Job   *model.Job // another version, with one instance more in the group; not compiled
	Group string
	Notes *Report // of the pod alone

	job         *Job
	key         jobKey
	group       *model.Group // as the pod's own, compiled nowhere
	groupExists bool         // the job has the group already
	groupKey    string       // of the group
}

// TranslatePod says what a pod is that has no node yet; false where this roster cannot tell.
func (r *IncrementalCluster) TranslatePod(p *Pod) (*PodTranslation, bool) {
	return r.translatePod(p, false)
}

func (r *IncrementalCluster) translatePod(p *Pod, own bool) (*PodTranslation, bool) {
	a := &PodTranslation{Notes: &Report{}}
	r.needsRebuild, r.Report = false, a.Notes
	p.EachPerInstanceLabel(func(key string) { r.needsRebuild = r.needsRebuild || !r.readLabels[key] })
	a.group = r.Group(p, own)
	if r.needsRebuild {
		return nil, false
	}
	owner := ownerOf(p)
	var class string
	a.key, class = r.pods.jobKeyOf(p, &owner)
	a.groupKey = owner.group + " " + groupKeyOf(a.group)
	a.job = r.pods.jobs[a.key]
	if a.job == nil {
		a.job = newJob(p, &a.key, class)
		a.job.ID = r.unusedJobID(&a.key)
	}
	r.addToJob(a, owner.group)
	return a, true
}

// addToJob makes the job with one more instance.
func (r *IncrementalCluster) addToJob(a *PodTranslation, name string) {
	job := *a.job.Job
	job.Groups = slices.Clone(job.Groups)
	a.Job = &job
	if g := a.job.groups[a.groupKey]; g != nil {
		a.Group, a.groupExists = g.Name, true
		i := slices.IndexFunc(job.Groups, func(o *model.Group) bool { return o.Name == g.Name })
		one := *job.Groups[i]
		if one.Count = 1; !job.Type.PerNode() {
			one.Count += r.running[a.job][g.Name]
		}
		job.Groups[i] = &one
		return
	}
	a.group.Name, a.group.Count = a.job.unusedGroupName(name), 1
	a.group.Labels = r.Label(job.Namespace, a.group.Labels)
	a.Group = a.group.Name
	job.Groups = append(job.Groups, a.group)
}

// unusedJobID is the id of a job that comes later: the same for each pod of its shape.
func (r *IncrementalCluster) unusedJobID(s *jobKey) string {
	id := fmt.Sprintf("%s.%s.%d.%t.%t", s.owner, s.kind, s.priority, s.neverPreempts, s.terminating)
	for r.ids[id] {
		id += "."
	}
	return id
}

// AddPod takes in a pod that has come to its node. Where changed is true the job must
// be stored before the instance. It is false where this roster cannot tell the pod.
// The node may have to be retold.
func (r *IncrementalCluster) AddPod(p *Pod) (i *Instance, changed, ok bool) {
	node := r.pods.nodes[p.Spec.NodeName]
	if node == nil || p.isFinished() {
		return nil, false, true
	}
	owner := ownerOf(p)
	a, ok := r.translatePod(p, owner.kind == kindDaemonSet)
	if !ok || r.hasPortConflict(node, a.group) {
		return nil, false, false
	}
	r.pods.reserve(p, a.group)
	if !a.groupExists {
		a.job.Job, a.job.groups[a.groupKey] = a.Job, a.group
		r.pods.jobs[a.key], r.ids[a.job.ID] = a.job, true
	}
	r.countRunning(a.job, a.Group, 1)
	return &Instance{Pod: p, Job: a.job, Group: a.job.Group(a.Group), Node: node.ID}, !a.groupExists, true
}

// RetainsLabels is whether the labels by which this roster tells the pods of one workload from
// each other are those that somebody reads. With fewer, or more, of them pods would be
// of other groups.
func (r *IncrementalCluster) RetainsLabels(read func(label string) bool) bool {
	return !slices.ContainsFunc(perInstance, func(label string) bool { return r.readLabels[label] != read(label) })
}

// hasPortConflict is whether somebody on a node has one of the ports already.
func (r *IncrementalCluster) hasPortConflict(n *model.Node, g *model.Group) bool {
	u := r.pods.usage[n.ID]
	return u != nil && slices.ContainsFunc(g.Ports, func(port uint16) bool { return u.ports[port] })
}

// RemoveInstance lets go of an instance, whose node may have to be retold. It is false where
// another one may have ports then that it was told without.
func (r *IncrementalCluster) RemoveInstance(i *Instance) bool {
	u := r.pods.usage[i.Node]
	if u == nil || r.pods.portConflicts[i.Node] {
		return false
	}
	for name, amount := range i.Group.Resources {
		u.sum[name] -= amount
	}
	maps.DeleteFunc(u.ports, func(port uint16, _ bool) bool { return slices.Contains(i.Group.Ports, port) })
	r.countRunning(i.Job, i.Group.Name, -1)
	return true
}
