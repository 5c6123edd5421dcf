package kube

import (
	"maps"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// nodeIndex is what is told of the nodes of a roster, and what a roster must know of all of
// them to see whether another one changes what was told of pods.
type nodeIndex struct {
	objects         map[string]*Node
	position        map[string]int // of a node in Cluster.Nodes
	hostnames       map[string]int // how many nodes have a hostname
	withoutHostname int
	withPodSlots    int // how many offer slots for pods
}

// indexNodes takes in the nodes of a dump, which are told already.
func (r *IncrementalCluster) indexNodes(d *Dump) {
	r.index = nodeIndex{objects: make(map[string]*Node, len(d.Nodes)), position: make(map[string]int, len(d.Nodes)), hostnames: map[string]int{}}
	for i, n := range d.Nodes {
		r.index.objects[n.Metadata.Name], r.index.position[n.Metadata.Name] = n, i
		r.countNode(n, 1)
	}
}

// countNode counts a node with the others, or no more.
func (r *IncrementalCluster) countNode(n *Node, by int) {
	c := &r.index
	if r.capacity(n)[podSlots] > 0 {
		c.withPodSlots += by
	}
	host, ok := n.Metadata.Labels[hostname]
	if !ok {
		c.withoutHostname += by
		return
	}
	if c.hostnames[host] += by; c.hostnames[host] == 0 {
		delete(c.hostnames, host)
	}
}

// isConsistent is whether what pods were told by the nodes as a whole still holds: by
// whether hostnames tell nodes apart, and whether they have slots.
func (r *IncrementalCluster) isConsistent() bool {
	apart := r.index.withoutHostname == 0 && len(r.index.hostnames) == len(r.Nodes)
	return apart == r.uniqueHostnames && (r.index.withPodSlots > 0) == r.hasPodSlots
}

// UpsertNode takes in a node that has come, or another version of one that is there, and
// returns it as it is told now. It is false where this roster cannot tell it.
func (r *IncrementalCluster) UpsertNode(n *Node) (*model.Node, bool) {
	name := n.Metadata.Name
	r.Report = &Report{}
	old := r.index.objects[name]
	if old != nil {
		r.countNode(old, -1)
	} else {
		r.index.position[name] = len(r.Nodes)
		r.Nodes = append(r.Nodes, nil)
	}
	r.index.objects[name] = n
	r.countNode(n, 1)
	node, ok := r.translateNode(n)
	return node, ok && r.isConsistent() && r.keepsTextLabels(old)
}

// translateNode puts another version of a node in the place of the last.
func (r *IncrementalCluster) translateNode(n *Node) (*model.Node, bool) {
	if !r.isTranslatable(n) {
		return nil, false
	}
	node := r.node(n, r.capacity(n))
	for name, holds := range r.nodeSetMembers {
		if holds(node) {
			setAttribute(node, name)
		}
	}
	r.Nodes[r.index.position[node.ID]], r.pods.nodes[node.ID] = node, node
	r.pods.raiseCapacity(node)
	return node, true
}

// isTranslatable is whether a node's labels can be told beside those of the others: whether
// none looks like an attribute that was made, and those that were numbers still are.
func (r *IncrementalCluster) isTranslatable(n *Node) bool {
	for label, value := range n.Metadata.Labels {
		if strings.HasPrefix(label, nodeSetPrefix) || r.numeric[label] && !isWholeNumber(value) {
			return false
		}
	}
	return true
}

// DeleteNode lets go of a node that has nobody on it any more. It is false where this roster
// cannot tell the rest without it.
func (r *IncrementalCluster) DeleteNode(name string) bool {
	n := r.index.objects[name]
	if n == nil {
		return true
	}
	r.Report = &Report{}
	r.countNode(n, -1)
	at, last := r.index.position[name], len(r.Nodes)-1
	r.Nodes[at] = r.Nodes[last]
	r.index.position[r.Nodes[at].ID] = at
	r.Nodes[last], r.Nodes = nil, r.Nodes[:last]
	delete(r.index.objects, name)
	delete(r.index.position, name)
	delete(r.pods.nodes, name)
	delete(r.pods.usage, name)
	delete(r.pods.raised, name)
	delete(r.pods.portConflicts, name)
	return r.isConsistent() && r.keepsTextLabels(n)
}

// keepsTextLabels is whether the labels of which a node, that is told otherwise now, had a
// value that is no number have such values without it.
func (r *IncrementalCluster) keepsTextLabels(was *Node) bool {
	if was == nil {
		return true
	}
	for label, value := range was.Metadata.Labels {
		if numbers, known := r.numeric[label]; known && !numbers && !isWholeNumber(value) && r.allNumbers(label) {
			return false
		}
	}
	return true
}

// RefreshNode is a node as it is told after pods came to it or left it, where they ask for
// more than it offers, or no more so; nil: it stays as it is. It is false where this
// roster cannot tell it.
func (r *IncrementalCluster) RefreshNode(name string) (*model.Node, bool) {
	old, u := r.pods.nodes[name], r.pods.usage[name]
	if old == nil || u == nil || !r.pods.raised[name] && !u.exceeds(old) {
		return nil, true
	}
	r.Report = &Report{}
	node, ok := r.translateNode(r.index.objects[name])
	if !ok || maps.Equal(node.Capacity, old.Capacity) {
		return nil, ok
	}
	return node, true
}
