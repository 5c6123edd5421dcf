package client

// Allocation is one instance of a group on a node, whole.
type Allocation struct {
	ID                 string
	Name               string // job.group[index], with #n for its n-th replacement
	Namespace          string
	EvalID             string
	NodeID             string
	NodeName           string `json:",omitempty"`
	JobID              string
	JobVersion         uint64
	Job                *Job `json:",omitempty"` // the version that it was placed for
	TaskGroup          string
	Priority           int
	DesiredStatus      string // run, stop or evict (a victim of preemption)
	DesiredDescription string
	ClientStatus       string // pending, running, complete, failed or lost; unknown while it is kept for a node that is silent
	ClientDescription  string

	// PreemptedAllocations are the victims that made room for this allocation,
	// PreemptedByAllocation what made this one a victim; the names below are the
	// same things.
	PreemptedAllocations  []string `json:",omitempty"`
	PreemptedByAllocation string   `json:",omitempty"`
	PreemptedAllocs       []string `json:",omitempty"`
	PreemptedByAllocID    string   `json:",omitempty"`
	PolicyVersion         string   `json:",omitempty"` // that chose the victims

	AllocatedResources *AllocatedResources `json:",omitempty"` // in Nomad's form
	ResourceUse        map[string]int64    `json:",omitempty"` // every resource by name, in the engine's units
	Ports              []uint16            `json:",omitempty"` // host ports
	Devices            []DeviceUse         `json:",omitempty"`
	Score              float64             `json:",omitempty"`
	Index              int                 // which of the group's instances
	Incarnation        int                 `json:",omitempty"` // 0 for the first allocation of this index
	SavedWork          int64               `json:",omitempty"` // ns of work inherited from earlier incarnations

	CreateTime       int64 // Unix nanoseconds
	StartTime        int64 `json:",omitempty"` // Unix nanoseconds; absent: not started
	EndTime          int64 `json:",omitempty"` // Unix nanoseconds at which it was no longer wanted, or ended
	ModifyTime       int64 `json:",omitempty"` // Unix nanoseconds
	CreateIndex      uint64
	ModifyIndex      uint64
	AllocModifyIndex uint64
}

// AllocationStub is an allocation in a list.
type AllocationStub struct {
	ID                    string
	Name                  string
	Namespace             string
	EvalID                string
	NodeID                string
	NodeName              string `json:",omitempty"`
	JobID                 string
	JobType               string
	JobVersion            uint64
	TaskGroup             string
	Priority              int
	DesiredStatus         string
	DesiredDescription    string
	ClientStatus          string
	ClientDescription     string
	PreemptedAllocations  []string            `json:",omitempty"`
	PreemptedByAllocation string              `json:",omitempty"`
	PreemptedAllocs       []string            `json:",omitempty"`
	PreemptedByAllocID    string              `json:",omitempty"`
	PolicyVersion         string              `json:",omitempty"`
	ResourceUse           map[string]int64    `json:",omitempty"`
	AllocatedResources    *AllocatedResources `json:",omitempty"` // asked for with resources=true, as of Nomad
	CreateTime            int64
	ModifyTime            int64 `json:",omitempty"`
	CreateIndex           uint64
	ModifyIndex           uint64
}

// AllocatedResources is what an allocation holds, in Nomad's form.
type AllocatedResources struct {
	Tasks  map[string]*AllocatedTaskResources
	Shared AllocatedSharedResources
}

// AllocatedTaskResources is what one task of an allocation holds.
type AllocatedTaskResources struct {
	Cpu    AllocatedCpuResources
	Memory AllocatedMemoryResources
}

// AllocatedCpuResources is a task's share of the processors.
type AllocatedCpuResources struct {
	CpuShares int64
}

// AllocatedMemoryResources is a task's share of the memory.
type AllocatedMemoryResources struct {
	MemoryMB int64
}

// AllocatedSharedResources is what the tasks of an allocation share.
type AllocatedSharedResources struct {
	DiskMB int64
}

// DeviceUse is what an allocation holds of one device group.
type DeviceUse struct {
	ID    string // vendor/type/model
	Count int
}

// AllocationMetric is why instances of a group were not placed, added up over
// nodes in Nomad's form, and as a sentence.
type AllocationMetric struct {
	NodesEvaluated     int
	NodesFiltered      int
	NodesExhausted     int
	ConstraintFiltered map[string]int `json:",omitempty"` // constraint or rule to nodes
	DimensionExhausted map[string]int `json:",omitempty"` // what nodes lacked to nodes
	CoalescedFailures  int            // further instances that were not tried after this one failed

	NotReady    map[string]int `json:",omitempty"` // what nodes that take no work are, to nodes
	Preemption  map[string]int `json:",omitempty"` // why eviction did not help, to nodes
	NoEviction  string         `json:",omitempty"` // why nobody may be evicted at all
	Samples     []NodeReason   `json:",omitempty"` // a few nodes by name
	Explanation string         // all of it as one sentence
}

// NodeReason is why one node was not chosen.
type NodeReason struct {
	NodeID string
	Reason string
}

// AllocStopResponse says what stopping an allocation came to.
type AllocStopResponse struct {
	EvalID string
	Index  uint64
}
