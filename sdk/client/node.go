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

	// Capacity is the node's capacity and ReservedCapacity the part of it that is not
	// offered: cpu in millicores, memory and disk in MiB, network in Mbit/s, any
	// other name in whole units.
	Capacity         map[string]int64
	ReservedCapacity map[string]int64 `json:",omitempty"`
	ReservedPorts    []uint16         `json:",omitempty"` // host ports that the host itself uses
	Devices          []NodeDevice     `json:",omitempty"`
	Taints           []Taint          `json:",omitempty"` // repel groups that do not tolerate them

	// Set by the server.

	NodeResources         *NodeResources         `json:",omitempty"` // Capacity in Nomad's form
	ReservedResources     *NodeReservedResources `json:",omitempty"` // ReservedCapacity in Nomad's form
	Drain                 bool                   // its allocations are moved to other nodes
	DrainStrategy         *DrainStrategy         `json:",omitempty"` // while a drain has allocations left to move
	LastDrain             *DrainMetadata         `json:",omitempty"` // progress of the drain
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
	Attributes            map[string]string `json:",omitempty"` // only with the parameter os=true, as in Nomad
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

// NodeDevice is one group of identical devices on a node.
type NodeDevice struct {
	ID         string // vendor/type/model
	Count      int
	Attributes map[string]string `json:",omitempty"`
}

// Taint repels groups that do not tolerate it. Running allocations remain, unless the
// effect is NoExecute. A node has at most one taint per key and effect.
type Taint struct {
	Key    string
	Value  string `json:",omitempty"`
	Effect string // NoSchedule; PreferNoSchedule: other nodes are preferred; NoExecute: running allocations are evicted
	Set    bool   `json:",omitempty"` // set by an operator; otherwise declared by the node
	Since  int64  `json:",omitempty"` // for NoExecute, Unix ns at which the node got it; set by the server
}

// String returns key=value:effect, as Kubernetes writes it.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// NodeUpdateTaintsRequest changes the taints that operators set on a node: those of
// Untaint are removed first, then those of Taint are set.
type NodeUpdateTaintsRequest struct {
	NodeID  string  `json:",omitempty"`
	Untaint []Taint `json:",omitempty"` // by key and effect; without an effect, all effects of the key
	Taint   []Taint `json:",omitempty"`
}

// NodeResources is a node's capacity in Nomad's form.
type NodeResources struct {
	Cpu    NodeCPUResources
	Memory NodeMemoryResources
	Disk   NodeDiskResources
}

// NodeCPUResources holds a node's processors.
type NodeCPUResources struct {
	CpuShares int64
}

// NodeMemoryResources holds a node's memory.
type NodeMemoryResources struct {
	MemoryMB int64
}

// NodeDiskResources holds a node's disk.
type NodeDiskResources struct {
	DiskMB int64
}

// NodeReservedResources is a node's ReservedCapacity in Nomad's form.
type NodeReservedResources struct {
	Cpu    NodeCPUResources
	Memory NodeMemoryResources
	Disk   NodeDiskResources
}

// NodeUpdateDrainRequest starts or ends a node's drain.
type NodeUpdateDrainRequest struct {
	NodeID       string     `json:",omitempty"`
	DrainSpec    *DrainSpec // null ends the drain
	MarkEligible bool       `json:",omitempty"` // when the drain ends: make the node eligible
}

// DrainSpec holds the options of a drain.
type DrainSpec struct {
	Deadline         time.Duration `json:",omitempty"` // ns after which allocations that could not be moved are stopped; 0: never; negative: at once
	IgnoreSystemJobs bool          `json:",omitempty"` // leave the allocations of system jobs
}

// DrainStrategy holds the options of a drain that has allocations left to move.
type DrainStrategy struct {
	DrainSpec
	ForceDeadline time.Time // when they are stopped; the zero time: never
	StartedAt     time.Time
}

// The statuses of a drain.
const (
	Draining      = "draining"
	DrainComplete = "complete"
)

// DrainMetadata is the progress of a node's drain.
type DrainMetadata struct {
	StartedAt time.Time
	UpdatedAt time.Time
	Status    string // draining or complete
}

// NodeUpdateEligibilityRequest sets whether a node accepts new allocations.
type NodeUpdateEligibilityRequest struct {
	NodeID      string `json:",omitempty"`
	Eligibility string // eligible or ineligible
}

// NodeUpdateResponse is the result of changing a node.
type NodeUpdateResponse struct {
	NodeModifyIndex uint64
	EvalCreateIndex uint64
	Index           uint64
}

// NodeRegisterRequest registers a node. Its agent sends it.
type NodeRegisterRequest struct {
	Node   *Node
	Secret string // the node's secret; later requests of the agent must carry it
}

// NodeLease is the time until which the server expects the next heartbeat.
type NodeLease struct {
	Index        uint64
	HeartbeatTTL time.Duration // ns
}

// AllocUpdate is a node's report on one allocation.
type AllocUpdate struct {
	AllocID      string
	ClientStatus string // pending, running, complete or failed
	Description  string `json:",omitempty"` // of a complete allocation: why the node stopped it; empty if it ended by itself
	EvictedBy    string `json:",omitempty"` // pressure: the node evicted it because of memory pressure
	StartTime    int64  `json:",omitempty"` // Unix nanoseconds at which it started
}

// AllocUpdateRequest holds a node's reports on its allocations.
type AllocUpdateRequest struct {
	Updates []AllocUpdate
}

// IndexResponse holds the index at which a write is visible.
type IndexResponse struct {
	Index uint64
}
