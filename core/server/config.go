package server

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/admission"
	"github.com/cede-scheduler/cede/core/server/evalqueue"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/server/gc"
	"github.com/cede-scheduler/cede/core/server/membership"
	"github.com/cede-scheduler/cede/core/server/policymgr"
	"github.com/cede-scheduler/cede/core/state"
)

// Log is the replicated log: *raftnode.Node.
type Log interface {
	Apply(ctx context.Context, e *replication.Entry) (*replication.Result, error)
	Leadership() <-chan bool
	IsLeader() bool
	Leader() (id, addr string)
	Term() uint64
	Barrier(ctx context.Context) error
	VerifyLeader(ctx context.Context) error
	Transfer(ctx context.Context) error
	// StateAt returns the newest state that is not newer than an index, or
	// raftnode.ErrPastGone.
	StateAt(ctx context.Context, index uint64) (*state.Snapshot, error)
}

var _ Log = (*raftnode.Node)(nil)

// Peers calls other servers, by ID: *rpc.Client.
type Peers interface {
	membership.Peers
	evalqueue.Peers
	Apply(ctx context.Context, to string, entry []byte) (rpc.Applied, error)
}

var _ Peers = (*rpc.Client)(nil)

// Applied passes on the changes of the state: *replication.AppliedBuffer.
type Applied interface {
	// Attach calls observe with everything that was and will be applied, in the order of the
	// log.
	Attach(observe func([]replication.Applied))
}

// unplacedRetry is the delay before an evaluation runs again if its plans were rejected
// repeatedly.
const unplacedRetry = time.Minute

// HealthChecks report the state of the process to Ready.
type HealthChecks struct {
	StorageHealthy func() error // nil: the storage cannot fail
	// SchedulingDelay returns how late this process is scheduled, and a problem if elections
	// suffer. nil: not measured.
	SchedulingDelay func() (delay time.Duration, problem string)
}

// Keys are the keys that a server signs with.
type Keys struct {
	Secret   func() []byte      // signs plan tokens, the same on every server; nil: the key in the state
	Decision ed25519.PrivateKey // signs certificates of decisions; nil: there are none
}

// PolicySupport holds the services for policies besides their host.
type PolicySupport struct {
	Modules policymgr.Modules // modules of policies on this server; nil: none
	// Conditions evaluates the conditions of trials; nil: they never hold.
	Conditions policymgr.Conditions
}

// Config configures a Server. ID, Log and Store are required. A zero value elsewhere means
// the default.
type Config struct {
	ID string

	Log      Log
	Applied  Applied // New attaches the server to it; nil: the caller calls Server.Observe
	Store    *state.Store
	Policies policymgr.Host // nil: there are no policies
	PolicySupport
	Voters  func() []string   // IDs of the servers that vote; nil: those of Raft, or this server alone
	History eventsink.History // nil: decisions are held as long as events

	// Membership is the pool that this server belongs to; nil: it is the only server.
	// Otherwise Peers and Raft are required.
	Membership membership.Gossip
	Peers      Peers
	Raft       membership.Raft
	// Expect is how many servers bootstrap a new cluster together; 0: this server waits until
	// a cluster adds it.
	Expect int
	Build  string // version of the binary, for other servers to show
	Pool   membership.Timing
	// Versions of the log that this server understands, as its log was opened with; zero:
	// those of this release.
	Versions replication.Versions

	// Workers is how many evaluations are processed at a time; default: half the processors,
	// at least one; negative: none.
	Workers int

	HeartbeatTTL   time.Duration // within which a node reports, at least; default: 10s
	HeartbeatGrace time.Duration // beyond its TTL before it is down; default: 10s
	HeartbeatRate  int           // reports a second that TTLs are stretched for; default: 50
	FailoverGrace  time.Duration // for all nodes when a term starts; default: 30s, or three TTLs if that is more
	ClusterLost    time.Duration // time without heartbeats of a member cluster after which its assignments are replaced; default: 5m; negative: never
	ExpiryWindow   time.Duration // in which nodes that fail form one entry; grows if many fail; default: 250ms
	UpdateWindow   time.Duration // in which updates of nodes form one entry; default: 50ms
	NackTimeout    time.Duration // lease of an evaluation; default: 60s
	Retention      gc.Retention
	Limits         admission.Limits               // of jobs, bindings and clusters
	Tracker        planner.RejectionTrackerConfig // of nodes that keep rejecting plans; default: off
	EventBuffer    int                            // events held for readers; default: events.DefaultCapacity
	HealthChecks
	Keys
	EvalBatch       int           // evaluations in one entry at most; default: 3072, which fit into replication.MaxEntry
	RegisterBatch   int           // nodes in one entry at most; default: 512
	UpdateBatch     int           // updates of allocations in one entry at most; default: 4096
	FollowUpDelay   time.Duration // before a failed evaluation is tried again, at least; default: 1m
	FollowUpJitter  time.Duration // in addition, at most; default: 5m
	CollectInterval time.Duration // between two garbage collections; default: 5m; negative: never

	Clock    clock.Clock          // default: clock.Real
	Logger   *slog.Logger         // default: logs are discarded
	Registry *prometheus.Registry // default: metrics are not registered
	Tracer   trace.Tracer         // default: tracing is disabled and costs nothing
	NewID    func() string        // of evaluations and allocations; default: random
	Random   func(n int64) int64  // in [0, n), for jitter; default: math/rand/v2
}

// withDefaults returns c with defaults in place of zero values.
func (c Config) withDefaults() Config {
	c.Workers = cmp.Or(c.Workers, max(1, runtime.GOMAXPROCS(0)/2))
	c.HeartbeatTTL = cmp.Or(c.HeartbeatTTL, 10*time.Second)
	c.HeartbeatGrace = cmp.Or(c.HeartbeatGrace, 10*time.Second)
	c.HeartbeatRate = cmp.Or(c.HeartbeatRate, 50)
	c.FailoverGrace = cmp.Or(c.FailoverGrace, 30*time.Second)
	c.ClusterLost = cmp.Or(c.ClusterLost, 5*time.Minute)
	c.ExpiryWindow = cmp.Or(c.ExpiryWindow, 250*time.Millisecond)
	c.UpdateWindow = cmp.Or(c.UpdateWindow, 50*time.Millisecond)
	c.NackTimeout = cmp.Or(c.NackTimeout, 60*time.Second)
	c.EvalBatch = cmp.Or(c.EvalBatch, 3072)
	c.RegisterBatch = cmp.Or(c.RegisterBatch, 512)
	c.UpdateBatch = cmp.Or(c.UpdateBatch, 4096)
	c.FollowUpDelay = cmp.Or(c.FollowUpDelay, time.Minute)
	c.FollowUpJitter = cmp.Or(c.FollowUpJitter, 5*time.Minute)
	c.CollectInterval = cmp.Or(c.CollectInterval, 5*time.Minute)
	c.Versions = cmp.Or(c.Versions, replication.Ours())
	c.Clock = cmp.Or(c.Clock, clock.Clock(clock.Real{}))
	c.Retention = c.Retention.WithDefaults()
	c.Pool = c.Pool.WithDefaults()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.NewID == nil {
		c.NewID = uuid.NewString
	}
	if c.Random == nil {
		c.Random = randomBelow
	}
	return c
}

// Validate returns an error that lists all problems.
func (c *Config) Validate() error {
	var errs []error
	require := func(ok bool, field string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s is required", field))
		}
	}
	require(c.ID != "", "server ID")
	require(c.Log != nil, "log")
	require(c.Store != nil, "state store")
	require(c.Membership == nil || c.Peers != nil, "RPC client of the pool")
	require(c.Membership == nil || c.Raft != nil, "Raft of the pool")
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"heartbeat TTL", c.HeartbeatTTL},
		{"heartbeat grace", c.HeartbeatGrace},
		{"failover grace", c.FailoverGrace},
		{"expiry window", c.ExpiryWindow},
		{"update window", c.UpdateWindow},
		{"nack timeout", c.NackTimeout},
		{"retention of evaluations", c.Retention.Evals},
		{"retention of allocations", c.Retention.Allocs},
		{"retention of jobs", c.Retention.Jobs},
		{"retention of nodes", c.Retention.Nodes},
		{"follow-up delay", c.FollowUpDelay},
		{"follow-up jitter", c.FollowUpJitter},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("%s must not be negative: %v", d.name, d.value))
		}
	}
	return errors.Join(errs...)
}

// randomBelow returns a number in [0, n), or 0 if n is not positive.
func randomBelow(n int64) int64 {
	if n <= 0 {
		return 0
	}
	return rand.Int64N(n)
}
