package client

import (
	"encoding/json"
	"time"
)

// PolicyVersion is a policy's module and configuration: what is loaded,
// shadowed and activated.
type PolicyVersion struct {
	ID          string // sha256: over the digest and the canonical configuration
	Name        string
	Digest      string
	Kind        string          // wasm, process or builtin
	Size        int64           // bytes of the module; 0 for builtin and process
	Config      json.RawMessage `json:",omitempty"` // canonical JSON
	Grants      []string        `json:",omitempty"`
	OnFault     string          `json:",omitempty"` // deny or default; absent: the scheduler's
	Signer      string          `json:",omitempty"` // fingerprint; absent: unsigned
	Time        int64           // Unix nanoseconds at which it was loaded
	CreateIndex uint64
	ModifyIndex uint64
	Checks      map[string]PolicyCheck `json:",omitempty"` // by server
	// Awaited is why servers have not checked it that must, by server; absent: all have.
	Awaited map[string]string `json:",omitempty"`
}

// PolicyCheck is what one server found of a version.
type PolicyCheck struct {
	OK    bool
	Error string `json:",omitempty"`
	Time  int64  // Unix nanoseconds
}

// PolicyStub is a policy in a list.
type PolicyStub struct {
	Name        string
	Builtin     bool              `json:",omitempty"` // one of this name is linked in, and decides where no version does
	Active      string            `json:",omitempty"` // version id
	Previous    string            `json:",omitempty"` // version id that rollback returns to
	Shadow      string            `json:",omitempty"` // version id
	Tripped     map[string]string `json:",omitempty"` // version id to why it was taken out of service
	Until       int64             `json:",omitempty"` // Unix nanoseconds at which an activation on trial is rolled back
	LastTrial   *PolicyTrial      `json:",omitempty"` // the trial that ended last; absent: none did
	Versions    int               // that are loaded
	ModifyIndex uint64
}

// PolicyTrial is how an activation on trial ended.
type PolicyTrial struct {
	Version string
	Ended   string // expired, confirmed, rolled back, replaced, out of service or unloaded
	Time    int64  // Unix nanoseconds
}

// PolicyStatus is a policy, as the cluster has it and as it does on the server
// that answers.
type PolicyStatus struct {
	PolicyStub
	Loaded    []*PolicyVersion  `json:",omitempty"` // every version, the newest first
	Here      *PolicyHere       `json:",omitempty"` // what decides on the server that answers; absent: nothing
	Ready     []string          `json:",omitempty"` // versions that this server has opened, by id
	Refused   map[string]string `json:",omitempty"` // version id to why this server could not open it
	ShadowRun *PolicyShadowRun  `json:",omitempty"` // absent: there is none
	Decisions []*PolicyDecision `json:",omitempty"` // of this server, the newest first
	Lost      int64             `json:",omitempty"` // records that were not written, of all policies
}

// PolicyHere is what decides under a name on one server, with counts since it
// was opened there.
type PolicyHere struct {
	Version   string
	Digest    string
	Kind      string // wasm, process or builtin
	Calls     int64
	Faults    int64
	Fallbacks int64  // evaluations in which default decided instead
	Open      string `json:",omitempty"` // why it is not asked at present
}

// PolicyShadowRun is how a version does that decides beside the active one.
type PolicyShadowRun struct {
	Version     string
	Since       int64 // Unix nanoseconds
	Decisions   int64 // that were compared: the sum of the next three
	Agreed      int64
	Differed    int64
	Failed      int64               // the version was at fault
	Skipped     int64               // not compared: it was busy
	Differences []*PolicyDifference `json:",omitempty"` // the newest first
}

// PolicyDecision is what a policy decided for one evaluation.
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

// PolicyUse adds up the calls of one hook of one version in a decision.
type PolicyUse struct {
	Policy   string
	Version  string
	Digest   string
	Hook     string
	Calls    int
	Options  int
	Rows     int
	Fuel     uint64        `json:",omitempty"` // absent where nobody counts
	Duration time.Duration // ns
}

// PolicyLoad is a version to load: exactly one of Module, Builtin and
// Executable names what it is made of.
type PolicyLoad struct {
	Name       string          `json:",omitempty"` // default: that of the manifest
	Builtin    string          `json:",omitempty"` // name of a built-in policy
	Executable string          `json:",omitempty"` // name in the servers' allow-list
	Config     json.RawMessage `json:",omitempty"`
	Grants     []string        `json:",omitempty"`
	OnFault    string          `json:",omitempty"` // deny or default

	Module    []byte `json:"-"` // WebAssembly, at most 8 MiB; travels beside
	Manifest  []byte `json:"-"` // policy.yaml of the bundle that the module came in; travels beside
	Signature []byte `json:"-"` // policy.yaml.sig of that bundle; travels beside

	// Wait is for how long at most the servers' checks are waited for; those that are
	// missing then are in Awaited. 0: until the server's own limit (10 m).
	Wait time.Duration `json:"-"`
}

// PolicyVersionRequest names a version of a policy.
type PolicyVersionRequest struct {
	Version string        `json:",omitempty"` // id, or a prefix of it that is unique
	For     time.Duration `json:",omitempty"` // ns; with activate: roll back after this unless it is activated again
}

// PolicyDifference is a decision that a shadow would have made otherwise.
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

// PolicyChoice is what one side of a comparison decides for an evaluation.
type PolicyChoice struct {
	Version  string
	Places   []string      `json:",omitempty"` // allocations by name, each with its node: web.app[0]@n1
	Victims  []string      `json:",omitempty"` // allocation ids
	Why      string        `json:",omitempty"` // why something found no place; the fault of the policy
	Fault    bool          `json:",omitempty"`
	Calls    int           // of the policy
	Fuel     uint64        `json:",omitempty"`
	Duration time.Duration // ns
}

// PriorityClass is a named priority.
type PriorityClass struct {
	Name             string
	Value            int
	GlobalDefault    bool   `json:",omitempty"` // of jobs that name neither a class nor a priority
	PreemptionPolicy string `json:",omitempty"` // PreemptLowerPriority (default) or Never
	Description      string `json:",omitempty"`
}

// SchedulerConfiguration is what operators set for the whole cluster.
type SchedulerConfiguration struct {
	SchedulerAlgorithm string // binpack or spread
	PreemptionConfig   PreemptionConfig
	PauseEvalBroker    bool

	PriorityDelta *int   `json:",omitempty"` // the base gap; absent: the policy's own
	Policy        string `json:",omitempty"` // name of the active policy
	OnFault       string `json:",omitempty"` // deny or default; absent: deny
	Coalescing    *bool  `json:",omitempty"` // one evaluation per job and entry; absent: on
	Shedding      *bool  `json:",omitempty"` // of a job's pending evaluations one is kept; absent: on

	FeatureGates FeatureGates `json:",omitzero"`

	MemoryOversubscriptionEnabled bool // always false: carried for Nomad's clients
	RejectJobRegistration         bool // always false: carried for Nomad's clients

	CreateIndex uint64
	ModifyIndex uint64
}

// PreemptionConfig says for which job types anybody may be evicted.
type PreemptionConfig struct {
	SystemSchedulerEnabled   bool
	SysBatchSchedulerEnabled bool
	BatchSchedulerEnabled    bool
	ServiceSchedulerEnabled  bool
	BindingSchedulerEnabled  bool
}

// SchedulerConfigurationResponse carries the configuration as Nomad does.
type SchedulerConfigurationResponse struct {
	SchedulerConfig *SchedulerConfiguration
	Index           uint64
}

// SchedulerSetConfigurationResponse says whether the configuration was written.
type SchedulerSetConfigurationResponse struct {
	Updated bool // false: the index to check no longer held
	Index   uint64
}

// Event is one thing that happened, from the log of the cluster.
type Event struct {
	Index      uint64
	Time       int64  // Unix nanoseconds
	Topic      string // Job, Evaluation, Allocation, Node, Policy, Preemption, Decision, Operator, Cluster, Binding or Assignment
	Type       string
	Namespace  string          `json:",omitempty"`
	Key        string          // the id of what it is about
	FilterKeys []string        `json:",omitempty"`
	Payload    json.RawMessage `json:",omitempty"`
}

// Events are those of one index, or word of such as were missed.
type Events struct {
	Index  uint64      `json:",omitempty"`
	Events []Event     `json:",omitempty"`
	Lost   *EventsLost `json:",omitempty"` // what is followed must be read anew
	// Newest is the newest index there was when a stream began at a later one: it waits.
	Newest uint64 `json:",omitempty"`
}

// EventsLost is the indexes, both included, of which events may have been
// missed: they are no longer kept, or the server came to its state without them.
type EventsLost struct {
	From uint64
	To   uint64
}

// BrokerStatus counts what the evaluation broker of the server that answers
// holds. Only the leader's holds anything.
type BrokerStatus struct {
	Enabled bool // this server leads
	Paused  bool
	Workers *Workers `json:",omitempty"` // of this server; others work as well, each as its own configuration says. left out by older servers
	BrokerCounts
	ByType map[string]BrokerCounts // by job type
}

// Workers says how the workers of one server do.
type Workers struct {
	Wanted  int      // 0: the server's configuration pauses them
	Running int      // that take evaluations
	Held    []string `json:",omitempty"` // why none runs although some are wanted
}

// BrokerCounts says how many evaluations are in which state.
type BrokerCounts struct {
	Ready      int
	Unacked    int // handed out
	Pending    int // another of the same job goes first
	Delayed    int // until a time
	Backoff    int // after a failed delivery
	Cancelable int
	Failed     int
	Blocked    int // until there is room
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

// RaftConfiguration is who the cluster's servers are.
type RaftConfiguration struct {
	Servers []*RaftServer
	Index   uint64
}

// RaftStatus is how replication stands on one server.
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
	LastContact  time.Duration // ns since the leader was heard
	StateHash    string        `json:",omitempty"` // where it was asked for: equal on servers with equal state
	StateIndex   uint64        `json:",omitempty"` // of the state that was hashed
	// Version is that of the cluster: what entries of its log mean. Oldest and Newest are
	// the versions that the server understands which answers.
	Version        uint64 `json:",omitempty"`
	Oldest, Newest uint64
	Workers        *Workers `json:",omitempty"` // of the server that answers; left out by older servers
	Servers        []*RaftServer
}

// Token is who a caller is. The secret is shown once, when it is made.
type Token struct {
	AccessorID  string
	SecretID    string `json:",omitempty"`
	Name        string
	Roles       []string // read, submit, operate, policy, node, management
	Namespace   string   `json:",omitempty"` // absent: all
	CreateTime  int64    // Unix nanoseconds
	ExpiresAt   int64    `json:",omitempty"` // Unix nanoseconds; absent: never
	CreateIndex uint64
}

// TokenCreateRequest asks for a token.
type TokenCreateRequest struct {
	Name      string
	Roles     []string
	Namespace string        `json:",omitempty"` // that the token is bound to; absent: it is good for all
	TTL       time.Duration `json:",omitempty"` // ns; absent: for ever
}

// Member is a server as the pool sees it, in Nomad's form.
type Member struct {
	Name   string // its id; Tags["name"] is what people call it
	Addr   string
	Port   uint16
	Tags   map[string]string `json:",omitempty"`
	Status string            // alive, leaving, left or failed
}

// Members are the pool.
type Members struct {
	ServerName   string
	ServerRegion string
	ServerDC     string
	Members      []*Member
}

// AgentSelf is what a process says of itself, in Nomad's form.
type AgentSelf struct {
	Config map[string]any               `json:"config"`
	Member Member                       `json:"member"`
	Stats  map[string]map[string]string `json:"stats"`
}

// Health is whether a server can do its work.
type Health struct {
	OK     bool
	Checks []HealthCheck `json:",omitempty"`
}

// HealthCheck is one thing that a server needs.
type HealthCheck struct {
	Name   string
	OK     bool
	Detail string `json:",omitempty"`
}

// GCResponse counts what garbage collection removed.
type GCResponse struct {
	Evaluations int
	Allocations int
	Jobs        int
	Nodes       int
	Bindings    int
	Policies    int // versions of policies
}

// ReloadResponse lists what a reload changed.
type ReloadResponse struct {
	Changed []string `json:",omitempty"`
}
