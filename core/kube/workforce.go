package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// workforce makes jobs and instances of pods.
type workforce struct {
	*Cluster
	nodes   map[string]*model.Node
	used    map[string]*use // by node
	jobs    map[jobShape]*Job
	classes map[string]*PriorityClass
	byName  map[string]int       // how many pods that run have a name
	counted map[*model.Group]int // instances that run; nil: not counted yet
	untimed int                  // pods with a time that is none
	raised  map[string]bool      // nodes that offer more than they say, on account of what is there
	clashed map[string]bool      // nodes with pods that are told without their ports, as others have them

	firstUntimed string
}

// jobShape is what pods of one job have in common.
type jobShape struct {
	namespace, kind, owner string
	priority               int32
	never, leaving         bool
}

// use is what the pods of a node ask for.
type use struct {
	sum   map[string]int64
	ports map[uint16]bool
}

func newWorkforce(c *Cluster, d *Dump) *workforce {
	w := &workforce{
		Cluster: c, nodes: make(map[string]*model.Node, len(c.Nodes)), used: map[string]*use{}, jobs: map[jobShape]*Job{},
		classes: map[string]*PriorityClass{}, byName: make(map[string]int, len(d.Pods)), raised: map[string]bool{}, clashed: map[string]bool{},
	}
	for _, n := range c.Nodes {
		w.nodes[n.ID] = n
	}
	for _, k := range d.Classes {
		w.classes[k.Metadata.Name] = k
	}
	for _, p := range d.Pods {
		w.byName[p.Metadata.Name]++
	}
	return w
}

// pod translates a pod, or says why it is left out.
func (w *workforce) pod(p *Pod) {
	bound := p.Spec.NodeName != ""
	switch {
	case p.finished():
		w.Notes.leave("pods that have finished")
		return
	case bound && w.nodes[p.Spec.NodeName] == nil:
		w.Notes.leave("pods on nodes that the dump lacks")
		return
	case !bound && p.Metadata.DeletionTimestamp != "":
		w.Notes.leave("pods that are deleted before they had a node")
		return
	case !bound && len(p.Spec.SchedulingGates) > 0:
		w.Notes.leave("pods behind scheduling gates")
		return
	}
	w.Pods++
	if misdated(p.Status.StartTime) || misdated(p.Metadata.CreationTimestamp) {
		w.untimed++
		w.wrong(fmt.Errorf("pod %s: startTime %.40q or creationTimestamp %.40q is no time", short(p.Metadata.full()), p.Status.StartTime, p.Metadata.CreationTimestamp))
		if w.firstUntimed == "" {
			w.firstUntimed = p.Metadata.full()
		}
	}
	owner := ownerOf(p)
	g := w.Group(p, owner.kind == kindDaemonSet)
	if !bound && w.nodes[p.Status.NominatedNodeName] != nil {
		w.Notes.soft("pending pods with a nominated node", "submitted before others of their priority, with a wish for that node")
		g.Affinities = append(g.Affinities, model.Affinity{
			Constraint: model.Constraint{Attribute: "node.id", Operator: model.OpEqual, Value: p.Status.NominatedNodeName}, Weight: 100,
		})
	}
	if bound {
		w.fit(p, g)
	}
	job := w.job(p, &owner)
	group := job.join(p, g, owner.group)
	if !bound {
		job.Pending++
		job.Nominated = job.Nominated || p.Status.NominatedNodeName != ""
		return
	}
	w.Instances = append(w.Instances, &Instance{
		ID: w.instanceID(p), Pod: p, Job: job, Group: group, Node: p.Spec.NodeName, Started: w.started(p),
	})
}

// started is when a pod began, before the dump was made.
func (w *workforce) started(p *Pod) time.Duration {
	at := p.Started()
	const most = 49 * 365 * 24 * time.Hour
	if at.IsZero() || at.After(w.Taken) {
		return 0
	}
	return -min(w.Taken.Sub(at).Truncate(time.Second), most)
}

// instanceID is a pod's name, with its namespace where another pod has the name
// too.
func (w *workforce) instanceID(p *Pod) string {
	if w.byName[p.Metadata.Name] == 1 {
		return p.Metadata.Name
	}
	return p.namespace() + "." + p.Metadata.Name
}

// fit sees to it that a pod fits where it is: a scenario begins with what fits.
// The kubelet admits more than the sums allow now and then, such as static pods
// and those resized in place.
func (w *workforce) fit(p *Pod, g *model.Group) {
	node := w.nodes[p.Spec.NodeName]
	u := w.used[node.ID]
	if u == nil {
		u = &use{sum: map[string]int64{}, ports: map[uint16]bool{}}
		w.used[node.ID] = u
	}
	for name, n := range g.Resources {
		u.sum[name] += n
	}
	for _, port := range g.Ports {
		if u.ports[port] {
			g.Ports, w.clashed[node.ID] = nil, true
			w.Notes.hard("pods whose host port another pod on the node has too, at another address", "told without host ports")
			break
		}
	}
	for _, port := range g.Ports {
		u.ports[port] = true
	}
}

// raise lets nodes offer what is in use there.
func (w *workforce) raise() {
	over := 0
	for _, n := range w.Nodes {
		if w.raiseNode(n) {
			over++
		}
	}
	w.Notes.Add(Note{Count: over, What: "nodes whose pods ask for more than they offer, or as much to the last MiB", Done: "they offer what is asked for"})
}

func (w *workforce) raiseNode(n *model.Node) bool {
	u := w.used[n.ID]
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
func (u *use) exceeds(n *model.Node) bool {
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
	if o.Kind == "Node" || !goodName(o.Name) {
		return bare // a static pod
	}
	if hash := p.Metadata.Labels[templateHash]; o.Kind == "ReplicaSet" && goodName(hash) && strings.HasSuffix(o.Name, "-"+hash) {
		if name := strings.TrimSuffix(o.Name, "-"+hash); name != "" {
			return owner{kind: kindDeployment, name: name, group: hash}
		}
	}
	return owner{kind: o.Kind, name: o.Name, group: "pods"}
}

// job is the job that a pod belongs to.
func (w *workforce) job(p *Pod, o *owner) *Job {
	shape, class := w.jobShape(p, o)
	if o.kind == kindBare {
		w.Notes.soft("pods without an owner, static ones included", "a job each; here one that is evicted waits for another place, where Kubernetes would delete it")
	}
	if shape.leaving {
		w.Notes.soft("pods on their way out", "stopped at the start; what they hold is free for others as soon as they are gone")
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

// jobShape is what a pod's job is, and its priority's class.
func (w *workforce) jobShape(p *Pod, o *owner) (shape jobShape, class string) {
	priority, class, neverPreempts := priorityOf(p, w.classes)
	return jobShape{
		namespace: p.namespace(), kind: o.kind, owner: o.name, priority: priority, never: neverPreempts,
		leaving: p.Metadata.DeletionTimestamp != "",
	}, class
}

// newJob is the job of a shape, without a group.
func newJob(p *Pod, s *jobShape, class string) *Job {
	return &Job{
		Job: &model.Job{
			Namespace: s.namespace, Type: jobType(s.kind, p), Priority: s.priority, PriorityClass: class,
			NeverPreempts: s.never, Meta: map[string]string{"kind": s.kind, "name": s.owner},
		},
		Stops: s.leaving, groups: map[string]*model.Group{}, homes: map[*model.Group][]string{},
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
		neverPreempts = p.Spec.PreemptionPolicy == never
	case k != nil:
		neverPreempts = k.PreemptionPolicy == never
	}
	if k != nil && k.Value == priority && (k.PreemptionPolicy == never) == neverPreempts {
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

// shapeOf is a text that pods have in common which may be instances of one group.
func shapeOf(g *model.Group) string {
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

// join adds an instance to the group of its shape, which is named after where the
// pod comes from.
func (j *Job) join(p *Pod, g *model.Group, name string) *model.Group {
	shape := name + " " + shapeOf(g)
	known := j.groups[shape]
	if known == nil {
		known = g
		g.Name, g.Count = j.freeName(name), 0
		j.groups[shape] = g
		j.Groups = append(j.Groups, g)
	}
	if known.Count++; j.Type.PerNode() {
		known.Count = 1
		if home := homeOf(p); home != "" {
			j.homes[known] = append(j.homes[known], home)
		}
	}
	return known
}

// freeName is a name that none of the groups has.
func (j *Job) freeName(name string) string {
	free := name
	for i := 2; j.Group(free) != nil; i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	return free
}

// homeOf is the node that a DaemonSet's pod is for.
func homeOf(p *Pod) string {
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

// finish names jobs, and says on which nodes DaemonSets of several shapes are.
func (w *workforce) finish() {
	if w.untimed > 0 {
		w.Notes.Add(Note{
			Count: w.untimed, What: "pods with a startTime or creationTimestamp that is no time",
			Done: "taken as if it were not there; the first is " + short(w.firstUntimed),
		})
	}
	w.raise()
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
		if j.Stops {
			name += "-leaving"
		}
		for _, more := range []string{"", "-" + strings.ToLower(cleanKind(j.Meta["kind"])), fmt.Sprintf("-p%d", j.Priority)} {
			if taken[name] {
				name += strings.ReplaceAll(more, "--", "-")
			}
		}
		for i, base := 2, name; taken[name]; i++ {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		taken[name], j.ID = true, name
		if j.Type.PerNode() && len(j.Groups) > 1 {
			w.Notes.soft("DaemonSets with pods of several shapes", "a group for each shape, on the nodes where it is")
			for _, g := range j.Groups {
				homes := slices.Compact(slices.Sorted(slices.Values(j.homes[g])))
				g.Constraints = append(g.Constraints, model.Constraint{Attribute: "node.id", Operator: model.OpIn, Values: homes})
			}
		}
	}
	w.Notes.Add(Note{Count: w.countBatch(), What: "jobs that end by themselves", Done: "run for ever: a dump does not tell how long"})
}

// cleanKind keeps the letters of a kind.
func cleanKind(kind string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, kind)
}

func (w *workforce) countBatch() (n int) {
	for _, j := range w.Jobs {
		if j.Type == model.JobBatch {
			n++
		}
	}
	return n
}

// countSpreads counts the pods whose spread kube-scheduler counts more pods for
// than those of their group.
func (w *workforce) countSpreads() {
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
			w.Notes.Add(Note{
				Count: s.pods, What: "pods with topology spread constraints that count pods of other groups too",
				Done: "those of their own group count alone", Hard: true,
			})
		}
	}
}
