package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// podTranslator makes jobs and instances of pods.
type podTranslator struct {
	*Cluster
	nodes         map[string]*model.Node
	usage         map[string]*nodeUsage // by node
	jobs          map[jobKey]*Job
	classes       map[string]*PriorityClass
	podNames      map[string]int       // how many pods that run have a name
	runningCount  map[*model.Group]int // instances that run; nil: not counted yet
	invalidTimes  int                  // pods with a time that is none
	raised        map[string]bool      // nodes that offer more than they say, on account of what is there
	portConflicts map[string]bool      // nodes with pods that are told without their ports, as others have them

	firstInvalidTime string
}

// jobKey is what pods of one job have in common.
type jobKey struct {
	namespace, kind, owner     string
	priority                   int32
	neverPreempts, terminating bool
}

// nodeUsage is what the pods of a node ask for.
type nodeUsage struct {
	sum   map[string]int64
	ports map[uint16]bool
}

func newPodTranslator(c *Cluster, d *Dump) *podTranslator {
	w := &podTranslator{
		Cluster: c, nodes: make(map[string]*model.Node, len(c.Nodes)), usage: map[string]*nodeUsage{}, jobs: map[jobKey]*Job{},
		classes: map[string]*PriorityClass{}, podNames: make(map[string]int, len(d.Pods)), raised: map[string]bool{}, portConflicts: map[string]bool{},
	}
	for _, n := range c.Nodes {
		w.nodes[n.ID] = n
	}
	for _, k := range d.Classes {
		w.classes[k.Metadata.Name] = k
	}
	for _, p := range d.Pods {
		w.podNames[p.Metadata.Name]++
	}
	return w
}

// addPod translates a pod, or says why it is left out.
func (w *podTranslator) addPod(p *Pod) {
	bound := p.Spec.NodeName != ""
	switch {
	case p.isFinished():
		w.Report.skip("pods that have finished")
		return
	case bound && w.nodes[p.Spec.NodeName] == nil:
		w.Report.skip("pods on nodes that the dump lacks")
		return
	case !bound && p.Metadata.DeletionTimestamp != "":
		w.Report.skip("pods that are deleted before they had a node")
		return
	case !bound && len(p.Spec.SchedulingGates) > 0:
		w.Report.skip("pods behind scheduling gates")
		return
	}
	w.PodsTranslated++
	if isInvalidTime(p.Status.StartTime) || isInvalidTime(p.Metadata.CreationTimestamp) {
		w.invalidTimes++
		w.addInvalid(fmt.Errorf("pod %s: startTime %.40q or creationTimestamp %.40q is no time", short(p.Metadata.full()), p.Status.StartTime, p.Metadata.CreationTimestamp))
		if w.firstInvalidTime == "" {
			w.firstInvalidTime = p.Metadata.full()
		}
	}
	owner := ownerOf(p)
	g := w.Group(p, owner.kind == kindDaemonSet)
	if !bound && w.nodes[p.Status.NominatedNodeName] != nil {
		w.Report.info("pending pods with a nominated node", "submitted before others of their priority, with a wish for that node")
		g.Affinities = append(g.Affinities, model.Affinity{
			Constraint: model.Constraint{Attribute: "node.id", Operator: model.OpEqual, Value: p.Status.NominatedNodeName}, Weight: 100,
		})
	}
	if bound {
		w.reserve(p, g)
	}
	job := w.jobFor(p, &owner)
	group := job.addInstance(p, g, owner.group)
	if !bound {
		job.Pending++
		job.HasNominated = job.HasNominated || p.Status.NominatedNodeName != ""
		return
	}
	w.Instances = append(w.Instances, &Instance{
		ID: w.instanceID(p), Pod: p, Job: job, Group: group, Node: p.Spec.NodeName, Started: w.startOffset(p),
	})
}

// startOffset is when a pod began, before the dump was made.
func (w *podTranslator) startOffset(p *Pod) time.Duration {
	at := p.Started()
	const most = 49 * 365 * 24 * time.Hour
	if at.IsZero() || at.After(w.Time) {
		return 0
	}
	return -min(w.Time.Sub(at).Truncate(time.Second), most)
}

// instanceID is a pod's name, with its namespace where another pod has the name
// too.
func (w *podTranslator) instanceID(p *Pod) string {
	if w.podNames[p.Metadata.Name] == 1 {
		return p.Metadata.Name
	}
	return p.namespace() + "." + p.Metadata.Name
}

// reserve sees to it that a pod fits where it is: a scenario begins with what fits.
// The kubelet admits more than the sums allow now and then, such as static pods
// and those resized in place.
func (w *podTranslator) reserve(p *Pod, g *model.Group) {
	node := w.nodes[p.Spec.NodeName]
	u := w.usage[node.ID]
	if u == nil {
		u = &nodeUsage{sum: map[string]int64{}, ports: map[uint16]bool{}}
		w.usage[node.ID] = u
	}
	for name, n := range g.Resources {
		u.sum[name] += n
	}
	for _, port := range g.Ports {
		if u.ports[port] {
			g.Ports, w.portConflicts[node.ID] = nil, true
			w.Report.warn("pods whose host port another pod on the node has too, at another address", "told without host ports")
			break
		}
	}
	for _, port := range g.Ports {
		u.ports[port] = true
	}
}

// raiseCapacities lets nodes offer what is in use there.
func (w *podTranslator) raiseCapacities() {
	over := 0
	for _, n := range w.Nodes {
		if w.raiseCapacity(n) {
			over++
		}
	}
	w.Report.Add(Note{Count: over, Subject: "nodes whose pods ask for more than they offer, or as much to the last MiB", Handling: "they offer what is asked for"})
}

func (w *podTranslator) raiseCapacity(n *model.Node) bool {
	u := w.usage[n.ID]
	if u == nil || !u.exceeds(n) {
		delete(w.raised, n.ID)
		return false
	}
	for name, sum := range u.sum {
		if sum > n.Capacity[name] {
			n.Capacity[name] = sum
		}
	}
	w.raised[n.ID] = true
	return true
}

// exceeds is whether more is asked for than a node offers.
func (u *nodeUsage) exceeds(n *model.Node) bool {
	for name, sum := range u.sum {
		if sum > n.Capacity[name] {
			return true
		}
	}
	return false
}

// owner is what a pod belongs to.
type owner struct{ kind, name, group string }

const (
	kindDaemonSet  = "DaemonSet"
	kindDeployment = "Deployment"
	kindBare       = "Pod"
	templateHash   = "pod-template-hash"
)

// ownerOf is a pod's owner. The ReplicaSets of one Deployment are one job, with a
// group each.
func ownerOf(p *Pod) owner {
	bare := owner{kind: kindBare, name: p.Metadata.Name, group: "pod"}
	if len(p.Metadata.Owners) == 0 {
		return bare
	}
	o := p.Metadata.Owners[0]
	for _, other := range p.Metadata.Owners {
		if other.Controller {
			o = other
			break
		}
	}
	if o.Kind == "Node" || !isValidName(o.Name) {
		return bare // a static pod
	}
	if hash := p.Metadata.Labels[templateHash]; o.Kind == "ReplicaSet" && isValidName(hash) && strings.HasSuffix(o.Name, "-"+hash) {
		if name := strings.TrimSuffix(o.Name, "-"+hash); name != "" {
			return owner{kind: kindDeployment, name: name, group: hash}
		}
	}
	return owner{kind: o.Kind, name: o.Name, group: "pods"}
}

// jobFor is the job that a pod belongs to.
func (w *podTranslator) jobFor(p *Pod, o *owner) *Job {
	shape, class := w.jobKeyOf(p, o)
	if o.kind == kindBare {
		w.Report.info("pods without an owner, static ones included", "a job each; here one that is evicted waits for another place, where Kubernetes would delete it")
	}
	if shape.terminating {
		w.Report.info("pods on their way out", "stopped at the start; what they hold is free for others as soon as they are gone")
	}
	j := w.jobs[shape]
	if j == nil {
		j = newJob(p, &shape, class)
		w.jobs[shape] = j
		w.Jobs = append(w.Jobs, j)
	}
	if at := timeOf(p.Metadata.CreationTimestamp); p.Spec.NodeName == "" && (j.Created.IsZero() || at.Before(j.Created)) {
		j.Created = at
	}
	return j
}

// jobKeyOf is what a pod's job is, and its priority's class.
func (w *podTranslator) jobKeyOf(p *Pod, o *owner) (shape jobKey, class string) {
	priority, class, neverPreempts := priorityOf(p, w.classes)
	return jobKey{
		namespace: p.namespace(), kind: o.kind, owner: o.name, priority: priority, neverPreempts: neverPreempts,
		terminating: p.Metadata.DeletionTimestamp != "",
	}, class
}

// newJob is the job of a shape, without a group.
func newJob(p *Pod, s *jobKey, class string) *Job {
	return &Job{
		Job: &model.Job{
			Namespace: s.namespace, Type: jobType(s.kind, p), Priority: s.priority, PriorityClass: class,
			NeverPreempts: s.neverPreempts, Meta: map[string]string{"kind": s.kind, "name": s.owner},
		},
		Terminating: s.terminating, groups: map[string]*model.Group{}, targetNodes: map[*model.Group][]string{},
	}
}

// priorityOf is what the priority of a pod comes from.
func priorityOf(p *Pod, classes map[string]*PriorityClass) (priority int32, class string, neverPreempts bool) {
	k := classes[p.Spec.PriorityClassName]
	switch {
	case p.Spec.Priority != nil:
		priority = *p.Spec.Priority
	case k != nil:
		priority = k.Value
	case model.SystemClass(p.Spec.PriorityClassName) != nil:
		priority = model.SystemClass(p.Spec.PriorityClassName).Value
	case p.Spec.PriorityClassName == "":
		for _, other := range classes {
			if other.GlobalDefault && (k == nil || other.Value < k.Value || other.Value == k.Value && other.Metadata.Name < k.Metadata.Name) {
				k = other
			}
		}
		if k != nil {
			priority = k.Value
		}
	}
	switch {
	case p.Spec.PreemptionPolicy != "":
		neverPreempts = p.Spec.PreemptionPolicy == neverPolicy
	case k != nil:
		neverPreempts = k.PreemptionPolicy == neverPolicy
	}
	if k != nil && k.Value == priority && (k.PreemptionPolicy == neverPolicy) == neverPreempts {
		class = k.Metadata.Name
	}
	return priority, class, neverPreempts
}

func jobType(kind string, p *Pod) model.JobType {
	switch {
	case kind == kindDaemonSet:
		return model.JobSystem
	case kind == "Job", kind == kindBare && cmp.Or(p.Spec.RestartPolicy, "Always") != "Always":
		return model.JobBatch
	}
	return model.JobService
}

// groupKeyOf is a text that pods have in common which may be instances of one group.
func groupKeyOf(g *model.Group) string {
	return canonical(struct {
		A model.Resources
		B []uint16
		C map[string]string
		D []model.Toleration
		E []model.Constraint
		F []model.Affinity
		G []model.Spread
		H []model.LabelTerm
		I []model.LabelTerm
		J int64
	}{g.Resources, g.Ports, g.Labels, g.Tolerations, g.Constraints, g.Affinities, g.Spread, g.Colocate, g.Separate, g.KillTimeout})
}

// addInstance adds an instance to the group of its shape, which is named after where the
// pod comes from.
func (j *Job) addInstance(p *Pod, g *model.Group, name string) *model.Group {
	shape := name + " " + groupKeyOf(g)
	known := j.groups[shape]
	if known == nil {
		known = g
		g.Name, g.Count = j.unusedGroupName(name), 0
		j.groups[shape] = g
		j.Groups = append(j.Groups, g)
	}
	if known.Count++; j.Type.PerNode() {
		known.Count = 1
		if home := targetNode(p); home != "" {
			j.targetNodes[known] = append(j.targetNodes[known], home)
		}
	}
	return known
}

// unusedGroupName is a name that none of the groups has.
func (j *Job) unusedGroupName(name string) string {
	free := name
	for i := 2; j.Group(free) != nil; i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	return free
}

// targetNode is the node that a DaemonSet's pod is for.
func targetNode(p *Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	if a := p.Spec.Affinity; a != nil && a.Node != nil && a.Node.Required != nil {
		for _, term := range a.Node.Required.Terms {
			for _, f := range term.Fields {
				if f.Key == "metadata.name" && f.Operator == "In" && len(f.Values) == 1 {
					return f.Values[0]
				}
			}
		}
	}
	return ""
}

// nameJobs names jobs, and says on which nodes DaemonSets of several shapes are.
func (w *podTranslator) nameJobs() {
	if w.invalidTimes > 0 {
		w.Report.Add(Note{
			Count: w.invalidTimes, Subject: "pods with a startTime or creationTimestamp that is no time",
			Handling: "taken as if it were not there; the first is " + short(w.firstInvalidTime),
		})
	}
	w.raiseCapacities()
	names := map[string]int{}
	for _, j := range w.Jobs {
		names[j.Meta["name"]]++
	}
	taken := map[string]bool{}
	for _, j := range w.Jobs {
		name := j.Meta["name"]
		if names[name] > 1 {
			name = j.Namespace + "." + name
		}
		if j.Terminating {
			name += "-leaving"
		}
		for _, more := range []string{"", "-" + strings.ToLower(alphanumeric(j.Meta["kind"])), fmt.Sprintf("-p%d", j.Priority)} {
			if taken[name] {
				name += strings.ReplaceAll(more, "--", "-")
			}
		}
		for i, base := 2, name; taken[name]; i++ {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		taken[name], j.ID = true, name
		if j.Type.PerNode() && len(j.Groups) > 1 {
			w.Report.info("DaemonSets with pods of several shapes", "a group for each shape, on the nodes where it is")
			for _, g := range j.Groups {
				homes := slices.Compact(slices.Sorted(slices.Values(j.targetNodes[g])))
				g.Constraints = append(g.Constraints, model.Constraint{Attribute: "node.id", Operator: model.OpIn, Values: homes})
			}
		}
	}
	w.Report.Add(Note{Count: w.countBatch(), Subject: "jobs that end by themselves", Handling: "run for ever: a dump does not tell how long"})
}

// alphanumeric keeps the letters of a kind.
func alphanumeric(kind string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, kind)
}

func (w *podTranslator) countBatch() (n int) {
	for _, j := range w.Jobs {
		if j.Type == model.JobBatch {
			n++
		}
	}
	return n
}

// countSpreads counts the pods whose spread kube-scheduler counts more pods for
// than those of their group.
func (w *podTranslator) countSpreads() {
	inNamespace := map[string][]*model.Group{}
	for _, j := range w.Jobs {
		inNamespace[j.Namespace] = append(inNamespace[j.Namespace], j.Groups...)
	}
	for _, s := range w.spreads {
		groups := 0
		for _, g := range inNamespace[s.namespace] {
			if s.selector.Matches(g.Labels) {
				groups++
			}
		}
		if groups > 1 {
			w.Report.Add(Note{
				Count: s.pods, Subject: "pods with topology spread constraints that count pods of other groups too",
				Handling: "those of their own group count alone", AffectsPlacement: true,
			})
		}
	}
}
