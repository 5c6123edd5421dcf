package model

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// NodeStatus is whether a node's agent is there.
type NodeStatus uint8

// The states of a node.
const (
	NodeReady NodeStatus = iota
	NodeDown
)

func (s NodeStatus) String() string {
	if s == NodeDown {
		return "down"
	}
	return "ready"
}

// Node is a machine that runs allocations.
type Node struct {
	ID         string
	Name       string   // for people; "" where it is the id
	Address    string   // of the agent's HTTP listener; "": it has none
	SecretHash [32]byte // sha256 of the node's own secret; zero where nodes need none
	Datacenter string
	Class      string
	Capacity   Resources
	Reserved   Resources // never offered
	Ports      []uint16  // host ports that the host itself has taken, ascending
	Devices    []Device
	Taints     []Taint
	Attributes map[string]string
	Meta       map[string]string // what the operator says of it; read like Attributes, which go first

	Status     NodeStatus
	Ineligible bool // the operator (or the rejection tracker) wants no new work here
	Drain      bool // what runs here shall move away
	// DownSince is when the node was declared down, Unix ns; 0 while it is ready, and
	// where nobody noted it.
	DownSince int64

	CreateIndex uint64
	ModifyIndex uint64

	// Set by Compile.
	Avail    Vector // capacity less reserved
	ClassKey uint64 // equal for nodes that no constraint but one on node.id can tell apart
}

// IsEligible is whether new work may be placed here.
func (n *Node) IsEligible() bool {
	return n.Status == NodeReady && !n.Ineligible && !n.Drain
}

// IneligibleReason returns why no new allocation may be placed on the node:
// "down", "draining" or "ineligible". It returns "" if the node is Schedulable.
func (n *Node) IneligibleReason() string {
	switch {
	case n.Status != NodeReady:
		return n.Status.String()
	case n.Drain:
		return "draining"
	case n.Ineligible:
		return "ineligible"
	}
	return ""
}

// Compile derives Avail and ClassKey. The state calls it before it publishes a
// node; dims must know every name in Capacity and Reserved.
func (n *Node) Compile(dims *Dimensions) {
	n.Avail = dims.Vector(n.Capacity)
	reserved := dims.Vector(n.Reserved)
	n.Avail.Sub(&reserved)
	slices.Sort(n.Ports)
	n.ClassKey = n.classKey()
}

// classKey hashes what constraints can read of a node except its id.
func (n *Node) classKey() uint64 {
	h := xxhash.New()
	var size [4]byte
	write := func(s string) {
		binary.LittleEndian.PutUint32(size[:], uint32(len(s)))
		_, _ = h.Write(size[:])
		_, _ = h.WriteString(s)
	}
	attributes := func(m map[string]string) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			write(k)
			write(m[k])
		}
	}
	write(n.Datacenter)
	write(n.Class)
	attributes(n.Attributes)
	for _, d := range n.Devices {
		write("device")
		write(d.ID)
		write(strconv.Itoa(int(d.Count))) // a group of two serves no request for three
		attributes(d.Attributes)
	}
	for _, t := range n.Taints {
		write("taint")
		write(t.Key)
		write(t.Value)
		write(string(t.Effect))
	}
	if len(n.Meta) > 0 {
		write("meta")
		attributes(n.Meta)
	}
	return h.Sum64()
}

// Attribute looks up what constraints, affinities, spreads and topology keys
// call name: node.id, node.class, node.datacenter, or one of Attributes or of
// Meta.
func (n *Node) Attribute(name string) (string, bool) {
	switch name {
	case "node.id":
		return n.ID, true
	case "node.class":
		return n.Class, n.Class != ""
	case "node.datacenter":
		return n.Datacenter, true
	}
	if v, ok := n.Attributes[name]; ok {
		return v, true
	}
	v, ok := n.Meta[name]
	return v, ok
}

// DevicePosition is the position in Devices of the group with this id, or -1.
func (n *Node) DevicePosition(id string) int {
	return slices.IndexFunc(n.Devices, func(d Device) bool { return d.ID == id })
}
