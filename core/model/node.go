package model

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// NodeStatus reports whether the agent of a node sends heartbeats.
type NodeStatus uint8

// The statuses of a node.
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

// A Node is a machine that runs allocations.
type Node struct {
	ID         string
	Name       string   // for users; "" if equal to ID
	Address    string   // of the agent's HTTP listener; "" if there is none
	SecretHash [32]byte // sha256 of the node's secret; zero if it has none
	Datacenter string
	Class      string
	Capacity   Resources
	Reserved   Resources // never offered
	Ports      []uint16  // host ports that the host uses itself, ascending
	Devices    []Device
	Taints     []Taint
	Attributes map[string]string
	Meta       map[string]string // set by operators; read like Attributes, which take precedence

	Status     NodeStatus
	Ineligible bool // set by operators or the rejection tracker: no new allocations
	NodeDrain
	// DownSince is when the node was declared down, in Unix nanoseconds; 0 while it
	// is ready, or if the time was not recorded.
	DownSince int64

	CreateIndex uint64
	ModifyIndex uint64

	// Set by Compile.
	Avail    Vector // capacity less reserved
	ClassKey uint64 // equal for nodes that only constraints on node.id can distinguish
}

// NodeDrain is the drain of a node. The zero value means that it is not drained.
type NodeDrain struct {
	Drain bool // its allocations are to be moved
	// DrainSince is when the drain began, in Unix nanoseconds; 0 if the time was not
	// recorded.
	DrainSince int64
	// DrainDeadline is when allocations that could not be moved are stopped, in Unix
	// nanoseconds; 0: never.
	DrainDeadline int64
	// DrainEnd is when no allocation was left that the drain moves, in Unix
	// nanoseconds; 0: some are left. The node remains drained.
	DrainEnd int64
	// DrainKeepsSystem means that the allocations of system jobs stay.
	DrainKeepsSystem bool
}

// Drains reports whether the allocations of a job are to be moved from the node.
func (n *Node) Drains(j *Job) bool {
	return n.Drain && (!n.DrainKeepsSystem || j.Type != JobSystem)
}

// IsEligible reports whether new allocations may be placed on the node.
func (n *Node) IsEligible() bool {
	return n.Status == NodeReady && !n.Ineligible && !n.Drain
}

// IneligibleReason returns why no new allocation may be placed on the node: "down",
// "draining" or "ineligible". It returns "" if the node is eligible.
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
// node. dims must contain every name in Capacity and Reserved.
func (n *Node) Compile(dims *Dimensions) {
	n.Avail = dims.Vector(n.Capacity)
	reserved := dims.Vector(n.Reserved)
	n.Avail.Sub(&reserved)
	slices.Sort(n.Ports)
	n.ClassKey = n.classKey()
}

// classKey hashes the data that constraints can read of a node, except its ID.
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

// Attribute returns the value of a name in constraints, affinities, spreads and
// topology keys: node.id, node.class, node.datacenter, or one of Attributes or
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

// DevicePosition returns the position in Devices of the group with the ID, or -1.
func (n *Node) DevicePosition(id string) int {
	return slices.IndexFunc(n.Devices, func(d Device) bool { return d.ID == id })
}
