package client

import "time"

// Node is a machine that runs allocations.
type Node struct {
	ID         string
	Name       string
	Datacenter string
	NodeClass  string            `json:",omitempty"`
	HTTPAddr   string            `json:",omitempty"` // of its agent; may be empty
	Attributes map[string]string `json:",omitempty"`
	Meta       map[string]string `json:",omitempty"`

	// Capacity is what the node has and ReservedCapacity what is never offered of
	// it: cpu in millicores, memory and disk in MiB, network in Mbit/s, any other
	// name in whole units.
	Capacity         map[string]int64
	ReservedCapacity map[string]int64 `json:",omitempty"`
	ReservedPorts    []uint16         `json:",omitempty"` // host ports that the host itself has taken
	Devices          []NodeDevice     `json:",omitempty"`
	Taints           []Taint          `json:",omitempty"` // keep groups off that do not tolerate them

	// Set by the server.

	NodeResources         *NodeResources         `json:",omitempty"` // Capacity in Nomad's form
	ReservedResources     *NodeReservedResources `json:",omitempty"` // ReservedCapacity in Nomad's form
	Drain                 bool                   // what runs here shall move away
	SchedulingEligibility string                 `json:",omitempty"` // eligible or ineligible
	Status                string                 `json:",omitempty"` // ready or down
	StatusDescription     string                 `json:",omitempty"`
	CreateIndex           uint64
	ModifyIndex           uint64
}

// NodeStub is a node in a list.
type NodeStub struct {
	ID                    string
	Name                  string
	Address               string
	Datacenter            string
	NodeClass             string
	Attributes            map[string]string `json:",omitempty"` // asked for with os=true, as of Nomad
	Capacity              map[string]int64
	ReservedCapacity      map[string]int64 `json:",omitempty"`
	Devices               []NodeDevice     `json:",omitempty"`
	Taints                []Taint          `json:",omitempty"`
	Drain                 bool
	SchedulingEligibility string
	Status                string
	StatusDescription     string
	NodeResources         *NodeResources         `json:",omitempty"`
	ReservedResources     *NodeReservedResources `json:",omitempty"`
	CreateIndex           uint64
	ModifyIndex           uint64
}

// NodeDevice is one group of equal devices on a node.
type NodeDevice struct {
	ID         string // vendor/type/model
	Count      int
	Attributes map[string]string `json:",omitempty"`
}

// Taint keeps groups off a node that do not tolerate it. What runs there already
// stays, unless the effect is NoExecute. A node has one of a key and effect.
type Taint struct {
	Key    string
	Value  string `json:",omitempty"`
	Effect string // NoSchedule; PreferNoSchedule: elsewhere where there is room; NoExecute: what runs there leaves
	Set    bool   `json:",omitempty"` // by an operator; else the node declares it
	Since  int64  `json:",omitempty"` // of NoExecute, Unix ns: when the node got it; set by the server
}

// String is key=value:effect, as Kubernetes writes it.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// NodeUpdateTaintsRequest changes the taints that operators set on a node: first
// some are taken away, then others set.
type NodeUpdateTaintsRequest struct {
	NodeID  string  `json:",omitempty"`
	Untaint []Taint `json:",omitempty"` // by key and effect; without an effect: of every one
	Taint   []Taint `json:",omitempty"`
}

// NodeResources is a node's capacity in Nomad's form.
type NodeResources struct {
	Cpu    NodeCPUResources
	Memory NodeMemoryResources
	Disk   NodeDiskResources
}

// NodeCPUResources is a node's processors.
type NodeCPUResources struct {
	CpuShares int64
}

// NodeMemoryResources is a node's memory.
type NodeMemoryResources struct {
	MemoryMB int64
}

// NodeDiskResources is a node's disk.
type NodeDiskResources struct {
	DiskMB int64
}

// NodeReservedResources is what of a node is never offered, in Nomad's form.
type NodeReservedResources struct {
	Cpu    NodeCPUResources
	Memory NodeMemoryResources
	Disk   NodeDiskResources
}

// NodeUpdateDrainRequest starts or ends a node's drain.
type NodeUpdateDrainRequest struct {
	NodeID       string     `json:",omitempty"`
	DrainSpec    *DrainSpec // null: the drain ends
	MarkEligible bool       `json:",omitempty"` // with the end of a drain: take work again
}

// DrainSpec is how a node is drained.
type DrainSpec struct {
	Deadline         time.Duration `json:",omitempty"` // ns; carried for Nomad's clients: allocations move at once
	IgnoreSystemJobs bool          `json:",omitempty"` // carried for Nomad's clients
}

// NodeUpdateEligibilityRequest says whether a node takes new work.
type NodeUpdateEligibilityRequest struct {
	NodeID      string `json:",omitempty"`
	Eligibility string // eligible or ineligible
}

// NodeUpdateResponse says what changing a node came to.
type NodeUpdateResponse struct {
	NodeModifyIndex uint64
	EvalCreateIndex uint64
	Index           uint64
}

// NodeRegisterRequest is an agent's first word.
type NodeRegisterRequest struct {
	Node   *Node
	Secret string // the node's own; what is said of the node later must carry it
}

// NodeLease is how long the server waits for the next heartbeat.
type NodeLease struct {
	Index        uint64
	HeartbeatTTL time.Duration // ns
}

// AllocUpdate is what a node says of one allocation.
type AllocUpdate struct {
	AllocID      string
	ClientStatus string // pending, running, complete or failed
	Description  string `json:",omitempty"`
	EvictedBy    string `json:",omitempty"` // pressure: the node evicted it by itself, under memory pressure
	StartTime    int64  `json:",omitempty"` // Unix nanoseconds at which it started to work
}

// AllocUpdateRequest is what a node says of its allocations.
type AllocUpdateRequest struct {
	Updates []AllocUpdate
}

// IndexResponse is the index at which a write is visible.
type IndexResponse struct {
	Index uint64
}
