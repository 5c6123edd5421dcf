package kube

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// A Cluster is a dump translated into the model. Jobs are not compiled.
type Cluster struct {
	*Translator
	Time       time.Time // when the dump was taken; if unknown, the latest timestamp in it
	Namespaces []string
	Classes    []*model.PriorityClass
	Jobs       []*Job
	Instances  []*Instance // pods on nodes, in the order of the dump
	Budgets    []*model.Budget

	PodsRead       int
	PodsTranslated int // without those left out

	disruptionsAllowed map[*model.Budget]int32 // by the status of the budget
}

// A Job is a translated job together with the state of its pods.
type Job struct {
	*model.Job
	Pending      int  // pods without a node; if above 0 the job is submitted
	Terminating  bool // its pods have a deletion timestamp
	Created      time.Time
	HasNominated bool // a pending pod has a nominated node

	groups      map[string]*model.Group // by groupKeyOf
	targetNodes map[*model.Group][]string
}

// An Instance is a pod on a node.
type Instance struct {
	ID      string // the pod's name, with the namespace if the name is not unique
	Pod     *Pod
	Job     *Job
	Group   *model.Group
	Node    string
	Started time.Duration // relative to Cluster.Time: 0 or negative
}

// Translate translates a dump. It returns ErrEmpty if the dump has no nodes and no pods.
func Translate(d *Dump) (*Cluster, error) {
	if len(d.Nodes)+len(d.Pods) == 0 {
		return nil, ErrEmpty
	}
	c, _ := translate(d, NewTranslator(nil, &Report{}), nil)
	return c, nil
}

// translate translates a dump. Attributes and labels that the expected pods require
// are added as well, so that these pods can be translated later.
func translate(d *Dump, t *Translator, expected []*Pod) (*Cluster, *podTranslator) {
	c := &Cluster{Translator: t, PodsRead: len(d.Pods), Time: latestTime(d)}
	c.invalid.lines = d.lines
	c.claimed = newClaimReader(&d.Devices)
	c.reportDevices()
	if len(d.Nodes) == 0 {
		c.Report.warn("dump without nodes (add the output of `kubectl get nodes`)", "no pod can be placed, and running pods are left out")
	}
	c.translateNodes(d, expected)
	c.classes(d)
	c.collectReadLabels(d, expected)
	w := newPodTranslator(c, d)
	for _, p := range d.Pods {
		w.addPod(p)
	}
	for _, p := range expected {
		c.Group(p, false)
	}
	w.nameJobs()
	if !t.live {
		w.fitDevices()
	}
	c.translateBudgets(d, w)
	c.finishLabels()
	c.nameFirstInvalidAmount()
	w.countSpreads()
	c.namespaces(d)
	for _, kind := range slices.Sorted(maps.Keys(d.Other)) {
		c.Report.Add(Note{Count: d.Other[kind], Subject: fmt.Sprintf("objects of kind %.60s", kind), Handling: "not needed"})
	}
	c.Report.Add(Note{Count: len(d.Workloads), Subject: "workloads, such as Deployments", Handling: "represented by their pods"})
	return c, w
}

// nameFirstInvalidAmount adds the first invalid quantity to the note that counts them.
func (c *Cluster) nameFirstInvalidAmount() {
	for i := range c.Report.List {
		if n := &c.Report.List[i]; n.Subject == invalidAmounts {
			n.Handling += "; the first: " + c.invalid.firstAmount.Error()
		}
	}
}

// latestTime returns the time at which a dump was read, or the latest timestamp in it.
func latestTime(d *Dump) time.Time {
	latest := d.Time
	see := func(text string) {
		if t := timeOf(text); t.After(latest) {
			latest = t
		}
	}
	for _, n := range d.Nodes {
		see(n.Metadata.CreationTimestamp)
		for i := range n.Status.Conditions {
			see(n.Status.Conditions[i].LastHeartbeatTime)
		}
	}
	for _, p := range d.Pods {
		see(p.Metadata.CreationTimestamp)
		see(p.Status.StartTime)
	}
	return latest
}

// translateNodes chooses the resources to retain and translates the nodes.
func (c *Cluster) translateNodes(d *Dump, expected []*Pod) {
	capacity := make([]exactAmounts, len(d.Nodes))
	reader := c.requestReader()
	for i, n := range d.Nodes {
		capacity[i] = reader.node(n)
	}
	asks := make([]exactAmounts, 0, len(d.Pods))
	unreported := requestReader{c.amounts, &Report{}, &invalidValues{}}
	for _, p := range slices.Concat(d.Pods, expected) {
		if !p.IsFinished() {
			asks = append(asks, unreported.pod(p))
		}
	}
	c.chooseResources(capacity, asks)
	for i, n := range d.Nodes {
		c.Nodes = append(c.Nodes, c.node(n, capacity[i]))
	}
	c.inspectNodes()
}

// node translates a node with the given exact capacity.
func (c *Cluster) node(n *Node, capacity exactAmounts) *model.Node {
	node := &model.Node{ID: n.Metadata.Name, Datacenter: "dc1", Capacity: model.Resources{}, Attributes: maps.Clone(n.Metadata.Labels)}
	for name, amount := range capacity {
		if c.retained[name] {
			node.Capacity[name] = inModel(name, amount, false)
		}
	}
	node.Taints = translateTaints(n, c.Report)
	node.Devices = c.claimed.devices(node.ID)
	return node
}

// classes translates priority classes. Those that violate the model's rules are left out.
func (c *Cluster) classes(d *Dump) {
	for _, k := range d.Classes {
		class := &model.PriorityClass{
			Name: k.Metadata.Name, Value: k.Value, GlobalDefault: k.GlobalDefault,
			NeverPreempts: k.PreemptionPolicy == neverPolicy, Description: k.Description,
		}
		if problems := class.Problems(); len(problems) > 0 {
			c.Report.info(fmt.Sprintf("priority class %s with an invalid %s (%s)", class.Name, problems[0].Field, problems[0].Message),
				"left out; its pods keep their priority")
			continue
		}
		c.Classes = append(c.Classes, class)
		for key := range k.Metadata.Annotations {
			if key != mirrorPod {
				c.Report.warn("priority classes with preemption toleration annotations", "annotations ignored")
				break
			}
		}
	}
}

const neverPolicy = "Never"

// collectReadLabels records the labels that selectors read and reserves host ports.
func (c *Cluster) collectReadLabels(d *Dump, expected []*Pod) {
	read := func(key string) { c.readLabels[key] = true }
	for _, p := range slices.Concat(d.Pods, expected) {
		p.selectors(func(s *LabelSelector, keys []string) {
			s.keys(read)
			for _, key := range keys {
				read(key)
			}
		})
	}
	for _, b := range d.Budgets {
		b.Spec.Selector.keys(read)
	}
	c.ports.reserve(slices.Concat(d.Pods, expected))
}

// EachPerInstanceLabel calls visit with each per-instance label that the pod's
// selectors read, once per occurrence.
func (p *Pod) EachPerInstanceLabel(visit func(label string)) {
	read := func(key string) {
		if slices.Contains(perInstance, key) {
			visit(key)
		}
	}
	p.selectors(func(s *LabelSelector, keys []string) {
		s.keys(read)
		for _, key := range keys {
			read(key)
		}
	})
}

// EachPerInstanceLabel calls visit with each per-instance label that the budget's
// selector reads, once per occurrence.
func (b *Budget) EachPerInstanceLabel(visit func(label string)) {
	b.Spec.Selector.keys(func(key string) {
		if slices.Contains(perInstance, key) {
			visit(key)
		}
	})
}

// selectors calls visit with each selector of a pod and its matchLabelKeys.
func (p *Pod) selectors(visit func(*LabelSelector, []string)) {
	for i := range p.Spec.TopologySpreadConstraints {
		w := &p.Spec.TopologySpreadConstraints[i]
		visit(w.Selector, w.MatchLabelKeys)
	}
	if p.Spec.Affinity == nil {
		return
	}
	for _, a := range []*PodAffinity{p.Spec.Affinity.Pod, p.Spec.Affinity.PodAnti} {
		if a == nil {
			continue
		}
		for i := range a.Required {
			w := &a.Required[i]
			visit(w.Selector, slices.Concat(w.MatchLabelKeys, w.MismatchLabelKeys))
		}
	}
}

// finishLabels adds the selector labels to the groups.
func (c *Cluster) finishLabels() {
	for _, j := range c.Jobs {
		for _, g := range j.Groups {
			g.Labels = c.Label(j.Namespace, g.Labels)
		}
	}
}

// namespaces lists the namespaces of the dump and of all jobs.
func (c *Cluster) namespaces(d *Dump) {
	seen := map[string]bool{}
	for _, n := range d.Namespaces {
		seen[n.Metadata.Name] = true
	}
	for _, j := range c.Jobs {
		seen[j.Namespace] = true
	}
	c.Namespaces = slices.Sorted(maps.Keys(seen))
}

// IsFinished reports whether all containers of the pod have ended.
func (p *Pod) IsFinished() bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }
