package client

// Allocation is one instance of a group on a node.
type Allocation struct {
	ID                 string
	Name               string // job.group[index], with #n for its n-th replacement
	Namespace          string
	EvalID             string
	NodeID             string
	NodeName           string `json:",omitempty"`
	JobID              string
	JobVersion         uint64
	Job                *Job `json:",omitempty"` // the job version that it was placed for
	TaskGroup          string
	Priority           int
	DesiredStatus      string // run, stop or evict (a victim of preemption)
	DesiredDescription string
	ClientStatus       string // pending, running, complete, failed or lost; unknown while its node is disconnected
	ClientDescription  string

	// PreemptedAllocations holds the victims of this allocation,
	// PreemptedByAllocation the allocation that this one was evicted for. The next
	// two fields repeat them under the names of newer Nomad versions.
	PreemptedAllocations  []string `json:",omitempty"`
	PreemptedByAllocation string   `json:",omitempty"`
	PreemptedAllocs       []string `json:",omitempty"`
	PreemptedByAllocID    string   `json:",omitempty"`
	PolicyVersion         string   `json:",omitempty"` // version of the policy that chose the victims
	// NextAllocation is the allocation that continues this one on another node, because it
	// was moved to make room. PreviousAllocation is the reverse.
	PreviousAllocation string `json:",omitempty"`
	NextAllocation     string `json:",omitempty"`

	AllocatedResources *AllocatedResources   `json:",omitempty"` // in Nomad's form
	Resources          *Resources            `json:",omitempty"` // the sums of AllocatedResources, in the older form of Nomad
	ResourceUse        map[string]int64      `json:",omitempty"` // every resource by name, in the engine's units
	TaskStates         map[string]*TaskState `json:",omitempty"` // by task
	Ports              []uint16              `json:",omitempty"` // host ports
	Devices            []DeviceUse           `json:",omitempty"`
	Score              float64               `json:",omitempty"`
	Index              int                   // position among the group's instances
	Incarnation        int                   `json:",omitempty"` // 0 for the first allocation of this index
	SavedWork          int64                 `json:",omitempty"` // ns of work inherited from earlier incarnations

	CreateTime       int64 // Unix nanoseconds
	StartTime        int64 `json:",omitempty"` // Unix nanoseconds; absent if it has not started
	StopTime         int64 `json:",omitempty"` // Unix nanoseconds at which it was stopped or evicted; absent if it was not
	KillDeadline     int64 `json:",omitempty"` // Unix nanoseconds at which its tasks are killed at the latest, if the node is reachable; only while it is stopping
	EndTime          int64 `json:",omitempty"` // Unix nanoseconds at which its node reported the end, or at which it was lost; absent while it may run
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
	PreemptedAllocations  []string              `json:",omitempty"`
	PreemptedByAllocation string                `json:",omitempty"`
	PreemptedAllocs       []string              `json:",omitempty"`
	PreemptedByAllocID    string                `json:",omitempty"`
	PolicyVersion         string                `json:",omitempty"`
	PreviousAllocation    string                `json:",omitempty"` // moved from there
	NextAllocation        string                `json:",omitempty"` // moved there
	ResourceUse           map[string]int64      `json:",omitempty"`
	AllocatedResources    *AllocatedResources   `json:",omitempty"` // only with the parameter resources=true, as in Nomad
	TaskStates            map[string]*TaskState `json:",omitempty"` // by task
	CreateTime            int64
	ModifyTime            int64 `json:",omitempty"`
	CreateIndex           uint64
	ModifyIndex           uint64
}

// AllocatedResources holds the resources of an allocation, in Nomad's form.
type AllocatedResources struct {
	Tasks  map[string]*AllocatedTaskResources
	Shared AllocatedSharedResources
}

// AllocatedTaskResources holds the resources of one task of an allocation.
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

// AllocatedSharedResources holds the resources that the tasks of an allocation share.
type AllocatedSharedResources struct {
	DiskMB int64
}

// DeviceUse holds the instances of one device group that an allocation uses.
type DeviceUse struct {
	ID    string // vendor/type/model
	Count int
}

// AllocationMetric explains why instances of a group were not placed: counts of nodes
// in Nomad's form, and one sentence.
type AllocationMetric struct {
	NodesEvaluated     int
	NodesFiltered      int
	NodesExhausted     int
	ConstraintFiltered map[string]int `json:",omitempty"` // constraint or rule to nodes
	DimensionExhausted map[string]int `json:",omitempty"` // missing resource to nodes
	CoalescedFailures  int            // further instances that were not tried after this one failed

	NotReady    map[string]int `json:",omitempty"` // state of nodes that accept no allocations, to nodes
	Preemption  map[string]int `json:",omitempty"` // reason why eviction did not help, to nodes
	NoEviction  string         `json:",omitempty"` // reason why eviction is not allowed at all
	Gang        string         `json:",omitempty"` // reason why the gang as a whole was not placed; counts of nodes beside it are of the next instance
	Samples     []NodeReason   `json:",omitempty"` // a few nodes by name
	Explanation string         // all of it as one sentence
}

// NodeReason explains why one node was not chosen.
type NodeReason struct {
	NodeID string
	Reason string
}

// AllocStopResponse is the result of stopping an allocation.
type AllocStopResponse struct {
	EvalID string
	Index  uint64
}
