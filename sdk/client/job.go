package client

import "time"

// Job is a wish: groups of equal instances that should run. What is absent has
// the default that its comment gives.
type Job struct {
	ID          string
	Name        string   `json:",omitempty"` // for people; default: the id
	Namespace   string   `json:",omitempty"` // default: default
	Region      string   `json:",omitempty"` // carried for Nomad's clients; one cluster is one region
	Type        string   `json:",omitempty"` // service, batch, system or sysbatch; default: service
	Priority    *int     `json:",omitempty"` // default: that of the class, else 50
	AllAtOnce   bool     `json:",omitempty"` // gang: all groups are placed, or none is
	Datacenters []string `json:",omitempty"` // default: all; "*" is all as well

	Constraints []*Constraint `json:",omitempty"` // of every group
	Affinities  []*Affinity   `json:",omitempty"` // of every group
	Spreads     []*Spread     `json:",omitempty"` // of every group
	TaskGroups  []*TaskGroup
	Meta        map[string]string `json:",omitempty"`

	PriorityClass    string `json:",omitempty"` // the class that gives the priority
	PreemptionPolicy string `json:",omitempty"` // PreemptLowerPriority or Never; default: the class's
	Preemptible      *bool  `json:",omitempty"` // false: never a victim; default: true
	Policy           string `json:",omitempty"` // names the policy for this job's placements; default: the scheduler's

	Toleration     *PreemptionToleration `json:",omitempty"` // who is spared from whom, and for how long; default: nobody
	DisruptionMode string                `json:",omitempty"` // single (default) or all: as a victim, one allocation or the whole job goes

	// Set by the server.

	Stop              bool   `json:",omitempty"`
	Status            string `json:",omitempty"` // pending, running or dead
	StatusDescription string `json:",omitempty"`
	Version           uint64 // raised by every change of the specification
	SubmitTime        int64  `json:",omitempty"` // Unix nanoseconds
	CreateIndex       uint64
	ModifyIndex       uint64
	JobModifyIndex    uint64 // raised by every change of the specification
}

// PreemptionToleration says from whom, and for how long, a job's allocations
// are spared.
type PreemptionToleration struct {
	MinPreemptorPriority *int          `json:",omitempty"` // who is below it evicts nothing of the job; default: priorities alone decide
	MinRuntime           time.Duration `json:",omitempty"` // ns; an allocation is spared until it has run so long
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

	// Disconnect says what becomes of instances while their node is silent; default: they
	// are lost, and placed elsewhere, once it is declared down.
	Disconnect *DisconnectStrategy `json:",omitempty"`

	// Resources are what an instance needs beyond what its tasks name, in the
	// engine's units: cpu in millicores, memory and disk in MiB, network in
	// Mbit/s, any other name in whole units.
	Resources   map[string]int64   `json:",omitempty"`
	Devices     []*RequestedDevice `json:",omitempty"` // of the group as a whole
	Labels      map[string]string  `json:",omitempty"` // what other groups select it by
	Colocate    []*LabelTerm       `json:",omitempty"` // place only where such allocations run
	Separate    []*LabelTerm       `json:",omitempty"` // place only where no such allocations run
	Tolerations []*Toleration      `json:",omitempty"` // of nodes' taints
	Duration    time.Duration      `json:",omitempty"` // ns an instance runs once started; 0: for ever
	Checkpoint  time.Duration      `json:",omitempty"` // ns; an eviction loses the work since the last multiple; 0: all of it
	Annotations map[string]float64 `json:",omitempty"` // numbers that policies read
}

// DisconnectStrategy keeps a group's instances while their node is silent: it was
// declared down because its heartbeats stopped, and may still run them. Their
// ClientStatus is unknown until it returns.
type DisconnectStrategy struct {
	LostAfter *time.Duration `json:",omitempty"` // ns since the node was declared down after which they are lost; default: they are kept until it returns
	Replace   *bool          `json:",omitempty"` // others run in their places meanwhile, and stop when the node returns; default: true
	Reconcile string         `json:",omitempty"` // keep_original: those of the node that returns go on; others of Nomad's words are refused
}

// Toleration lets a group go to nodes with a taint, and stay there.
type Toleration struct {
	Key      string `json:",omitempty"` // absent, with Exists: every taint
	Operator string `json:",omitempty"` // Equal (default) or Exists
	Value    string `json:",omitempty"` // of Equal
	Effect   string `json:",omitempty"` // NoSchedule, PreferNoSchedule or NoExecute; default: every one
	// For is how long an allocation stays once the node has the taint, ns, of effect
	// NoExecute; default: for ever.
	For time.Duration `json:",omitempty"`
}

// Task is what an agent runs.
type Task struct {
	Name        string
	Driver      string            `json:",omitempty"` // exec or sim
	User        string            `json:",omitempty"`
	Config      map[string]any    `json:",omitempty"` // what the driver reads
	Env         map[string]string `json:",omitempty"`
	Resources   *Resources        `json:",omitempty"`
	Constraints []*Constraint     `json:",omitempty"` // joined to the group's
	Affinities  []*Affinity       `json:",omitempty"` // joined to the group's
	KillTimeout *time.Duration    `json:",omitempty"` // ns from the signal to the kill; default: 5 s
	KillSignal  string            `json:",omitempty"` // default: SIGTERM
	Leader      bool              `json:",omitempty"` // when it ends, the group's other tasks are stopped
	Meta        map[string]string `json:",omitempty"`
}

// Resources is a task's share of what its group needs.
type Resources struct {
	CPU      *int               `json:",omitempty"` // millicores (Nomad: MHz); default: 100
	MemoryMB *int               `json:",omitempty"` // MiB; default: 300
	DiskMB   *int               `json:",omitempty"` // MiB
	Networks []*NetworkResource `json:",omitempty"`
	Devices  []*RequestedDevice `json:",omitempty"`
	Other    map[string]int64   `json:",omitempty"` // any other resource by name, in whole units
}

// NetworkResource asks for host ports and bandwidth.
type NetworkResource struct {
	Mode          string `json:",omitempty"` // carried for Nomad's clients
	MBits         *int   `json:",omitempty"` // Mbit/s
	ReservedPorts []Port `json:",omitempty"`
	DynamicPorts  []Port `json:",omitempty"`
}

// Port is a host port by name.
type Port struct {
	Label       string
	Value       int    `json:",omitempty"` // the host port
	To          int    `json:",omitempty"` // carried for Nomad's clients
	HostNetwork string `json:",omitempty"` // carried for Nomad's clients
}

// RequestedDevice asks for instances of one device group.
type RequestedDevice struct {
	Name        string        // type, vendor/type or vendor/type/model
	Count       *uint64       `json:",omitempty"` // default: 1
	Constraints []*Constraint `json:",omitempty"` // over the device group's attributes
}

// EphemeralDisk is the disk that an instance's tasks share.
type EphemeralDisk struct {
	SizeMB *int `json:",omitempty"` // MiB
}

// MigrateStrategy bounds how many of a group's instances are evicted by one
// plan before the policy counts it as a cost.
type MigrateStrategy struct {
	MaxParallel *int `json:",omitempty"` // default: 1; 0: unlimited
}

// Constraint must hold for a node to be considered. LTarget is an attribute,
// plain (zone) or in Nomad's form (${attr.zone}).
type Constraint struct {
	LTarget string `json:",omitempty"`
	RTarget string `json:",omitempty"`
	Operand string `json:",omitempty"` // = != < <= > >= in notin regexp version is_set is_not_set distinct_hosts distinct_property
}

// Affinity is a constraint that is wished for.
type Affinity struct {
	LTarget string `json:",omitempty"`
	RTarget string `json:",omitempty"`
	Operand string `json:",omitempty"`
	Weight  *int   `json:",omitempty"` // -100 to 100; default: 50
}

// Spread asks for instances to be distributed over the values of an attribute.
type Spread struct {
	Attribute    string          `json:",omitempty"`
	Weight       *int            `json:",omitempty"` // 1 to 100; default: 50
	SpreadTarget []*SpreadTarget `json:",omitempty"` // absent: even
	MaxSkew      int             `json:",omitempty"` // 0: soft; else the counts of two values differ by at most this
}

// SpreadTarget is the share of one value.
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

// TaskGroupSummary counts a group's allocations by what has become of them.
type TaskGroupSummary struct {
	Queued   int // wanted and not placed
	Complete int
	Failed   int
	Running  int
	Starting int
	Lost     int
	Unknown  int // kept for a node that is silent
	Evicted  int // victims of preemption
}

// JobRegisterRequest asks for a job to run.
type JobRegisterRequest struct {
	Job *Job

	// EnforceIndex makes the request fail with conflict unless the job's
	// JobModifyIndex is the one given; 0: the job must not exist.
	EnforceIndex   bool   `json:",omitempty"`
	JobModifyIndex uint64 `json:",omitempty"`
	// PlanToken carries out what a plan of the same job proposed, without
	// scheduling again.
	PlanToken string `json:",omitempty"`
}

// JobRegisterResponse says what registering a job came to.
type JobRegisterResponse struct {
	EvalID          string
	EvalCreateIndex uint64
	JobModifyIndex  uint64
	Index           uint64
	Warnings        string   // one a line, for Nomad's clients
	WarningList     []string `json:",omitempty"` // what was carried but is not acted upon
	Replayed        bool     `json:",omitempty"` // the idempotency key had done this before
}

// JobStopResponse says what stopping or evaluating a job came to.
type JobStopResponse = JobRegisterResponse

// JobPlanRequest asks what registering a job would do.
type JobPlanRequest struct {
	Job  *Job
	Diff bool `json:",omitempty"` // accepted for Nomad's clients; changes are always listed
}

// JobPlanResponse is a plan that was made and not carried out.
type JobPlanResponse struct {
	JobModifyIndex uint64
	Annotations    *PlanAnnotations
	FailedTGAllocs map[string]*AllocationMetric `json:",omitempty"` // by group
	Warnings       string

	PlanToken string // carries the plan out: Jobs().Run; "" where there is nothing to do
	Expires   time.Time
	Index     uint64            // the state that was planned on
	NewJob    bool              // no such job is registered
	NewSpec   bool              // the specification differs from the registered one
	Place     []*AllocationStub `json:",omitempty"`
	Update    []*AllocationStub `json:",omitempty"` // in place
	Stop      []*AllocationStub `json:",omitempty"`
	Unplaced  map[string]int    `json:",omitempty"` // by group: instances without a place
	Policies  []string          `json:",omitempty"` // versions of the policies that chose victims
}

// PlanAnnotations adds a plan up, in Nomad's form.
type PlanAnnotations struct {
	DesiredTGUpdates map[string]*DesiredUpdates // by group
	PreemptedAllocs  []*AllocationStub
}

// DesiredUpdates counts what a plan does to a group.
type DesiredUpdates struct {
	Ignore            uint64
	Place             uint64
	Migrate           uint64
	Stop              uint64
	InPlaceUpdate     uint64
	DestructiveUpdate uint64
	Preemptions       uint64
}

// JobValidateRequest asks whether a job would be taken.
type JobValidateRequest struct {
	Job *Job
}

// JobValidateResponse lists everything that is wrong with a job.
type JobValidateResponse struct {
	DriverConfigValidated bool
	ValidationErrors      []string
	Error                 string
	Warnings              string
}

// JobsParseRequest turns a job file into a job.
type JobsParseRequest struct {
	JobHCL       string // the text: HCL, YAML or JSON
	Name         string `json:",omitempty"` // the file's name, for messages and for its form; default: job.hcl
	Canonicalize bool   `json:",omitempty"` // fill the defaults in
}

// JobVersionsResponse lists a job's versions, the newest first.
type JobVersionsResponse struct {
	Versions []*Job
}
