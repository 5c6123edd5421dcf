package kube

import (
	"maps"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
)

// crew is what is told of the nodes of a roster, and what a roster must know of all of
// them to see whether another one changes what was told of pods.
type crew struct {
	from     map[string]*Node
	at       map[string]int // of a node in Cluster.Nodes
	hosts    map[string]int // how many nodes have a hostname
	hostless int
	slotted  int // how many offer slots for pods
}

// enlist takes in the nodes of a dump, which are told already.
func (r *Roster) enlist(d *Dump) {
	r.crew = crew{from: make(map[string]*Node, len(d.Nodes)), at: make(map[string]int, len(d.Nodes)), hosts: map[string]int{}}
	for i, n := range d.Nodes {
		r.crew.from[n.Metadata.Name], r.crew.at[n.Metadata.Name] = n, i
		r.countNode(n, 1)
	}
}

// countNode counts a node with the others, or no more.
func (r *Roster) countNode(n *Node, by int) {
	c := &r.crew
	if r.capacity(n)[podSlots] > 0 {
		c.slotted += by
	}
	host, ok := n.Metadata.Labels[hostname]
	if !ok {
		c.hostless += by
		return
	}
	if c.hosts[host] += by; c.hosts[host] == 0 {
		delete(c.hosts, host)
	}
}

// agrees is whether what pods were told by the nodes as a whole still holds: by
// whether hostnames tell nodes apart, and whether they have slots.
func (r *Roster) agrees() bool {
	apart := r.crew.hostless == 0 && len(r.crew.hosts) == len(r.Nodes)
	return apart == r.hosts && (r.crew.slotted > 0) == r.slots
}

// Put takes in a node that has come, or another version of one that is there, and
// returns it as it is told now. It is false where this roster cannot tell it.
func (r *Roster) Put(n *Node) (*model.Node, bool) {
	name := n.Metadata.Name
	r.Notes = &Notes{}
	old := r.crew.from[name]
	if old != nil {
		r.countNode(old, -1)
	} else {
		r.crew.at[name] = len(r.Nodes)
		r.Nodes = append(r.Nodes, nil)
	}
	r.crew.from[name] = n
	r.countNode(n, 1)
	node, ok := r.tell(n)
	return node, ok && r.agrees() && r.stillOdd(old)
}

// tell puts another version of a node in the place of the last.
func (r *Roster) tell(n *Node) (*model.Node, bool) {
	if !r.speaks(n) {
		return nil, false
	}
	node := r.node(n, r.capacity(n))
	for name, holds := range r.meant {
		if holds(node) {
			setAttribute(node, name)
		}
	}
	r.Nodes[r.crew.at[node.ID]], r.force.nodes[node.ID] = node, node
	r.force.raiseNode(node)
	return node, true
}

// speaks is whether a node's labels can be told beside those of the others: whether
// none looks like an attribute that was made, and those that were numbers still are.
func (r *Roster) speaks(n *Node) bool {
	for label, value := range n.Metadata.Labels {
		if strings.HasPrefix(label, markNodes) || r.numeric[label] && !wholeNumber(value) {
			return false
		}
	}
	return true
}

// Drop lets go of a node that has nobody on it any more. It is false where this roster
// cannot tell the rest without it.
func (r *Roster) Drop(name string) bool {
	n := r.crew.from[name]
	if n == nil {
		return true
	}
	r.Notes = &Notes{}
	r.countNode(n, -1)
	at, last := r.crew.at[name], len(r.Nodes)-1
	r.Nodes[at] = r.Nodes[last]
	r.crew.at[r.Nodes[at].ID] = at
	r.Nodes[last], r.Nodes = nil, r.Nodes[:last]
	delete(r.crew.from, name)
	delete(r.crew.at, name)
	delete(r.force.nodes, name)
	delete(r.force.used, name)
	delete(r.force.raised, name)
	delete(r.force.clashed, name)
	return r.agrees() && r.stillOdd(n)
}

// stillOdd is whether the labels of which a node, that is told otherwise now, had a
// value that is no number have such values without it.
func (r *Roster) stillOdd(was *Node) bool {
	if was == nil {
		return true
	}
	for label, value := range was.Metadata.Labels {
		if numbers, known := r.numeric[label]; known && !numbers && !wholeNumber(value) && r.allNumbers(label) {
			return false
		}
	}
	return true
}

// Retell is a node as it is told after pods came to it or left it, where they ask for
// more than it offers, or no more so; nil: it stays as it is. It is false where this
// roster cannot tell it.
func (r *Roster) Retell(name string) (*model.Node, bool) {
	old, u := r.force.nodes[name], r.force.used[name]
	if old == nil || u == nil || !r.force.raised[name] && !u.exceeds(old) {
		return nil, true
	}
	r.Notes = &Notes{}
	node, ok := r.tell(r.crew.from[name])
	if !ok || maps.Equal(node.Capacity, old.Capacity) {
		return nil, ok
	}
	return node, true
}
