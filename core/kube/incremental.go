package kube

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/kube/dra"
	"github.com/cede-scheduler/cede/core/model"
)

// An IncrementalCluster is a translated cluster that is updated while nodes and pods
// come and go, so that frequent requests about a large cluster do not translate all
// of it each time. Invariant: the translation of a pod is equivalent to that of a
// full translation.
//
// Nodes, jobs and groups that it has returned are never modified; a changed job is
// replaced by a copy. If a change would affect the translation of other nodes or
// groups, the method returns false. The cluster is then unusable and must be rebuilt.
//
// An IncrementalCluster must be used by one goroutine at a time.
type IncrementalCluster struct {
	*Cluster
	pods    *podTranslator
	running map[*Job]map[string]int // by group name
	ids     map[string]bool         // IDs of jobs in use
	index   nodeIndex
}

// NewIncrementalCluster translates a cluster. Attributes and labels that the expected
// pods require are added too, so that TranslatePod succeeds for these pods.
func NewIncrementalCluster(d *Dump, expected []*Pod) *IncrementalCluster {
	r := &IncrementalCluster{running: map[*Job]map[string]int{}, ids: map[string]bool{}}
	t := NewTranslator(nil, &Report{})
	t.live = true
	r.Cluster, r.pods = translate(d, t, expected)
	r.UseBudgetStatus()
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

// A PodTranslation is a pending pod translated into the model.
type PodTranslation struct {
	Job    *model.Job // copy of the job with one more instance; not compiled
	Group  string
	Report *Report // of this pod only

	job         *Job
	key         jobKey
	group       *model.Group // of this pod only; not compiled
	groupExists bool         // the job has an equal group already
	groupKey    string       // see groupKeyOf
}

// TranslatePod translates a pod without a node. It returns false if the pod requires
// an attribute, a label or a resource that the cluster was translated without.
func (r *IncrementalCluster) TranslatePod(p *Pod) (*PodTranslation, bool) {
	return r.translatePod(p, false)
}

func (r *IncrementalCluster) translatePod(p *Pod, daemonSet bool) (*PodTranslation, bool) {
	a := &PodTranslation{Report: &Report{}}
	if a.group = r.groupOf(p, daemonSet, a.Report); a.group == nil {
		return nil, false
	}
	owner := ownerOf(p)
	podGroup := r.pods.podGroup(p, &owner)
	podGroup.shareDomain(r.Translator, a.group)
	var class string
	a.key, class = r.pods.jobKeyOf(p, &owner, podGroup)
	a.groupKey = owner.group + " " + groupKeyOf(a.group)
	a.job = r.pods.jobs[a.key]
	if a.job == nil {
		a.job = newJob(p, &a.key, class)
		a.job.ID = r.unusedJobID(&a.key)
	}
	r.addToJob(a, owner.group)
	return a, true
}

// groupOf translates a pod into a group with one instance, without the labels of selectors.
// It returns nil if the pod requires an attribute, a label or a resource that the cluster
// was translated without.
func (r *IncrementalCluster) groupOf(p *Pod, daemonSet bool, report *Report) *model.Group {
	r.needsRebuild, r.Report = false, report
	p.EachPerInstanceLabel(func(key string) { r.needsRebuild = r.needsRebuild || !r.readLabels[key] })
	group := r.Group(p, daemonSet)
	if r.needsRebuild {
		return nil
	}
	return group
}

// addToJob sets the job of a translation to a copy with one more instance.
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

// unusedJobID returns an ID for a new job. It is the same for all pods with this key.
func (r *IncrementalCluster) unusedJobID(s *jobKey) string {
	id := fmt.Sprintf("%s.%s.%d.%t.%t", s.owner, s.kind, s.priority, s.neverPreempts, s.terminating)
	for r.ids[id] {
		id += "."
	}
	return id
}

// AddPod adds a pod that has a node. If changed is true, the caller must store the
// job before the instance. The instance is nil if the pod has finished or its node is
// unknown. Call RefreshNode for the node afterwards. It returns ok = false if the
// cluster must be rebuilt.
func (r *IncrementalCluster) AddPod(p *Pod) (i *Instance, changed, ok bool) {
	node := r.pods.nodes[p.Spec.NodeName]
	if node == nil || p.IsFinished() {
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

// TranslateBudget translates a disruption budget, which allows the number of
// disruptions in its status. The result is nil if the budget applies to no pod. It
// returns false if the cluster must be rebuilt.
func (r *IncrementalCluster) TranslateBudget(b *Budget) (*model.Budget, bool) {
	r.needsRebuild, r.Report = false, &Report{}
	budget := r.budget(b)
	if budget != nil && b.Status.DisruptionsAllowed != nil {
		allowDisruptions(budget, *b.Status.DisruptionsAllowed)
	}
	return budget, !r.needsRebuild
}

// SetPodGroup stores a pod group, or removes it if exists is false. The caller must
// remove and add all its pods on nodes afterwards.
func (r *IncrementalCluster) SetPodGroup(g *PodGroup, exists bool) {
	if r.pods.podGroups[g.Key()] = g; !exists {
		delete(r.pods.podGroups, g.Key())
	}
}

// SetClaim stores a resource claim, or removes it if exists is false. The caller must
// remove and add all pods on nodes that use it afterwards.
func (r *IncrementalCluster) SetClaim(c *dra.Claim, exists bool) {
	if r.claimed.claims[c.Metadata.Key()] = c; !exists {
		delete(r.claimed.claims, c.Metadata.Key())
	}
}

// RetainsLabels reports whether the retained per-instance labels are exactly those
// for which read returns true. If they are not, pods would be grouped differently.
func (r *IncrementalCluster) RetainsLabels(read func(label string) bool) bool {
	return !slices.ContainsFunc(perInstance, func(label string) bool { return r.readLabels[label] != read(label) })
}

// hasPortConflict reports whether a pod on the node has one of the group's host ports.
func (r *IncrementalCluster) hasPortConflict(n *model.Node, g *model.Group) bool {
	u := r.pods.usage[n.ID]
	return u != nil && slices.ContainsFunc(g.Ports, func(port uint16) bool { return u.ports[port] })
}

// RemoveInstance removes an instance. Call RefreshNode for its node afterwards. It
// returns false if another pod may get back host ports that were dropped because of a
// conflict.
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

// A GangTranslation is the pending pods of a pod group translated into the model.
type GangTranslation struct {
	Reports []*Report // one for each pod

	job    model.Job      // without groups
	groups []*model.Group // of equal pods
	of     []int          // the index of each pod's group
}

// TranslateGang translates the pending pods of a pod group with a priority. It returns false
// if one of them requires an attribute, a label or a resource that the cluster was translated
// without.
func (r *IncrementalCluster) TranslateGang(pods []*Pod, priority int32) (*GangTranslation, bool) {
	g := &GangTranslation{job: model.Job{
		Namespace: pods[0].namespace(), ID: "gang." + pods[0].Spec.groupName(), Type: jobType(ownerOf(pods[0]).kind, pods[0]), Priority: priority, AllAtOnce: true,
	}}
	for r.ids[g.job.ID] {
		g.job.ID += "."
	}
	known := map[string]int{}
	for _, p := range pods {
		report := &Report{}
		group := r.groupOf(p, false, report)
		if group == nil {
			return nil, false
		}
		r.pods.podGroups[p.Group()].shareDomain(r.Translator, group)
		k := groupKeyOf(group)
		if _, ok := known[k]; !ok {
			known[k] = len(g.groups)
			group.Name, group.Labels = fmt.Sprint("pods-", len(g.groups)), r.Label(g.job.Namespace, group.Labels)
			g.groups = append(g.groups, group)
		}
		g.Reports, g.of = append(g.Reports, report), append(g.of, known[k])
	}
	return g, true
}

// Job returns the job of the first pods, which is placed as a whole or not at all. It is not
// compiled, and shares nothing that is modified with other jobs.
func (g *GangTranslation) Job(pods int) *model.Job {
	job, counts := g.job, make([]int, len(g.groups))
	for _, i := range g.of[:pods] {
		counts[i]++
	}
	for i, group := range g.groups {
		if counts[i] > 0 {
			one := *group
			one.Count = counts[i]
			job.Groups = append(job.Groups, &one)
		}
	}
	return &job
}
