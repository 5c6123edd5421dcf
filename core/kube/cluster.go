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
	Taken      time.Time // the latest time that the dump names: when it was made, as far as it tells
	Namespaces []string
	Classes    []*model.PriorityClass
	Jobs       []*Job
	Instances  []*Instance // what runs, in the order of the dump
	Budgets    []*model.Budget

	PodsRead int
	Pods     int // that are told

	allows map[*model.Budget]int32 // disruptions that a budget's status allows
}

// Job is a job with what shall happen to it.
type Job struct {
	*model.Job
	Pending   int  // instances that wait for a place: the job is to be submitted
	Stops     bool // its instances are on their way out
	Created   time.Time
	Nominated bool // some instance has a node in prospect

	groups map[string]*model.Group // by shape
	homes  map[*model.Group][]string
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
	c, _ := translate(d, NewTranslator(nil, &Notes{}), nil)
	return c, nil
}

// translate translates a dump. What pods want that are yet to come can be told of the
// cluster, too.
func translate(d *Dump, t *Translator, expected []*Pod) (*Cluster, *workforce) {
	c := &Cluster{Translator: t, PodsRead: len(d.Pods), Taken: taken(d)}
	if len(d.Nodes) == 0 {
		c.Notes.hard("dump without a node (add what `kubectl get nodes` writes)", "nothing can be placed in it, and what runs is left out")
	}
	c.translateNodes(d, expected)
	c.classes(d)
	c.lookAhead(d, expected)
	w := newWorkforce(c, d)
	for _, p := range d.Pods {
		w.pod(p)
	}
	for _, p := range expected {
		c.Group(p, false)
	}
	w.finish()
	c.translateBudgets(d, w)
	c.finishLabels()
	c.nameAmounts()
	w.countSpreads()
	c.namespaces(d)
	for _, kind := range slices.Sorted(maps.Keys(d.Other)) {
		c.Notes.Add(Note{Count: d.Other[kind], What: fmt.Sprintf("objects of kind %.60s", kind), Done: "not needed"})
	}
	c.Notes.Add(Note{Count: len(d.Workloads), What: "workloads (Deployments and the like)", Done: "told by their pods"})
	return c, w
}

// nameAmounts names the first amount that is none.
func (c *Cluster) nameAmounts() {
	for i := range c.Notes.List {
		if n := &c.Notes.List[i]; n.What == noAmounts {
			n.Done += "; the first: " + c.firstNoAmount.Error()
		}
	}
}

// taken is the latest time of a dump.
func taken(d *Dump) time.Time {
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
	capacity := make([]exact, len(d.Nodes))
	for i, n := range d.Nodes {
		capacity[i] = c.capacity(n)
	}
	asks := make([]exact, 0, len(d.Pods))
	quiet := &Translator{Notes: &Notes{}, amounts: c.amounts}
	for _, p := range slices.Concat(d.Pods, expected) {
		if !p.finished() {
			asks = append(asks, quiet.asked(p))
		}
	}
	c.chooseResources(capacity, asks)
	for i, n := range d.Nodes {
		c.Nodes = append(c.Nodes, c.node(n, capacity[i]))
	}
	c.lookAtNodes()
}

// node is a node that offers some amounts.
func (c *Cluster) node(n *Node, capacity exact) *model.Node {
	node := &model.Node{ID: n.Metadata.Name, Datacenter: "dc1", Capacity: model.Resources{}, Attributes: maps.Clone(n.Metadata.Labels)}
	for name, amount := range capacity {
		if c.told[name] {
			node.Capacity[name] = inModel(name, amount, false)
		}
	}
	node.Taints = c.taints(n)
	return node
}

// capacity is what a node offers.
func (c *Cluster) capacity(n *Node) exact {
	list := n.Status.Allocatable
	if len(list) == 0 {
		list = n.Status.Capacity
		if len(list) == 0 {
			c.Notes.hard("nodes that say nothing of what they have", "kept; nothing fits there")
		} else {
			c.Notes.soft("nodes that do not say what they offer", "they offer what they have")
		}
	}
	e := make(exact, len(list))
	for name, q := range list {
		amount, err := c.amounts.of(resourceName(name), q, true)
		if err = c.atMost(err); err != nil || !isResource(name) {
			c.noAmount("node "+n.Metadata.Name, name, q)
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
			NeverPreempts: k.PreemptionPolicy == never, Description: k.Description,
		}
		if problems := class.Problems(); len(problems) > 0 {
			c.Notes.soft(fmt.Sprintf("priority class %s, whose %s no server takes (%s)", class.Name, problems[0].Field, problems[0].Message),
				"left out; its pods keep their priority")
			continue
		}
		c.Classes = append(c.Classes, class)
		for key := range k.Metadata.Annotations {
			if key != mirrorPod {
				c.Notes.hard("priority classes with annotations of preemption toleration", "read by no policy here")
				break
			}
		}
	}
}

const never = "Never"

// lookAhead notes which labels and host ports the dump makes use of.
func (c *Cluster) lookAhead(d *Dump, expected []*Pod) {
	read := func(key string) { c.keeps[key] = true }
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

// TellsSiblingsBy visits the labels by which a pod tells other pods of one workload
// apart, once for each time that it reads them.
func (p *Pod) TellsSiblingsBy(visit func(label string)) {
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

func (p *Pod) finished() bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }
