package kube

import (
	"maps"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// A nodeIndex holds the untranslated nodes and the aggregates over all nodes on which
// the translation of pods depends.
type nodeIndex struct {
	objects         map[string]*Node
	position        map[string]int // in Cluster.Nodes
	hostnames       map[string]int // nodes per hostname label
	withoutHostname int
	withPodSlots    int // nodes with allocatable pods
}

// indexNodes indexes the nodes of a dump, which are translated already.
func (r *IncrementalCluster) indexNodes(d *Dump) {
	r.index = nodeIndex{objects: make(map[string]*Node, len(d.Nodes)), position: make(map[string]int, len(d.Nodes)), hostnames: map[string]int{}}
	for i, n := range d.Nodes {
		r.index.objects[n.Metadata.Name], r.index.position[n.Metadata.Name] = n, i
		r.countNode(n, 1)
	}
}

// countNode adds a node to the aggregates, or removes it if by is -1.
func (r *IncrementalCluster) countNode(n *Node, by int) {
	c := &r.index
	if r.requestReader().node(n)[podSlots] > 0 {
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

// isConsistent reports whether the aggregates over all nodes are still those that
// pods were translated with: unique hostnames and the presence of pod slots.
func (r *IncrementalCluster) isConsistent() bool {
	apart := r.index.withoutHostname == 0 && len(r.index.hostnames) == len(r.Nodes)
	return apart == r.uniqueHostnames && (r.index.withPodSlots > 0) == r.hasPodSlots
}

// UpsertNode adds or replaces a node and returns its translation. It returns false if
// the cluster must be rebuilt.
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

// translateNode replaces the translation of a node.
func (r *IncrementalCluster) translateNode(n *Node) (*model.Node, bool) {
	if !r.isTranslatable(n) {
		return nil, false
	}
	node := r.node(n, r.requestReader().node(n))
	for name, holds := range r.nodeSetMembers {
		if holds(node) {
			setAttribute(node, name)
		}
	}
	r.Nodes[r.index.position[node.ID]], r.pods.nodes[node.ID] = node, node
	r.pods.raiseCapacity(node)
	return node, true
}

// isTranslatable reports whether the labels of a node are compatible with the others:
// no label has the prefix of a node set, and numeric labels have numeric values.
func (r *IncrementalCluster) isTranslatable(n *Node) bool {
	for label, value := range n.Metadata.Labels {
		if strings.HasPrefix(label, nodeSetPrefix) || r.numeric[label] && !isWholeNumber(value) {
			return false
		}
	}
	return true
}

// DeleteNode removes a node without pods. It returns false if the cluster must be
// rebuilt, and true if the node is unknown.
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

// keepsTextLabels reports whether each label that the previous version of a node kept
// from being numeric still has a non-numeric value on some node. If not, constraints
// on the label would be translated differently.
func (r *IncrementalCluster) keepsTextLabels(was *Node) bool {
	if was == nil {
		return true
	}
	for label, value := range was.Metadata.Labels {
		if numbers, known := r.numeric[label]; known && !numbers && !isWholeNumber(value) && allNumbers(r.Nodes, label) {
			return false
		}
	}
	return true
}

// RefreshNode returns a new translation of a node after pods were added or removed,
// or nil if it is unchanged. Only nodes with requests above their allocatable
// resources change. It returns false if the cluster must be rebuilt.
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
