package kube

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// Cluster is a dump in the model's nouns. Nothing of it is compiled.
type Cluster struct {
	*Translator
	Time       time.Time // the latest time that the dump names: when it was made, as far as it tells
	Namespaces []string
	Classes    []*model.PriorityClass
	Jobs       []*Job
	Instances  []*Instance // what runs, in the order of the dump
	Budgets    []*model.Budget

	PodsRead       int
	PodsTranslated int // that are told

	disruptionsAllowed map[*model.Budget]int32 // disruptions that a budget's status allows
}

// Job is a job with what shall happen to it.
type Job struct {
	*model.Job
	Pending      int  // instances that wait for a place: the job is to be submitted
	Terminating  bool // its instances are on their way out
	Created      time.Time
	HasNominated bool // some instance has a node in prospect

	groups      map[string]*model.Group // by shape
	targetNodes map[*model.Group][]string
}

// Instance is a pod that has a node.
type Instance struct {
	ID      string // the pod's name, with the namespace where several have it
	Pod     *Pod
	Job     *Job
	Group   *model.Group
	Node    string
	Started time.Duration // since Taken: 0 or less
}

// Translate turns a dump into the model's nouns.
func Translate(d *Dump) (*Cluster, error) {
	if len(d.Nodes)+len(d.Pods) == 0 {
		return nil, ErrEmpty
	}
	c, _ := translate(d, NewTranslator(nil, &Report{}), nil)
	return c, nil
}

// translate translates a dump. What pods want that are yet to come can be told of the
// cluster, too.
func translate(d *Dump, t *Translator, expected []*Pod) (*Cluster, *podTranslator) {
	c := &Cluster{Translator: t, PodsRead: len(d.Pods), Time: latestTime(d)}
	if len(d.Nodes) == 0 {
		c.Report.warn("dump without a node (add what `kubectl get nodes` writes)", "nothing can be placed in it, and what runs is left out")
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
	c.translateBudgets(d, w)
	c.finishLabels()
	c.nameFirstInvalidAmount()
	w.countSpreads()
	c.namespaces(d)
	for _, kind := range slices.Sorted(maps.Keys(d.Other)) {
		c.Report.Add(Note{Count: d.Other[kind], Subject: fmt.Sprintf("objects of kind %.60s", kind), Handling: "not needed"})
	}
	c.Report.Add(Note{Count: len(d.Workloads), Subject: "workloads (Deployments and the like)", Handling: "told by their pods"})
	return c, w
}

// nameFirstInvalidAmount names the first amount that is none.
func (c *Cluster) nameFirstInvalidAmount() {
	for i := range c.Report.List {
		if n := &c.Report.List[i]; n.Subject == invalidAmounts {
			n.Handling += "; the first: " + c.firstNoAmount.Error()
		}
	}
}

// latestTime is the latest time of a dump.
func latestTime(d *Dump) time.Time {
	var latest time.Time
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

// translateNodes translates nodes, and decides which resources are told.
func (c *Cluster) translateNodes(d *Dump, expected []*Pod) {
	capacity := make([]exactAmounts, len(d.Nodes))
	for i, n := range d.Nodes {
		capacity[i] = c.capacity(n)
	}
	asks := make([]exactAmounts, 0, len(d.Pods))
	quiet := &Translator{Report: &Report{}, amounts: c.amounts}
	for _, p := range slices.Concat(d.Pods, expected) {
		if !p.isFinished() {
			asks = append(asks, quiet.podRequests(p))
		}
	}
	c.chooseResources(capacity, asks)
	for i, n := range d.Nodes {
		c.Nodes = append(c.Nodes, c.node(n, capacity[i]))
	}
	c.inspectNodes()
}

// node is a node that offers some amounts.
func (c *Cluster) node(n *Node, capacity exactAmounts) *model.Node {
	node := &model.Node{ID: n.Metadata.Name, Datacenter: "dc1", Capacity: model.Resources{}, Attributes: maps.Clone(n.Metadata.Labels)}
	for name, amount := range capacity {
		if c.retained[name] {
			node.Capacity[name] = inModel(name, amount, false)
		}
	}
	node.Taints = c.taints(n)
	return node
}

// capacity is what a node offers.
func (c *Cluster) capacity(n *Node) exactAmounts {
	list := n.Status.Allocatable
	if len(list) == 0 {
		list = n.Status.Capacity
		if len(list) == 0 {
			c.Report.warn("nodes that say nothing of what they have", "kept; nothing fits there")
		} else {
			c.Report.info("nodes that do not say what they offer", "they offer what they have")
		}
	}
	e := make(exactAmounts, len(list))
	for name, q := range list {
		amount, err := c.amounts.of(resourceName(name), q, true)
		if err = c.clampTooLarge(err); err != nil || !isResource(name) {
			c.addInvalidAmount("node "+n.Metadata.Name, name, q)
			continue
		}
		e[resourceName(name)] = amount
	}
	return e
}

// classes translates priority classes.
func (c *Cluster) classes(d *Dump) {
	for _, k := range d.Classes {
		class := &model.PriorityClass{
			Name: k.Metadata.Name, Value: k.Value, GlobalDefault: k.GlobalDefault,
			NeverPreempts: k.PreemptionPolicy == neverPolicy, Description: k.Description,
		}
		if problems := class.Problems(); len(problems) > 0 {
			c.Report.info(fmt.Sprintf("priority class %s, whose %s no server takes (%s)", class.Name, problems[0].Field, problems[0].Message),
				"left out; its pods keep their priority")
			continue
		}
		c.Classes = append(c.Classes, class)
		for key := range k.Metadata.Annotations {
			if key != mirrorPod {
				c.Report.warn("priority classes with annotations of preemption toleration", "read by no policy here")
				break
			}
		}
	}
}

const neverPolicy = "Never"

// collectReadLabels notes which labels and host ports the dump makes use of.
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

// EachPerInstanceLabel visits the labels by which a pod tells other pods of one workload
// apart, once for each time that it reads them.
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

// selectors visits every selector of a pod, with the further labels it reads.
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

// finishLabels puts on groups the labels that stand for selectors.
func (c *Cluster) finishLabels() {
	for _, j := range c.Jobs {
		for _, g := range j.Groups {
			g.Labels = c.Label(j.Namespace, g.Labels)
		}
	}
}

// namespaces lists those of the dump and those that jobs are in.
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

func (p *Pod) isFinished() bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }
