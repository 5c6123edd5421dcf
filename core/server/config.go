package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/server/gc"
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
}

var _ Log = (*raftnode.Node)(nil)

// Config is what a server works with. Log, Store and Policies are needed; a zero
// value elsewhere means the default.
type Config struct {
	ID, Region, Datacenter string

	Log      Log
	Store    *state.Store
	Policies policymgr.Host
	Modules  policymgr.Modules // of policies, on this server; nil: none travel
	Voters   func() []string   // ids of the servers that vote; nil: those of Raft, or else this one
	History  eventsink.History // nil: decisions are kept as long as events are

	// Membership is the pool that this server belongs to; nil: it is alone. Peers and
	// Raft go with it.
	Membership Membership
	Peers      Peers
	Raft       Raft
	// Expect is how many servers begin a new cluster together; 0: this one waits for
	// a cluster to take it in.
	Expect int
	Build  string // version of the binary, for others to see
	Pool   PoolTiming
	// Versions of the log that this server understands, as its log was opened with;
	// zero: those of this release.
	Versions replication.Versions

	// Workers is how many evaluations are worked on at a time; default: half the
	// processors, at least one; negative: none.
	Workers int

	HeartbeatTTL    time.Duration // within which a node reports, at least; default: 10s
	HeartbeatGrace  time.Duration // beyond its TTL before it is down; default: 10s
	HeartbeatRate   int           // reports a second that TTLs are stretched for; default: 50
	FailoverGrace   time.Duration // for all nodes when a term begins; default: 30s, or three TTLs where that is more
	ClusterLost     time.Duration // for which a member cluster is silent before its work is placed elsewhere; default: 5m; negative: never
	ExpiryWindow    time.Duration // in which nodes that fail are one entry; grows in a storm; default: 250ms
	UpdateWindow    time.Duration // in which nodes' updates are one entry; default: 50ms
	NackTimeout     time.Duration // lease of an evaluation; default: 60s
	Retention       gc.Retention
	Tracker         planner.RejectionTrackerConfig // of nodes that keep rejecting plans; default: off
	EventBuffer     int                            // events kept for readers; default: events.DefaultCapacity
	StorageHealthy  func() error                   // nil: there is no storage that could fail
	Secret          func() []byte                  // signs plan tokens, the same on every server; nil: the key in the state
	EvalBatch       int                            // evaluations in one entry at most; default: 3072, which replication.MaxEntry has room for
	RegisterBatch   int                            // nodes in one entry at most; default: 512
	UpdateBatch     int                            // updates of allocations in one entry at most; default: 4096
	FollowUpDelay   time.Duration                  // before a failed evaluation is tried again, at least; default: 1m
	FollowUpJitter  time.Duration                  // more than that, at most; default: 5m
	UnplacedRetry   time.Duration                  // before an evaluation whose plans kept being rejected runs again; default: 60s
	CollectInterval time.Duration                  // between two looks for what is over; default: 5m; negative: never

	Clock    clock.Clock          // default: clock.Real
	Logger   *slog.Logger         // default: nothing is logged
	Registry *prometheus.Registry // default: nothing is measured
	Tracer   trace.Tracer         // default: nobody watches, and nothing is paid for it
	NewID    func() string        // of evaluations and allocations; default: random
	Random   func(n int64) int64  // in [0, n), for jitter; default: math/rand/v2
}

// withDefaults is c with the defaults in place of zero values.
func (c Config) withDefaults() Config {
	orElse(&c.Workers, defaultWorkers())
	orElse(&c.HeartbeatTTL, 10*time.Second)
	orElse(&c.HeartbeatGrace, 10*time.Second)
	orElse(&c.HeartbeatRate, 50)
	orElse(&c.FailoverGrace, 30*time.Second)
	orElse(&c.ClusterLost, 5*time.Minute)
	orElse(&c.ExpiryWindow, 250*time.Millisecond)
	orElse(&c.UpdateWindow, 50*time.Millisecond)
	orElse(&c.NackTimeout, 60*time.Second)
	orElse(&c.EvalBatch, 3072)
	orElse(&c.RegisterBatch, 512)
	orElse(&c.UpdateBatch, 4096)
	orElse(&c.FollowUpDelay, time.Minute)
	orElse(&c.FollowUpJitter, 5*time.Minute)
	orElse(&c.UnplacedRetry, time.Minute)
	orElse(&c.CollectInterval, 5*time.Minute)
	orElse(&c.Versions, replication.Ours())
	orElse(&c.Clock, clock.Clock(clock.Real{}))
	c.Retention = c.Retention.WithDefaults()
	c.Pool = c.Pool.withDefaults()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.NewID == nil {
		c.NewID = newID
	}
	if c.Random == nil {
		c.Random = randomUpTo
	}
	return c
}

func orElse[T comparable](v *T, other T) {
	var zero T
	if *v == zero {
		*v = other
	}
}

// Validate reports everything that makes no sense.
func (c *Config) Validate() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s is missing", what))
		}
	}
	need(c.ID != "", "the server's id")
	need(c.Log != nil, "the log")
	need(c.Store != nil, "the state")
	need(c.Membership == nil || c.Peers != nil, "how other servers of the pool are asked")
	need(c.Membership == nil || c.Raft != nil, "who votes in the pool")
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
			errs = append(errs, fmt.Errorf("the %s %v is negative", d.name, d.value))
		}
	}
	return errors.Join(errs...)
}
