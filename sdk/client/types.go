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
	Active      string            `json:",omitempty"` // version id
	Previous    string            `json:",omitempty"` // version id that rollback returns to
	Shadow      string            `json:",omitempty"` // version id
	Tripped     map[string]string `json:",omitempty"` // version id to the reason its breaker opened
	Versions    int
	ModifyIndex uint64
}

// PolicyStatus is a policy with its versions.
type PolicyStatus struct {
	PolicyStub
	Loaded []*PolicyVersion `json:",omitempty"` // every version, the newest first
	Calls  []PolicyCalls    `json:",omitempty"` // by version, on the server that answers
}

// PolicyCalls counts what a version was asked on one server.
type PolicyCalls struct {
	Version     string
	Calls       uint64
	Faults      uint64
	Decisions   uint64 // in shadow: compared with the active version's
	Differences uint64 // in shadow: decided otherwise
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
	Signature []byte `json:"-"` // over the module; travels beside
}

// PolicyVersionRequest names a version of a policy.
type PolicyVersionRequest struct {
	Version string // id, or a prefix of it that is unique
}

// PolicyDifference is a decision that a shadow would have made otherwise.
type PolicyDifference struct {
	Time      int64 // Unix nanoseconds
	Index     uint64
	EvalID    string
	Namespace string
	JobID     string
	Group     string
	Policy    string
	Active    PolicyChoice
	Shadow    PolicyChoice
}

// PolicyChoice is what a version chose: a place and its victims.
type PolicyChoice struct {
	Version string
	NodeID  string   `json:",omitempty"`
	Victims []string `json:",omitempty"`
	Error   string   `json:",omitempty"`
}

// Decision is one preemption as it was decided.
type Decision struct {
	Index     uint64
	Time      int64 // Unix nanoseconds
	EvalID    string
	Namespace string
	JobID     string
	Group     string   `json:",omitempty"`
	AllocID   string   `json:",omitempty"` // that was placed
	NodeID    string   `json:",omitempty"`
	Policy    string   `json:",omitempty"`
	Version   string   `json:",omitempty"`
	Victims   []string `json:",omitempty"`
	Outcome   string   `json:",omitempty"`
	Reason    string   `json:",omitempty"`
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
	Topic      string // Job, Evaluation, Allocation, Node, Policy, Preemption, Decision or Operator
	Type       string
	Namespace  string          `json:",omitempty"`
	Key        string          // the id of what it is about
	FilterKeys []string        `json:",omitempty"`
	Payload    json.RawMessage `json:",omitempty"`
}

// Events are those of one index.
type Events struct {
	Index  uint64  `json:",omitempty"`
	Events []Event `json:",omitempty"`
}

// BrokerStatus counts what the evaluation broker holds.
type BrokerStatus struct {
	Paused     bool
	Leader     bool // whether this server's broker is the one at work
	Ready      int
	Unacked    int
	Pending    int
	Waiting    int
	Blocked    int
	Cancelable int
	ByType     map[string]BrokerTypeStatus `json:",omitempty"` // by job type
}

// BrokerTypeStatus counts the evaluations of one job type.
type BrokerTypeStatus struct {
	Ready   int
	Unacked int
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
	StateHash    string        `json:",omitempty"` // equal on servers with equal state
	Servers      []*RaftServer
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
	Namespace string        `json:",omitempty"` // the one it is bound to; absent: all
	TTL       time.Duration `json:",omitempty"` // ns; absent: for ever
}

// Member is a server as the pool sees it, in Nomad's form.
type Member struct {
	Name   string
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
	Name  string
	OK    bool
	Error string `json:",omitempty"`
}

// GCResponse counts what garbage collection removed.
type GCResponse struct {
	Evaluations int
	Allocations int
	Jobs        int
	Nodes       int
	Policies    int
	Index       uint64
}

// ReloadResponse lists what a reload changed.
type ReloadResponse struct {
	Changed []string `json:",omitempty"`
}
