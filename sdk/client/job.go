package client

import "time"

// Job is the specification of a job: groups of equal instances. If a field is absent,
// it has the default that its comment gives.
type Job struct {
	ID          string
	Name        string   `json:",omitempty"` // for display; default: the ID
	Namespace   string   `json:",omitempty"` // default: default
	Region      string   `json:",omitempty"` // accepted for Nomad's clients; one cluster is one region
	Type        string   `json:",omitempty"` // service, batch, system or sysbatch; default: service
	Priority    *int     `json:",omitempty"` // default: the priority of the class, or 50
	AllAtOnce   bool     `json:",omitempty"` // gang: either all groups are placed, or none
	Datacenters []string `json:",omitempty"` // default: all; "*" means all as well

	Constraints []*Constraint `json:",omitempty"` // of every group
	Affinities  []*Affinity   `json:",omitempty"` // of every group
	Spreads     []*Spread     `json:",omitempty"` // of every group
	TaskGroups  []*TaskGroup
	Meta        map[string]string `json:",omitempty"`

	PriorityClass    string `json:",omitempty"` // class that defines the priority
	PreemptionPolicy string `json:",omitempty"` // PreemptLowerPriority or Never; default: the class's
	Preemptible      *bool  `json:",omitempty"` // false: never a victim; default: true
	Policy           string `json:",omitempty"` // name of the policy for this job's placements; default: the scheduler's

	Toleration     *PreemptionToleration `json:",omitempty"` // protection from preemption; default: none
	DisruptionMode string                `json:",omitempty"` // single (default) or all: whether one allocation or the whole job is evicted

	// Set by the server.

	Stop              bool   `json:",omitempty"`
	Status            string `json:",omitempty"` // pending, running or dead
	StatusDescription string `json:",omitempty"`
	Stable            bool   // always false: there are no deployments that make a version stable
	Version           uint64 // incremented by every change of the specification
	SubmitTime        int64  `json:",omitempty"` // Unix nanoseconds
	CreateIndex       uint64
	ModifyIndex       uint64
	JobModifyIndex    uint64 // raised by every change of the specification
}

// PreemptionToleration protects a job's allocations from some preemptors, or for some
// time.
type PreemptionToleration struct {
	MinPreemptorPriority *int          `json:",omitempty"` // preemptors below it evict no allocation of the job; default: only priorities count
	MinRuntime           time.Duration `json:",omitempty"` // ns; an allocation is protected until it has run this long
}

// TaskGroup is a set of equal instances of a job.
type TaskGroup struct {
	Name          string
	Count         *int               `json:",omitempty"` // default: 1; system jobs: instances per node, 0 or 1
	MinCount      int                `json:",omitempty"` // of a job with DisruptionMode all: instances beyond it are evicted one by one
	Tasks         []*Task            `json:",omitempty"`
	Constraints   []*Constraint      `json:",omitempty"`
	Affinities    []*Affinity        `json:",omitempty"`
	Spreads       []*Spread          `json:",omitempty"`
	Networks      []*NetworkResource `json:",omitempty"`
	EphemeralDisk *EphemeralDisk     `json:",omitempty"`
	Migrate       *MigrateStrategy   `json:",omitempty"`
	Meta          map[string]string  `json:",omitempty"`

	// Disconnect defines the handling of instances while their node is disconnected.
	// By default they are lost and replaced once the node is declared down.
	Disconnect *DisconnectStrategy `json:",omitempty"`

	// Resources are the resources of an instance beyond those of its tasks, in the
	// engine's units: cpu in millicores, memory and disk in MiB, network in Mbit/s,
	// any other name in whole units.
	Resources   map[string]int64   `json:",omitempty"`
	Devices     []*RequestedDevice `json:",omitempty"` // of the group as a whole
	Labels      map[string]string  `json:",omitempty"` // selected by the label terms of other groups
	Colocate    []*LabelTerm       `json:",omitempty"` // place only where such allocations run
	Separate    []*LabelTerm       `json:",omitempty"` // place only where no such allocations run
	Tolerations []*Toleration      `json:",omitempty"` // of nodes' taints
	Duration    time.Duration      `json:",omitempty"` // ns that an instance runs once started; 0: without end
	Checkpoint  time.Duration      `json:",omitempty"` // ns; an eviction loses the work since the last multiple; 0: all of it
	Annotations map[string]float64 `json:",omitempty"` // numeric values that policies read
}

// DisconnectStrategy retains a group's instances while their node is disconnected: it
// was declared down because its heartbeats stopped, but may still run them. Their
// ClientStatus is unknown until it returns.
type DisconnectStrategy struct {
	LostAfter *time.Duration `json:",omitempty"` // ns after the node was declared down at which they are lost; default: they are retained until it returns
	Replace   *bool          `json:",omitempty"` // replacements run meanwhile, and stop when the node returns; default: true
	Reconcile string         `json:",omitempty"` // keep_original: the instances of the returning node continue; Nomad's other values are rejected
}

// Toleration allows a group to be placed on nodes with a taint, and to remain there.
type Toleration struct {
	Key      string `json:",omitempty"` // absent, with Exists: every taint
	Operator string `json:",omitempty"` // Equal (default) or Exists
	Value    string `json:",omitempty"` // of Equal
	Effect   string `json:",omitempty"` // NoSchedule, PreferNoSchedule or NoExecute; default: every one
	// For is how long an allocation remains once the node has a taint of effect
	// NoExecute, in ns; default: without end.
	For time.Duration `json:",omitempty"`
}

// Task is a process of an instance. The node's agent runs it.
type Task struct {
	Name        string
	Driver      string            `json:",omitempty"` // exec or sim
	User        string            `json:",omitempty"`
	Config      map[string]any    `json:",omitempty"` // options of the driver
	Env         map[string]string `json:",omitempty"`
	Resources   *Resources        `json:",omitempty"`
	Constraints []*Constraint     `json:",omitempty"` // added to the group's
	Affinities  []*Affinity       `json:",omitempty"` // added to the group's
	KillTimeout *time.Duration    `json:",omitempty"` // ns from the signal to the kill; default: 5 s
	KillSignal  string            `json:",omitempty"` // default: SIGTERM
	Leader      bool              `json:",omitempty"` // the group's other tasks are stopped when it ends
	Meta        map[string]string `json:",omitempty"`
}

// Resources holds the resources that a task requests.
type Resources struct {
	CPU      *int               `json:",omitempty"` // millicores (Nomad: MHz); default: 100
	MemoryMB *int               `json:",omitempty"` // MiB; default: 300
	DiskMB   *int               `json:",omitempty"` // MiB
	Networks []*NetworkResource `json:",omitempty"`
	Devices  []*RequestedDevice `json:",omitempty"`
	Other    map[string]int64   `json:",omitempty"` // any other resource by name, in whole units
}

// NetworkResource requests host ports and bandwidth.
type NetworkResource struct {
	Mode          string `json:",omitempty"` // accepted for Nomad's clients
	MBits         *int   `json:",omitempty"` // Mbit/s
	ReservedPorts []Port `json:",omitempty"`
	DynamicPorts  []Port `json:",omitempty"`
}

// Port is a host port by name.
type Port struct {
	Label       string
	Value       int    `json:",omitempty"` // the host port
	To          int    `json:",omitempty"` // accepted for Nomad's clients
	HostNetwork string `json:",omitempty"` // accepted for Nomad's clients
}

// RequestedDevice requests instances of one device group.
type RequestedDevice struct {
	Name        string        // type, vendor/type or vendor/type/model
	Count       *uint64       `json:",omitempty"` // default: 1
	Constraints []*Constraint `json:",omitempty"` // over the device group's attributes
}

// EphemeralDisk is the disk that an instance's tasks share.
type EphemeralDisk struct {
	SizeMB *int `json:",omitempty"` // MiB
}

// MigrateStrategy limits how many of a group's instances one plan evicts before the
// policy counts further evictions as a cost.
type MigrateStrategy struct {
	MaxParallel *int `json:",omitempty"` // default: 1; 0: unlimited
}

// Constraint must hold on a node for it to be feasible. LTarget is an attribute,
// plain (zone) or in Nomad's form (${attr.zone}).
type Constraint struct {
	LTarget string `json:",omitempty"`
	RTarget string `json:",omitempty"`
	Operand string `json:",omitempty"` // = != < <= > >= in notin regexp version is_set is_not_set distinct_hosts distinct_property
}

// Affinity is a preferred constraint.
type Affinity struct {
	LTarget string `json:",omitempty"`
	RTarget string `json:",omitempty"`
	Operand string `json:",omitempty"`
	Weight  *int   `json:",omitempty"` // -100 to 100; default: 50
}

// Spread requests that instances are distributed over the values of an attribute.
type Spread struct {
	Attribute    string          `json:",omitempty"`
	Weight       *int            `json:",omitempty"` // 1 to 100; default: 50
	SpreadTarget []*SpreadTarget `json:",omitempty"` // absent: even
	MaxSkew      int             `json:",omitempty"` // 0: soft; otherwise the maximum difference between the counts of two values
}

// SpreadTarget is the desired share of one value.
type SpreadTarget struct {
	Value   string
	Percent int
}

// LabelTerm selects allocations of the same namespace by labels, within nodes
// that share the value of TopologyKey.
type LabelTerm struct {
	Labels      map[string]string
	TopologyKey string `json:",omitempty"` // an attribute; default: node, the node itself
}

// JobStub is a job in a list.
type JobStub struct {
	ID                string
	Name              string
	Namespace         string
	Datacenters       []string `json:",omitempty"`
	Type              string
	Priority          int
	PriorityClass     string `json:",omitempty"`
	Stop              bool
	Status            string // pending, running or dead
	StatusDescription string
	JobSummary        *JobSummary
	Version           uint64
	SubmitTime        int64             // Unix nanoseconds
	Meta              map[string]string `json:",omitempty"`
	CreateIndex       uint64
	ModifyIndex       uint64
	JobModifyIndex    uint64
}

// JobSummary counts a job's allocations.
type JobSummary struct {
	JobID       string
	Namespace   string
	Summary     map[string]TaskGroupSummary // by group
	CreateIndex uint64
	ModifyIndex uint64
}

// TaskGroupSummary counts a group's allocations by status.
type TaskGroupSummary struct {
	Queued   int // desired and not placed
	Complete int
	Failed   int
	Running  int
	Starting int
	Lost     int
	Unknown  int // retained for a disconnected node
	Evicted  int // victims of preemption
}

// JobRegisterRequest registers a job.
type JobRegisterRequest struct {
	Job *Job

	// EnforceIndex makes the request fail with a conflict if the job's
	// JobModifyIndex differs from the one below; 0 means that the job must not
	// exist.
	EnforceIndex   bool   `json:",omitempty"`
	JobModifyIndex uint64 `json:",omitempty"`
	// PlanToken commits the plan of the same job that it identifies, without
	// scheduling again.
	PlanToken string `json:",omitempty"`
}

// JobRegisterResponse is the result of registering a job.
type JobRegisterResponse struct {
	EvalID          string
	EvalCreateIndex uint64
	JobModifyIndex  uint64
	Index           uint64
	Warnings        string   // one per line, for Nomad's clients
	WarningList     []string `json:",omitempty"` // accepted fields that have no effect
	Replayed        bool     `json:",omitempty"` // a request with the same idempotency key was processed before
}

// JobStopResponse is the result of stopping or evaluating a job.
type JobStopResponse = JobRegisterResponse

// JobPlanRequest requests a dry run of registering a job.
type JobPlanRequest struct {
	Job  *Job
	Diff bool `json:",omitempty"` // return the differences of the specification
}

// JobPlanResponse is a plan that was computed and not committed.
type JobPlanResponse struct {
	JobModifyIndex uint64
	Annotations    *PlanAnnotations
	Diff           *JobDiff                     `json:",omitempty"` // only if requested
	FailedTGAllocs map[string]*AllocationMetric `json:",omitempty"` // by group
	Warnings       string

	PlanToken string // commits the plan with Jobs().Run; "" if the plan is empty
	Expires   time.Time
	Index     uint64            // index of the state that the plan is based on
	NewJob    bool              // the job is not registered yet
	NewSpec   bool              // the specification differs from the registered one
	Place     []*AllocationStub `json:",omitempty"`
	Update    []*AllocationStub `json:",omitempty"` // in place
	Stop      []*AllocationStub `json:",omitempty"`
	Move      []*AllocationStub `json:",omitempty"` // new allocations of instances of other jobs that make room
	Unplaced  map[string]int    `json:",omitempty"` // by group: instances that cannot be placed
	Policies  []string          `json:",omitempty"` // versions of the policies that chose victims
}

// PlanAnnotations summarises a plan, in Nomad's form.
type PlanAnnotations struct {
	DesiredTGUpdates map[string]*DesiredUpdates // by group
	PreemptedAllocs  []*AllocationStub
}

// DesiredUpdates counts a plan's changes to a group.
type DesiredUpdates struct {
	Ignore            uint64
	Place             uint64
	Migrate           uint64
	Stop              uint64
	InPlaceUpdate     uint64
	DestructiveUpdate uint64
	Preemptions       uint64
}

// JobValidateRequest requests the validation of a job.
type JobValidateRequest struct {
	Job *Job
}

// JobValidateResponse lists every problem of a job.
type JobValidateResponse struct {
	DriverConfigValidated bool
	ValidationErrors      []string
	Error                 string
	Warnings              string
}

// JobsParseRequest requests the conversion of a job file.
type JobsParseRequest struct {
	JobHCL       string // the text: HCL, YAML or JSON
	Name         string `json:",omitempty"` // the file's name, for messages and for its format; default: job.hcl
	Canonicalize bool   `json:",omitempty"` // fill in defaults
}

// JobVersionsResponse lists a job's versions, the newest first.
type JobVersionsResponse struct {
	Versions []*Job
	Diffs    []*JobDiff `json:",omitempty"` // with the parameter diffs: of each version from the one before
}
