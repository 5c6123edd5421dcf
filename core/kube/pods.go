package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/kube/dra"
	"github.com/cede-scheduler/cede/core/model"
)

// A podTranslator translates pods into jobs and instances.
type podTranslator struct {
	*Cluster
	nodes         map[string]*model.Node
	usage         map[string]*nodeUsage // by node
	jobs          map[jobKey]*Job
	classes       map[string]*PriorityClass
	podGroups     map[string]*PodGroup // by namespace and name
	podNames      map[string]int       // pods per name
	runningCount  map[*model.Group]int // running instances; nil: not counted yet
	invalidTimes  int                  // pods with an invalid timestamp
	raised        map[string]bool      // nodes with a capacity raised to the requests on them
	portConflicts map[string]bool      // nodes with a pod that lost its host ports

	firstInvalidTime string
}

// A jobKey is equal for all pods of one job.
type jobKey struct {
	namespace, kind, owner     string
	priority                   int32
	neverPreempts, terminating bool
	allOrNone, gang            bool   // of a pod group
	composite                  string // parent of the pod group
}

// A nodeUsage holds the requests and host ports of the pods on a node.
type nodeUsage struct {
	sum   map[string]int64
	ports map[uint16]bool
}

func newPodTranslator(c *Cluster, d *Dump) *podTranslator {
	w := &podTranslator{
		Cluster: c, nodes: make(map[string]*model.Node, len(c.Nodes)), usage: map[string]*nodeUsage{}, jobs: map[jobKey]*Job{},
		classes: map[string]*PriorityClass{}, podGroups: map[string]*PodGroup{}, podNames: make(map[string]int, len(d.Pods)), raised: map[string]bool{}, portConflicts: map[string]bool{},
	}
	for _, n := range c.Nodes {
		w.nodes[n.ID] = n
	}
	for _, k := range d.Classes {
		w.classes[k.Metadata.Name] = k
	}
	for _, g := range d.PodGroups {
		w.podGroups[g.Key()] = g
	}
	for _, p := range d.Pods {
		w.podNames[p.Metadata.Name]++
	}
	return w
}

// addPod translates a pod, or reports why it is left out.
func (w *podTranslator) addPod(p *Pod) {
	bound := p.Spec.NodeName != ""
	switch {
	case p.IsFinished():
		w.Report.skip("finished pods")
		return
	case bound && w.nodes[p.Spec.NodeName] == nil:
		w.Report.skip("pods on nodes missing from the dump")
		return
	case !bound && p.Metadata.DeletionTimestamp != "":
		w.Report.skip("pods deleted before they had a node")
		return
	case !bound && len(p.Spec.SchedulingGates) > 0:
		w.Report.skip("pods with scheduling gates")
		return
	}
	w.PodsTranslated++
	if isInvalidTime(p.Status.StartTime) || isInvalidTime(p.Metadata.CreationTimestamp) {
		w.invalidTimes++
		w.invalid.add(fmt.Errorf("pod %s: invalid startTime %.40q or creationTimestamp %.40q", short(p.Metadata.full()), p.Status.StartTime, p.Metadata.CreationTimestamp))
		if w.firstInvalidTime == "" {
			w.firstInvalidTime = p.Metadata.full()
		}
	}
	owner := ownerOf(p)
	g := w.Group(p, owner.kind == kindDaemonSet)
	if !bound && w.nodes[p.Status.NominatedNodeName] != nil {
		w.Report.info("pending pods with a nominated node", "submitted before others of their priority, with an affinity for that node")
		g.Affinities = append(g.Affinities, model.Affinity{
			Constraint: model.Constraint{Attribute: "node.id", Operator: model.OpEqual, Value: p.Status.NominatedNodeName}, Weight: 100,
		})
	}
	if bound {
		w.reserve(p, g)
	}
	podGroup := w.podGroup(p, &owner)
	podGroup.shareDomain(w.Translator, g)
	job := w.jobFor(p, &owner, podGroup)
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

// startOffset returns the start of a pod relative to the time of the dump; at most 0.
func (w *podTranslator) startOffset(p *Pod) time.Duration {
	at := p.Started()
	const most = 49 * 365 * 24 * time.Hour
	if at.IsZero() || at.After(w.Time) {
		return 0
	}
	return -min(w.Time.Sub(at).Truncate(time.Second), most)
}

// instanceID returns the name of a pod, with its namespace if another pod has the
// same name.
func (w *podTranslator) instanceID(p *Pod) string {
	if w.podNames[p.Metadata.Name] == 1 {
		return p.Metadata.Name
	}
	return p.namespace() + "." + p.Metadata.Name
}

// reserve adds a pod to the usage of its node. If one of its host ports is in use the
// pod loses all of them, because the initial state of a scenario must fit. The
// kubelet admits more than fits at times, such as static pods and pods resized in
// place.
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
			w.Report.warn("pods that share a host port with another pod on the node, on another address", "host ports left out")
			break
		}
	}
	for _, port := range g.Ports {
		u.ports[port] = true
	}
}

// raiseCapacities raises the capacity of nodes to the requests of the pods on them.
func (w *podTranslator) raiseCapacities() {
	over := 0
	for _, n := range w.Nodes {
		if w.raiseCapacity(n) {
			over++
		}
	}
	w.Report.Add(Note{Count: over, Subject: "nodes with requests above their allocatable resources", Handling: "capacity raised to the requests"})
}

// raiseCapacity raises the capacity of one node and reports whether that was necessary.
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

// exceeds reports whether the pods request more of a resource than the node has.
func (u *nodeUsage) exceeds(n *model.Node) bool {
	for name, sum := range u.sum {
		if sum > n.Capacity[name] {
			return true
		}
	}
	return false
}

// An owner identifies the workload of a pod. Group is the name of the pod's group.
type owner struct{ kind, name, group string }

const (
	kindDaemonSet  = "DaemonSet"
	kindDeployment = "Deployment"
	kindPodGroup   = "PodGroup"
	kindBare       = "Pod"
	templateHash   = "pod-template-hash"
)

// ownerOf returns the owner of a pod. The ReplicaSets of a Deployment are one job
// with a group per ReplicaSet. A pod without a controller is its own owner.
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
		return bare // static pod
	}
	if hash := p.Metadata.Labels[templateHash]; o.Kind == "ReplicaSet" && isValidName(hash) && strings.HasSuffix(o.Name, "-"+hash) {
		if name := strings.TrimSuffix(o.Name, "-"+hash); name != "" {
			return owner{kind: kindDeployment, name: name, group: hash}
		}
	}
	return owner{kind: o.Kind, name: o.Name, group: "pods"}
}

// jobFor returns the job of a pod, which it adds if it is new. g is the pod's group; nil: none.
func (w *podTranslator) jobFor(p *Pod, o *owner, g *PodGroup) *Job {
	key, class := w.jobKeyOf(p, o, g)
	if key.kind == kindBare {
		w.Report.info("pods without an owner, including static pods", "one job each; if evicted they become pending, whereas Kubernetes would delete them")
	}
	if key.terminating {
		w.Report.info("terminating pods", "stopped at the start; their capacity is free once they have stopped")
	}
	j := w.jobs[key]
	if j == nil {
		j = newJob(p, &key, class)
		w.jobs[key] = j
		w.Jobs = append(w.Jobs, j)
	}
	if at := timeOf(p.Metadata.CreationTimestamp); p.Spec.NodeName == "" && (j.Created.IsZero() || at.Before(j.Created)) {
		j.Created = at
	}
	return j
}

// jobKeyOf returns the job key of a pod and the name of its priority class.
func (w *podTranslator) jobKeyOf(p *Pod, o *owner, g *PodGroup) (key jobKey, class string) {
	priority, class, neverPreempts := priorityOf(p, w.classes)
	key = jobKey{
		namespace: p.namespace(), kind: o.kind, owner: o.name, priority: priority, neverPreempts: neverPreempts,
		terminating: p.Metadata.DeletionTimestamp != "",
	}
	if g == nil {
		return key, class
	}
	key.kind, key.owner = kindPodGroup, g.Metadata.Name
	key.allOrNone = g.Spec.DisruptionMode.All != nil
	key.gang = g.Spec.SchedulingPolicy.Gang != nil
	key.composite = g.Spec.Parent
	key.priority, class, neverPreempts = priorityOf(&Pod{Spec: PodSpec{
		Priority: g.Spec.Priority, PriorityClassName: g.Spec.PriorityClassName, PreemptionPolicy: g.Spec.PreemptionPolicy,
	}}, w.classes)
	key.neverPreempts = neverPreempts || key.neverPreempts
	if class != "" && key.neverPreempts != neverPreempts {
		class = "" // the class does not have the policy of the pods
	}
	return key, class
}

// podGroup returns the group of a pod, or nil if it has none or the group is unknown. A
// pod of an unknown group is treated as one without a group, as in kube-scheduler, and so
// is one of a DaemonSet, which has its own node.
func (w *podTranslator) podGroup(p *Pod, o *owner) *PodGroup {
	key := p.Group()
	if key == "" || o.kind == kindDaemonSet {
		return nil
	}
	g := w.podGroups[key]
	switch {
	case g == nil:
		w.Report.info("pods of a pod group that is not in the dump", "treated as pods without a group")
	case g.Spec.Parent != "":
		w.Report.info("pods of composite pod groups", "evicted and placed by their own pod group, without the constraints of the composite one")
	}
	return g
}

// MetaComposite is the key of a job's metadata that holds the composite pod group to which
// its PodGroup belongs, if any.
const MetaComposite = "composite"

// newJob returns the job of a key, without groups.
func newJob(p *Pod, s *jobKey, class string) *Job {
	j := &Job{
		Job: &model.Job{
			Namespace: s.namespace, Type: jobType(ownerOf(p).kind, p), Priority: s.priority, PriorityClass: class,
			NeverPreempts: s.neverPreempts, AllOrNone: s.allOrNone, Meta: map[string]string{"kind": s.kind, "name": s.owner},
		},
		Terminating: s.terminating, groups: map[string]*model.Group{}, targetNodes: map[*model.Group][]string{},
	}
	if s.composite != "" {
		j.Meta[MetaComposite] = s.composite
	}
	return j
}

// priorityOf resolves the priority of a pod. Class is empty if the pod does not have
// the priority and the preemption policy of the class. Without a class name the
// global default applies; if there are several, the one with the lowest value.
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

// jobType returns the job type for a kind of owner.
func jobType(kind string, p *Pod) model.JobType {
	switch {
	case kind == kindDaemonSet:
		return model.JobSystem
	case kind == "Job", kind == kindBare && cmp.Or(p.Spec.RestartPolicy, "Always") != "Always":
		return model.JobBatch
	}
	return model.JobService
}

// groupKeyOf returns a text that is equal for pods that can share a group.
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
		K []model.DeviceRequest
	}{g.Resources, g.Ports, g.Labels, g.Tolerations, g.Constraints, g.Affinities, g.Spread, g.Colocate, g.Separate, g.KillTimeout, g.Devices})
}

// addInstance adds a pod to the group with an equal specification, and returns the
// group. A new group is named after the pod's owner.
func (j *Job) addInstance(p *Pod, g *model.Group, name string) *model.Group {
	key := name + " " + groupKeyOf(g)
	existing := j.groups[key]
	if existing == nil {
		existing = g
		g.Name, g.Count = j.unusedGroupName(name), 0
		j.groups[key] = g
		j.Groups = append(j.Groups, g)
	}
	if existing.Count++; j.Type.PerNode() {
		existing.Count = 1
		if home := targetNode(p); home != "" {
			j.targetNodes[existing] = append(j.targetNodes[existing], home)
		}
	}
	return existing
}

// unusedGroupName returns the name, with a number if the job has such a group already.
func (j *Job) unusedGroupName(name string) string {
	free := name
	for i := 2; j.Group(free) != nil; i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	return free
}

// targetNode returns the node that a DaemonSet created the pod for, or "".
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

// nameJobs gives each job a unique ID. It also restricts each group of a DaemonSet
// with several groups to the nodes of its pods.
func (w *podTranslator) nameJobs() {
	if w.invalidTimes > 0 {
		w.Report.Add(Note{
			Count: w.invalidTimes, Subject: "pods with an invalid startTime or creationTimestamp",
			Handling: "timestamp ignored; the first: " + short(w.firstInvalidTime),
		})
	}
	w.raiseCapacities()
	w.placeGangsAtOnce()
	names := map[string]int{}
	for _, j := range w.Jobs {
		names[j.Meta["name"]]++
	}
	used := map[string]bool{}
	for _, j := range w.Jobs {
		name := j.Meta["name"]
		if names[name] > 1 {
			name = j.Namespace + "." + name
		}
		if j.Terminating {
			name += "-leaving"
		}
		for _, suffix := range []string{"", "-" + strings.ToLower(alphanumeric(j.Meta["kind"])), fmt.Sprintf("-p%d", j.Priority)} {
			if used[name] {
				name += strings.ReplaceAll(suffix, "--", "-")
			}
		}
		for i, base := 2, name; used[name]; i++ {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		used[name], j.ID = true, name
		if j.Type.PerNode() && len(j.Groups) > 1 {
			w.Report.info("DaemonSets with pods that differ", "one group per specification, on the nodes of its pods")
			for _, g := range j.Groups {
				homes := slices.Compact(slices.Sorted(slices.Values(j.targetNodes[g])))
				g.Constraints = append(g.Constraints, model.Constraint{Attribute: "node.id", Operator: model.OpIn, Values: homes})
			}
		}
	}
	w.Report.Add(Note{Count: w.countBatch(), Subject: "batch jobs", Handling: "run forever: a dump has no durations"})
}

// placeGangsAtOnce makes the jobs of gangs all-at-once. In a running cluster
// kube-scheduler decides how many pods of a gang it places.
func (w *podTranslator) placeGangsAtOnce() {
	for key, j := range w.jobs {
		if !key.gang || w.live || key.terminating {
			continue
		}
		j.AllAtOnce = true
		g := w.podGroups[dra.Key(key.namespace, key.owner)]
		if n := int(g.Spec.SchedulingPolicy.Gang.MinCount); j.Pending > 0 && n < j.instances() {
			w.Report.warn("pending gangs with a minCount below the number of their pods", "all their pods are placed at once, or none")
		}
	}
}

// instances returns the number of pods of the job.
func (j *Job) instances() (n int) {
	for _, g := range j.Groups {
		n += g.Count
	}
	return n
}

// alphanumeric removes all characters of a kind but letters and digits.
func alphanumeric(kind string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, kind)
}

// countBatch returns the number of batch jobs.
func (w *podTranslator) countBatch() (n int) {
	for _, j := range w.Jobs {
		if j.Type == model.JobBatch {
			n++
		}
	}
	return n
}

// countSpreads reports the spread constraints that select pods of several groups: the
// model counts only the instances of the pod's own group.
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
				Count: s.pods, Subject: "pods with topology spread constraints that also select pods of other groups",
				Handling: "only pods of their own group are counted", AffectsPlacement: true,
			})
		}
	}
}
