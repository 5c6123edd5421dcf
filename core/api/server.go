package api

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"io"
	"maps"
	"net"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/counterfactual"
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/lookahead"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/server/gc"
	"github.com/cede-scheduler/cede/core/server/membership"
	"github.com/cede-scheduler/cede/core/server/policymgr"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/core/trial"
	"github.com/cede-scheduler/cede/core/worker"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Server is the interface of *server.Server that the API calls. Its errors are
// *apierror.Error.
type Server interface {
	States
	Jobs
	Nodes
	Cluster
	Bindings
	Policies
	Tokens
	Pool
}

var (
	_ Server      = (*server.Server)(nil)
	_ Replication = (*raftnode.Node)(nil)
)

// States provides the state that requests read.
type States interface {
	Snapshot() *state.Snapshot
	// CaughtUp reports whether the snapshot has held everything that a leader had at
	// some moment since this server started.
	CaughtUp() bool
	Watch(keys ...state.Key) *state.Watch
	// WaitIndex waits until this server has applied index, and returns the state. It
	// returns an error if ctx ends first.
	WaitIndex(ctx context.Context, index uint64) (*state.Snapshot, error)
	// Consistent returns a snapshot that includes every write that was acknowledged
	// before the call.
	Consistent(ctx context.Context) (*state.Snapshot, error)
	Events(ctx context.Context, from uint64, topics []string) (*events.Subscription, error)
	Ready(ctx context.Context) []server.Check
}

// Jobs holds the operations on jobs.
type Jobs interface {
	RegisterJob(ctx context.Context, job *model.Job, o endpoint.RegisterOptions) (*endpoint.Registered, error)
	ChangeJob(ctx context.Context, key model.JobKey, o endpoint.ChangeOptions, change func(*state.Snapshot, *model.Job) (*model.Job, error)) (*endpoint.Registered, error)
	StopJob(ctx context.Context, key model.JobKey, o endpoint.StopOptions) (*endpoint.Registered, error)
	PlanJob(ctx context.Context, job *model.Job, o endpoint.PlanOptions) (*endpoint.Proposal, error)
	Evaluate(ctx context.Context, key model.JobKey) (*endpoint.Registered, error)
	StopAlloc(ctx context.Context, id string) (*endpoint.Registered, error)
	CancelEvals(ctx context.Context, ids []string, canSee func(namespace string) bool) (index uint64, err error)
}

// Nodes holds the operations on nodes.
type Nodes interface {
	RegisterNode(ctx context.Context, node *model.Node, secret string) (*endpoint.NodeLease, error)
	Heartbeat(ctx context.Context, id, secret string) (*endpoint.NodeLease, error)
	UpdateAllocs(ctx context.Context, id, secret string, updates []apply.ClientUpdate) (index uint64, err error)
	Drain(ctx context.Context, id string, o endpoint.DrainOptions) (index uint64, err error)
	CancelDrain(ctx context.Context, id string) (index uint64, err error)
	SetEligible(ctx context.Context, id string, on bool) (index uint64, err error)
	SetTaints(ctx context.Context, id string, untaint, taint []model.Taint) (index uint64, err error)
	DeleteNode(ctx context.Context, id string) (index uint64, err error)
}

// Bindings holds the operations on bindings and member clusters.
type Bindings interface {
	RegisterBinding(ctx context.Context, b *model.Binding, o endpoint.RegisterOptions) (*endpoint.Registered, error)
	StopBinding(ctx context.Context, key model.JobKey, o endpoint.StopOptions) (*endpoint.Registered, error)
	Decisions(ctx context.Context, q eventsink.DecisionQuery) ([]*eventsink.Decision, error)
	WhatIf(ctx context.Context, d *eventsink.Decision, victimID string) (*counterfactual.Answer, error)
	Certify(ctx context.Context, d *eventsink.Decision) ([]byte, error)
	DecisionKey() ed25519.PublicKey
	ForecastQueue(ctx context.Context, newest func() *state.Snapshot) (*lookahead.Queue, error)
	NodeRisk(ctx context.Context, newest func() *state.Snapshot, nodeID string) (*counterfactual.Forecast, error)
	PutCluster(ctx context.Context, c *model.Cluster) (index uint64, err error)
	DeleteCluster(ctx context.Context, id string, force bool) (index uint64, err error)
	RegisterMember(ctx context.Context, c *model.Cluster, secret string) (*endpoint.NodeLease, error)
	ClusterHeartbeat(ctx context.Context, id, secret string, report *endpoint.ClusterReport) (*endpoint.NodeLease, error)
	UpdateAssignments(ctx context.Context, clusterID, secret string, updates []apply.AssignmentUpdate) (index uint64, err error)
}

// Cluster holds the operations of operators on the cluster.
type Cluster interface {
	UpdateConfig(ctx context.Context, check *uint64, change func(*model.SchedulerConfig) error) (index uint64, err error)
	PutPriorityClass(ctx context.Context, class *model.PriorityClass) (index uint64, err error)
	DeletePriorityClass(ctx context.Context, name string) (index uint64, err error)
	PutNamespace(ctx context.Context, r endpoint.NamespaceRequest) (index uint64, err error)
	DeleteNamespace(ctx context.Context, name string, check *uint64) (index uint64, err error)
	PutBudget(ctx context.Context, b *model.Budget) (index uint64, err error)
	DeleteBudget(ctx context.Context, key model.BudgetKey) (index uint64, err error)
	PlanRebalance(ctx context.Context, moves *model.Rate) (*endpoint.Rebalancing, error)
	RunRebalance(ctx context.Context, token string) (steps []endpoint.RebalanceOutcome, index uint64, err error)
	PauseBroker(ctx context.Context) (index uint64, err error)
	ResumeBroker(ctx context.Context) (index uint64, err error)
	BrokerStats() (broker.Stats, broker.BlockedStats)
	Workers() worker.Status
	CollectGarbage(ctx context.Context, force bool) (gc.Collected, error)
	RestoreSnapshot(ctx context.Context, r io.Reader) (index uint64, err error)
}

// Pool holds the operations on the pool of servers.
type Pool interface {
	JoinPool(ctx context.Context, addrs ...string) (int, error)
	LeavePool(ctx context.Context) error
	RemovePeer(ctx context.Context, id string) error
	Keyring(ctx context.Context, verb rpc.KeyVerb, key []byte) ([]membership.KeyringAnswer, error)
	// ServerHealth returns the health of the servers by ID, as the leader observes
	// it. It returns nil on other servers, and without a pool.
	ServerHealth() map[string]membership.Health
}

// Policies holds the operations on policies.
type Policies interface {
	LoadPolicy(ctx context.Context, r policy.LoadRequest) (*model.PolicyVersion, error)
	AwaitedChecks(v *model.PolicyVersion) map[string]string
	PolicyStatus(ctx context.Context, name string) (*policymgr.Status, error)
	PolicyStatuses(ctx context.Context) []*policymgr.Status
	PolicyModule(ctx context.Context, name, version string) (*model.PolicyVersion, []byte, error)
	ShadowPolicy(ctx context.Context, name, version string) (index uint64, err error)
	ActivatePolicy(ctx context.Context, name, version string) (index uint64, err error)
	TryPolicy(ctx context.Context, name, version string, trial time.Duration) (index uint64, err error)
	StartTrial(ctx context.Context, name, version string, r policymgr.TrialRequest) (index uint64, err error)
	TrialCourse(ctx context.Context, name, measure string) (*policymgr.Status, *trial.Course, error)
	RollbackPolicy(ctx context.Context, name string) (index uint64, err error)
	UnloadPolicy(ctx context.Context, name, version string) (index uint64, err error)
	ResetPolicy(ctx context.Context, name, version string) (index uint64, err error)
}

// Tokens authenticates callers and manages tokens.
type Tokens interface {
	Authenticate(secret string) (*model.Token, bool)
	BootstrapToken(ctx context.Context) (secret string, token *model.Token, err error)
	CreateToken(ctx context.Context, n endpoint.NewToken) (secret string, token *model.Token, err error)
	DeleteToken(ctx context.Context, accessor string) (index uint64, err error)
}

// Replication is the interface of *raftnode.Node that the API calls.
type Replication interface {
	IsLeader() bool
	Leader() (id, addr string)
	Stats() raftnode.Stats
	Transfer(ctx context.Context) error
	SaveSnapshot(ctx context.Context, w io.Writer) error
}

// Process holds the hooks of the process that serves the API. Each field may
// be nil.
type Process struct {
	Name    string                                                  // set by operators; "": none
	Members func() []Member                                         // members of the pool; nil: only the Raft servers
	Reload  func(ctx context.Context) (changed []string, err error) // reloads the configuration
	Config  func() map[string]any                                   // the configuration without secrets
	// LeaderURL returns the API address of the leader, such as https://10.0.0.1:4646,
	// or "" if the leader is unknown. Requests that only the leader can handle are
	// forwarded to it. If LeaderURL is nil, they are rejected.
	LeaderURL func() string
	// NodeHealth returns the health of the node in this process, nil if none runs.
	NodeHealth func() *client.AgentHealth
	// TempDir is the folder for temporary files; "": that of the system.
	TempDir string
	// Left stops the process after the response that confirms it has left its pool.
	Left func()
}

// A Member is a server of the pool.
type Member struct {
	Name, Address string // host:port of its gossip
	Status        string // alive, leaving, left or failed
	Tags          map[string]string
}

// tagName is the tag that holds the name of a server. Nomad's clients require unique
// member names, so Member.Name holds the ID.
const tagName = "name"

// Tags that Nomad's clients read, in addition to region and dc.
const (
	tagID    = "id"
	tagRole  = "role"
	tagBuild = "build"
	tagPort  = "port" // of the address that the leader is listed with
)

// nameTag returns the tags of a member with this name, or nil if it has none.
func nameTag(name string) map[string]string {
	if name == "" {
		return nil
	}
	return map[string]string{tagName: name}
}

// nomadTags adds the tags that Nomad's clients read to those of a member. raft is the
// address of its Raft transport.
func (a *API) nomadTags(m *Member, raft string) {
	tags := maps.Clone(m.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	add := func(name, value string) {
		if tags[name] == "" && value != "" {
			tags[name] = value
		}
	}
	add(tagID, m.Name)
	add(tagRole, "server")
	add("region", a.cfg.Region)
	if m.Name == a.cfg.ID {
		add("dc", a.cfg.Datacenter)
		add(tagBuild, a.cfg.Version)
	}
	add("raft_vsn", "3")
	if _, port, err := net.SplitHostPort(cmp.Or(tags["raft"], raft)); err == nil {
		add(tagPort, port)
	}
	m.Tags = tags
}
