package client

import (
	"encoding/json"
	"time"
)

// PolicyVersion is a policy's module with a configuration. Versions are loaded and activated.
type PolicyVersion struct {
	ID          string // sha256: over the digest and the canonical configuration
	Name        string
	Digest      string
	Kind        string          // wasm, process, builtin or composition
	Size        int64           // bytes of the module; 0 for builtin and process
	Config      json.RawMessage `json:",omitempty"` // canonical JSON
	Grants      []string        `json:",omitempty"`
	OnFault     string          `json:",omitempty"` // deny or default; absent: the scheduler's
	Signer      string          `json:",omitempty"` // fingerprint; absent: unsigned
	Limits      *PolicyLimits   `json:",omitempty"` // of a call; absent: a built-in policy has none
	Time        int64           // Unix nanoseconds at which it was loaded
	CreateIndex uint64
	ModifyIndex uint64
	Checks      map[string]PolicyCheck `json:",omitempty"` // by server
	// Awaited holds, by server, the reason why a required check is missing; absent: none is.
	Awaited map[string]string `json:",omitempty"`
}

// PolicyLimits are the limits of a call of a policy. Each server caps them at its own.
type PolicyLimits struct {
	Fuel       uint64        `json:",omitempty"` // of a WebAssembly module
	FuelPerRow uint64        `json:",omitempty"` // added for each row and option of the request
	Memory     int64         `json:",omitempty"` // of an instance, in bytes
	Time       time.Duration `json:",omitempty"` // nanoseconds
}

// PolicyCheck is one server's check of a version.
type PolicyCheck struct {
	OK    bool
	Error string `json:",omitempty"`
	Time  int64  // Unix nanoseconds
}

// PolicyStub is a policy in a list.
type PolicyStub struct {
	Name        string
	Builtin     bool              `json:",omitempty"` // a built-in policy of this name exists and decides if no version is active
	Active      string            `json:",omitempty"` // version id
	Previous    string            `json:",omitempty"` // ID of the version that a rollback activates
	Shadow      string            `json:",omitempty"` // version id
	Tripped     map[string]string `json:",omitempty"` // version ID to the reason why it was disabled
	Until       int64             `json:",omitempty"` // Unix nanoseconds at which a trial is rolled back
	LastTrial   *PolicyTrial      `json:",omitempty"` // the most recent completed trial; absent: there is none
	Versions    int               // number of loaded versions
	ModifyIndex uint64
	Trial       *PolicyComparison `json:",omitempty"` // with blocks, in progress or the last one; absent: there was none
}

// PolicyTrial is the result of an activation for a limited time.
type PolicyTrial struct {
	Version string
	Ended   string // expired, confirmed, rolled back, replaced, out of service, unloaded, promoted or stopped
	Time    int64  // Unix nanoseconds
	Actor   string `json:",omitempty"` // accessor of the token that ended it; "trial": its condition or its end; absent: unknown
	Reason  string `json:",omitempty"` // the condition that held, with its values
}

// PolicyTrialRequest starts a trial in which a version and the active one decide in
// alternate blocks of time, in random order.
type PolicyTrialRequest struct {
	Version   string        // ID, or a unique prefix of it
	For       time.Duration // ns; the active version stays if no condition holds in this time
	Block     time.Duration // ns, at least one minute
	Washout   time.Duration `json:",omitempty"` // ns at the start of a block that are not measured; absent: a sixth of it
	StopIf    string        `json:",omitempty"` // condition that ends the trial with the active version
	PromoteIf string        `json:",omitempty"` // condition that ends the trial with the candidate active
	Seed      uint64        `json:",omitempty"` // of the random order; absent: derived from the time
}

// PolicyComparison is a trial with blocks, in progress or the last one.
type PolicyComparison struct {
	Baseline  string // ID of the version that was active before
	Candidate string
	Start     int64         // Unix nanoseconds
	Until     int64         // Unix nanoseconds
	Block     time.Duration // ns
	Washout   time.Duration // ns
	StopIf    string        `json:",omitempty"`
	PromoteIf string        `json:",omitempty"`
	Actor     string        `json:",omitempty"` // accessor of the token that started it
	Blocks    int           // completed blocks
	BlockEnd  int64         `json:",omitempty"` // Unix nanoseconds; absent: the trial has ended
	Measures  []PolicyMeasure
	End       *PolicyTrial `json:",omitempty"` // absent: it is in progress

	LeastPairs int    // of blocks, before which no verdict is possible
	MostPairs  int    // of blocks that For contains
	Warning    string `json:",omitempty"` // why the trial cannot reach a verdict
}

// PolicyTrialCourse is a trial with blocks, with the history of one metric.
type PolicyTrialCourse struct {
	Policy string
	Trial  PolicyComparison
	Metric string
	Points []PolicyTrialPoint // at most 40, the newest last
	Blocks []PolicyTrialBlock // complete blocks, the oldest first
}

// PolicyTrialPoint is the confidence interval of a metric after a number of pairs. The
// intervals of all points hold at once.
type PolicyTrialPoint struct {
	Time       int64    // Unix nanoseconds, end of the last block of the pairs
	Pairs      int      // of blocks
	Difference float64  // mean of candidate minus baseline
	Low        *float64 `json:",omitempty"` // absent: too few blocks
	High       *float64 `json:",omitempty"`
}

// PolicyTrialBlock is a complete block of a trial.
type PolicyTrialBlock struct {
	Start     int64 // Unix nanoseconds
	Candidate bool  // the candidate decided
	Value     float64
}

// PolicyShadowSums are the sums of a shadow run over all servers. Servers report every ten
// seconds.
type PolicyShadowSums struct {
	Version  string // of the shadow
	Compared int64  // decisions
	Active   PolicySums
	Shadow   PolicySums
}

// PolicySums are the effects of decisions.
type PolicySums struct {
	Placed           int64
	Victims          int64
	LostWork         time.Duration // ns, of the victims
	HighestPriority  int           // of the victims; 0 if there are none
	BudgetViolations int64         // victims that overrun a disruption budget
}

// PolicyMeasure compares the versions of a trial over its complete pairs of blocks.
type PolicyMeasure struct {
	Name       string
	Baseline   float64 // mean of a block
	Candidate  float64
	Difference float64  // mean of candidate minus baseline
	Low        *float64 `json:",omitempty"` // of the interval of the difference; absent: too few blocks
	High       *float64 `json:",omitempty"`
}

// PolicyStatus is a policy in the cluster, with its state on the responding server.
type PolicyStatus struct {
	PolicyStub
	Loaded    []*PolicyVersion  `json:",omitempty"` // every version, newest first
	Here      *PolicyHere       `json:",omitempty"` // the deciding version on the responding server; absent: none
	Ready     []string          `json:",omitempty"` // IDs of versions that this server has opened
	Refused   map[string]string `json:",omitempty"` // version ID to the reason why this server could not open it
	ShadowRun *PolicyShadowRun  `json:",omitempty"` // absent: there is none
	Sums      *PolicyShadowSums `json:",omitempty"` // of the shadow run over all servers; absent: nothing was compared
	Decisions []*PolicyDecision `json:",omitempty"` // of this server, newest first
	Lost      int64             `json:",omitempty"` // records that were not written, over all policies
}

// PolicyHere is the version that decides under a name on one server, with counts
// since it was opened there.
type PolicyHere struct {
	Version   string
	Digest    string
	Kind      string // wasm, process, builtin or composition
	Calls     int64
	Faults    int64
	Fallbacks int64  // evaluations in which default decided instead
	Open      string `json:",omitempty"` // reason why it is currently not called
	Isolation string `json:",omitempty"` // its sandbox on this server; none: all rights of the server's user; absent: it is part of the server
}

// PolicyShadowRun holds the results of a version that runs as a shadow of the active one.
type PolicyShadowRun struct {
	Version     string
	Since       int64 // Unix nanoseconds
	Decisions   int64 // compared decisions: the sum of the next three
	Agreed      int64
	Differed    int64
	Failed      int64               // faults of the shadow
	Skipped     int64               // not compared because the shadow was busy
	Differences []*PolicyDifference `json:",omitempty"` // newest first
}

// PolicyDecision is the recorded decision of a policy for one evaluation.
type PolicyDecision struct {
	Time      int64 // Unix nanoseconds
	Index     uint64
	EvalID    string
	Namespace string
	JobID     string
	Policy    string
	Version   string
	Digest    string
	Uses      []PolicyUse `json:",omitempty"`
	Victims   []string    `json:",omitempty"`
	Fault     string      `json:",omitempty"`
}

// PolicyUse sums the calls of one hook of one version in a decision.
type PolicyUse struct {
	Policy   string
	Version  string
	Digest   string
	Hook     string
	Calls    int
	Options  int
	Rows     int
	Fuel     uint64        `json:",omitempty"` // absent if fuel is not metered
	Duration time.Duration // ns
}

// PolicyLoad describes a version to load. Exactly one of Module, Builtin and
// Executable is set.
type PolicyLoad struct {
	Name       string          `json:",omitempty"` // default: the name in the manifest
	Builtin    string          `json:",omitempty"` // name of a built-in policy
	Executable string          `json:",omitempty"` // name in the servers' allow-list
	Config     json.RawMessage `json:",omitempty"`
	Grants     []string        `json:",omitempty"`
	OnFault    string          `json:",omitempty"` // deny or default

	Module    []byte `json:"-"` // WebAssembly, at most 8 MiB; a part of its own in the body
	Manifest  []byte `json:"-"` // policy.yaml of the module's bundle; a part of its own in the body
	Signature []byte `json:"-"` // policy.yaml.sig of that bundle; a part of its own in the body

	// Wait is the maximum time to wait for the servers' checks; those that are
	// missing after it are in Awaited. 0: the server's own limit (10 m).
	Wait time.Duration `json:"-"`
}

// PolicyVersionRequest identifies a version of a policy.
type PolicyVersionRequest struct {
	Version string        `json:",omitempty"` // ID, or a unique prefix of it
	For     time.Duration `json:",omitempty"` // ns; with activate: roll back after this time unless it is activated again
}

// PolicyDifference is a decision in which a shadow differed.
type PolicyDifference struct {
	Time      int64 // Unix nanoseconds
	Index     uint64
	EvalID    string
	Namespace string
	JobID     string
	Policy    string
	Active    PolicyChoice
	Shadow    PolicyChoice
}

// PolicyChoice is the decision of one side of a comparison for an evaluation.
type PolicyChoice struct {
	Version  string
	Places   []string      `json:",omitempty"` // allocations by name, each with its node: web.app[0]@n1
	Victims  []string      `json:",omitempty"` // allocation ids
	Why      string        `json:",omitempty"` // reason why an instance was not placed, or the policy's fault
	Fault    bool          `json:",omitempty"`
	Calls    int           // calls of the policy
	Fuel     uint64        `json:",omitempty"`
	Duration time.Duration // ns
}

// PriorityClass is a named priority.
type PriorityClass struct {
	Name             string
	Value            int
	GlobalDefault    bool   `json:",omitempty"` // default for jobs without a class and without a priority
	PreemptionPolicy string `json:",omitempty"` // PreemptLowerPriority (default) or Never
	Description      string `json:",omitempty"`
}

// SchedulerConfiguration is the scheduler configuration of the whole cluster.
type SchedulerConfiguration struct {
	SchedulerAlgorithm string // binpack or spread
	PreemptionConfig   PreemptionConfig
	PauseEvalBroker    bool

	PriorityDelta *int   `json:",omitempty"` // base gap; absent: the policy's own
	Policy        string `json:",omitempty"` // name of the active policy
	OnFault       string `json:",omitempty"` // deny or default; absent: deny
	Coalescing    *bool  `json:",omitempty"` // one evaluation per job and entry; absent: on
	Shedding      *bool  `json:",omitempty"` // of a job's pending evaluations only one is retained; absent: on

	FeatureGates FeatureGates `json:",omitzero"`

	Moves *Moves `json:",omitempty"` // absent: instances are not moved to make room

	MemoryOversubscriptionEnabled bool // always false: accepted for Nomad's clients
	RejectJobRegistration         bool // always false: accepted for Nomad's clients

	CreateIndex uint64
	ModifyIndex uint64
}

// Moves limits how many instances are moved to other nodes, to make room for instances that
// fit nowhere.
type Moves struct {
	PerJob int           // instances of one job that may be moved within Window; 1 or more
	Window time.Duration // ns
}

// RebalancePlanRequest requests a plan of moves.
type RebalancePlanRequest struct {
	Moves *Moves `json:",omitempty"` // absent: the limit of the configuration, or one in an hour
}

// RebalancePlan is a plan of moves that was computed and not committed.
type RebalancePlan struct {
	PlanToken string    // commits the plan; "" if nothing would be moved
	Expires   time.Time // of PlanToken
	Index     uint64    // of the state that it is based on
	Moves     *Moves    // the limit
	Steps     []RebalanceStep
	Omitted   int // waiting jobs that were not considered, because too many wait
}

// RebalanceStep places instances of a job that waits after moves of instances of other jobs.
type RebalanceStep struct {
	JobID     string
	Namespace string
	Priority  int
	Place     []*AllocationStub
	Move      []*AllocationStub // new allocations of the moved instances
	Stop      []RebalanceStop   // running instances that are stopped: moved ones, and those of the job that are replaced, because their node drains or the job has changed
	LostWork  time.Duration     // ns: work of all of them since their last checkpoints
}

// RebalanceStop is a running instance that a step stops.
type RebalanceStop struct {
	AllocID        string
	JobID          string
	Namespace      string
	TaskGroup      string
	NodeID         string
	NextAllocation string        `json:",omitempty"` // takes over; absent: none
	IsMove         bool          // it is moved, and not replaced
	LostWork       time.Duration // ns: since its last checkpoint
}

// RebalanceRequest commits a plan of moves.
type RebalanceRequest struct{ PlanToken string }

// RebalanceResult is the result of committing a plan of moves.
type RebalanceResult struct {
	Index uint64
	Steps []RebalanceStepResult
}

// RebalanceStepResult is the result of one step.
type RebalanceStepResult struct {
	JobID     string
	Namespace string
	Placed    int
	Moved     int
	Rejected  []string `json:",omitempty"` // reasons for which parts of the step were not done
	EvalID    string   `json:",omitempty"` // the evaluation of the job that follows
}

// PreemptionConfig enables preemption per type of job.
type PreemptionConfig struct {
	SystemSchedulerEnabled   bool
	SysBatchSchedulerEnabled bool
	BatchSchedulerEnabled    bool
	ServiceSchedulerEnabled  bool
	BindingSchedulerEnabled  bool
	// Observe lists types of jobs (service, batch, system, sysbatch) for which decisions to
	// evict are made and recorded, and nothing is evicted. Enabled prevails.
	Observe []string `json:",omitempty"`
}

// SchedulerConfigurationResponse holds the configuration in Nomad's form.
type SchedulerConfigurationResponse struct {
	SchedulerConfig *SchedulerConfiguration
	Index           uint64
}

// SchedulerSetConfigurationResponse is the result of writing the configuration.
type SchedulerSetConfigurationResponse struct {
	Updated bool // false: the index to check was outdated
	Index   uint64
}

// Event is one event from the log of the cluster.
type Event struct {
	Index      uint64
	Time       int64  // Unix nanoseconds
	Topic      string // Job, Evaluation, Allocation, Node, Policy, Preemption, Decision, Operator, Cluster, Binding or Assignment
	Type       string
	Namespace  string          `json:",omitempty"`
	Key        string          // ID of the event's subject
	FilterKeys []string        `json:",omitempty"`
	Payload    json.RawMessage `json:",omitempty"`
}

// Events holds the events of one index, or a notice that events were missed.
type Events struct {
	Index  uint64      `json:",omitempty"`
	Events []Event     `json:",omitempty"`
	Lost   *EventsLost `json:",omitempty"` // events were missed: read the objects again
	// Newest is the newest index if the stream starts at a later one, which it waits for.
	Newest uint64 `json:",omitempty"`
}

// EventsLost is the inclusive range of indexes of which events may be missing: they
// are no longer retained, or the server installed a snapshot in their place.
type EventsLost struct {
	From uint64
	To   uint64
}

// BrokerStatus holds the counts of the evaluation broker of the responding server.
// Only the leader's broker holds evaluations.
type BrokerStatus struct {
	Enabled bool // this server leads
	Paused  bool
	Workers *Workers `json:",omitempty"` // of this server; other servers have workers by their own configurations. Absent in responses of older servers
	BrokerCounts
	ByType map[string]BrokerCounts // by job type
}

// Workers describes the workers of one server.
type Workers struct {
	Wanted  int // 0: paused by the server's configuration
	Running int // workers that process evaluations
}

// BrokerCounts holds the numbers of evaluations by state.
type BrokerCounts struct {
	Ready      int
	Unacked    int // delivered and not acknowledged
	Pending    int // behind another evaluation of the same job
	Delayed    int // until a time
	Backoff    int // after a failed delivery
	Cancelable int
	Failed     int
	Blocked    int // until capacity becomes free
}

// RaftServer is one server of the cluster.
type RaftServer struct {
	ID           string
	Node         string // its name
	Address      string
	Leader       bool
	Voter        bool
	RaftProtocol string `json:",omitempty"`
}

// RaftConfiguration lists the servers of the cluster.
type RaftConfiguration struct {
	Servers []*RaftServer
	Index   uint64
}

// RaftStatus is the replication status of one server.
type RaftStatus struct {
	ServerID     string
	State        string // leader, follower, candidate or shutdown
	Leader       string `json:",omitempty"` // address
	LeaderID     string `json:",omitempty"`
	Term         uint64
	LastIndex    uint64
	CommitIndex  uint64
	AppliedIndex uint64
	LastSnapshot uint64        // index
	LastContact  time.Duration // ns since the last contact with the leader
	StateHash    string        `json:",omitempty"` // only if requested: equal on servers with equal state
	StateIndex   uint64        `json:",omitempty"` // index of the hashed state
	// Version is the version of the cluster, which defines the meaning of log
	// entries. Oldest and Newest are the versions that the responding server
	// supports.
	Version        uint64 `json:",omitempty"`
	Oldest, Newest uint64
	Workers        *Workers `json:",omitempty"` // of the responding server; absent in responses of older servers
	Servers        []*RaftServer
}

// Token identifies a caller. Only the response that creates it holds the secret.
type Token struct {
	AccessorID  string
	SecretID    string `json:",omitempty"`
	Name        string
	Roles       []string // read, submit, operate, policy, node, kubernetes, management
	Namespace   string   `json:",omitempty"` // absent: all
	CreateTime  int64    // Unix nanoseconds
	ExpiresAt   int64    `json:",omitempty"` // Unix nanoseconds; absent: never
	CreateIndex uint64
}

// JobForecast predicts when the waiting instances of a job start, if nothing else arrives.
type JobForecast struct {
	Namespace string
	JobID     string
	Index     uint64 // of the state that was played
	Time      int64  // Unix nanoseconds of that
	// Reason states why a forecast is impossible; absent: there is one.
	Reason      string        `json:",omitempty"`
	EvalID      string        `json:",omitempty"` // evaluation that waits
	Position    int           `json:",omitempty"` // in the queue, from 1; absent: the job does not wait
	QueueLength int           `json:",omitempty"` // jobs that wait
	Waiting     int           `json:",omitempty"` // instances that have not been placed
	Since       int64         `json:",omitempty"` // Unix nanoseconds since when the evaluation waits
	First       *StartTime    `json:",omitempty"` // start of the first waiting instance
	All         *StartTime    `json:",omitempty"` // start of the last one
	Draws       int           `json:",omitempty"` // plays with durations drawn at random
	Horizon     time.Duration `json:",omitempty"` // ns; how far a play looks ahead
	Running     int           `json:",omitempty"` // instances that run in the cluster
	Ending      int           `json:",omitempty"` // of those: with a stated duration, or enough earlier runs to estimate one
}

// StartTime is the predicted time of a start. In eight of ten plays it is between Low and
// High.
type StartTime struct {
	Expected int64 `json:",omitempty"` // Unix nanoseconds, the median; absent: after the horizon
	Low      int64 `json:",omitempty"` // 10 % quantile
	High     int64 `json:",omitempty"` // 90 % quantile; absent: after the horizon
	Draws    int   // plays in which it happens within the horizon
}

// AuditRecord is a change by an operator, or one that a server made by itself.
type AuditRecord struct {
	Index     uint64 // of the log entry
	Time      int64  // Unix nanoseconds
	Action    string // such as policy.activate
	Object    string `json:",omitempty"` // name of the changed object; absent: there is only one
	Detail    string `json:",omitempty"` // the change in words
	Actor     string `json:",omitempty"` // accessor of the token, trial or server; absent: no token was required
	ActorName string `json:",omitempty"` // name that the token had
	Address   string `json:",omitempty"` // IP address of the client's connection; absent: no client was involved
	Via       string `json:",omitempty"` // server that received the request and forwarded it to the leader
	RequestID string `json:",omitempty"` // of the request, in the logs of the servers
}

// TokenCreateRequest requests a token.
type TokenCreateRequest struct {
	Name      string
	Roles     []string
	Namespace string        `json:",omitempty"` // limits the token to a namespace; absent: all
	TTL       time.Duration `json:",omitempty"` // ns; absent: it does not expire
}

// Member is a server of the pool, in Nomad's form.
type Member struct {
	Name   string // its ID; Tags["name"] is the display name
	Addr   string
	Port   uint16
	Tags   map[string]string `json:",omitempty"`
	Status string            // alive, leaving, left or failed
}

// Members lists the servers of the pool.
type Members struct {
	ServerName   string
	ServerRegion string
	ServerDC     string
	Members      []*Member
}

// AgentSelf describes the responding process, in Nomad's form.
type AgentSelf struct {
	Config map[string]any               `json:"config"`
	Member Member                       `json:"member"`
	Stats  map[string]map[string]string `json:"stats"`
}

// Health is the health of a server.
type Health struct {
	OK     bool
	Checks []HealthCheck `json:",omitempty"`
}

// HealthCheck is one condition of a server's health.
type HealthCheck struct {
	Name   string
	OK     bool
	Detail string `json:",omitempty"`
}

// GCResponse counts the removed objects.
type GCResponse struct {
	Evaluations int
	Allocations int
	Jobs        int
	Nodes       int
	Bindings    int
	Policies    int // versions of policies
}

// ReloadResponse lists the changes of a reload.
type ReloadResponse struct {
	Changed []string `json:",omitempty"`
}

// ComparisonRequest submits a comparison. Either Text or Preset is required.
type ComparisonRequest struct {
	Name        string   `json:",omitempty"` // of the scenario in messages
	Text        string   `json:",omitempty"` // of a scenario, in YAML or JSON
	Description bool     `json:",omitempty"` // Text is a description, from which a scenario is generated
	Preset      string   `json:",omitempty"` // name of a description that the server contains
	Policies    []string // P, P?key=value or NAME@VERSION; the first one is the baseline
	Seeds       int      `json:",omitempty"` // runs under each policy; absent: 1
}

// Comparison is a comparison of policies on one server.
type Comparison struct {
	ID       string
	Name     string
	Policies []string
	Seeds    int
	Actor    string           `json:",omitempty"` // accessor of the token that submitted it
	Status   string           // waiting, running, complete, failed or cancelled
	Share    float64          // of the runs that were played, from 0 to 1
	Progress string           `json:",omitempty"` // in words
	Created  int64            // Unix nanoseconds
	Started  int64            `json:",omitempty"` // Unix nanoseconds
	Ended    int64            `json:",omitempty"` // Unix nanoseconds
	Error    *ComparisonError `json:",omitempty"` // absent: it has not failed
	Warnings []string         `json:",omitempty"`
	Version  uint64           // grows with every change
}

// ComparisonError is the reason for which a comparison has no report.
type ComparisonError struct {
	Message  string
	Hint     string   `json:",omitempty"`
	Problems []string `json:",omitempty"` // every problem of the scenario
}

// Comparisons are the comparisons of one server.
type Comparisons struct {
	Comparisons []*Comparison // newest first
	Presets     []ComparisonPreset
	Limits      ComparisonLimits
}

// ComparisonPreset is a description that a server contains.
type ComparisonPreset struct {
	Name        string
	Description string
}

// ComparisonLimits bound a comparison.
type ComparisonLimits struct {
	Input     int // bytes of Text
	Policies  int
	Seeds     int
	Nodes     int // and member clusters
	Instances int // and replicas of bindings
	Memory    int64
	CPU       time.Duration // ns
	Time      time.Duration // ns
}
