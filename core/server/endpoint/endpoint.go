// Package endpoint implements the calls of the API: it validates a request, resolves
// defaults from the state, and writes one command into the log.
//
// Endpoints place nothing and keep no state of their own. A check against the state is
// a better error message, not a guarantee: the command is checked again when it is
// applied. The caller has authenticated the request.
//
// core/api calls the methods through core/server, which embeds Endpoints. All of them
// are safe for concurrent use, and fail with an *apierror.Error.
package endpoint

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/server/admission"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/evalqueue"
	"github.com/cede-scheduler/cede/core/server/evaltrace"
	"github.com/cede-scheduler/cede/core/server/groupcommit"
	"github.com/cede-scheduler/cede/core/server/heartbeat"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
)

// A Config holds the dependencies of the endpoints. All fields but Traces and Secret are
// required.
type Config struct {
	Writer   *logwriter.Writer
	Clock    clock.Clock
	Policies scheduler.Policies
	Evals    evalqueue.Factory
	Updates  *evalqueue.Updates
	Broker   *broker.Broker
	Blocked  *broker.Blocked
	Nodes    *heartbeat.Nodes
	Clusters *heartbeat.Clusters
	Batchers *groupcommit.Group
	Limits   *admission.Checker
	Plans    PlanQueue
	Traces   *evaltrace.Recorder // nil: tracing is disabled

	// NewAllocID returns the ID of a planned allocation.
	NewAllocID func(*model.Group, int, int) string
	// Secret returns the key that signs plan tokens; nil: it is derived from the state.
	Secret func() []byte

	UpdateWindow  time.Duration // in which reports of clients form one entry
	UpdateBatch   int           // updates in one entry at most
	RegisterBatch int           // registrations in one entry at most
	// BatchSize returns how many of n node changes form one entry.
	BatchSize func(n int) int
}

// Endpoints are the calls of the API, by the object that they are about.
type Endpoints struct {
	*State
	*Jobs
	*Evaluations
	*Bindings
	*Nodes
	*Clusters
	*Budgets
	*PriorityClasses
	*Namespaces
	*SchedulerConfig
	*Tokens
	*Rebalance
}

// New returns all endpoints.
func New(c Config) *Endpoints {
	common := common{writer: c.Writer, evals: c.Evals, traces: c.Traces}
	key := planKey{store: c.Writer.Store, secret: c.Secret}
	jobs := &Jobs{common: common, updates: c.Updates, plans: jobPlanner{writer: c.Writer, policies: c.Policies, evals: c.Evals, newAllocID: c.NewAllocID, key: key, limits: c.Limits}}
	return &Endpoints{
		State:           &State{writer: c.Writer},
		Jobs:            jobs,
		Evaluations:     &Evaluations{writer: c.Writer, updates: c.Updates, broker: c.Broker, blocked: c.Blocked},
		Bindings:        &Bindings{common: common, limits: c.Limits},
		Nodes:           newNodes(c),
		Clusters:        newClusters(c),
		Budgets:         &Budgets{writer: c.Writer},
		PriorityClasses: &PriorityClasses{writer: c.Writer},
		Namespaces:      &Namespaces{writer: c.Writer},
		SchedulerConfig: &SchedulerConfig{writer: c.Writer, policies: c.Policies, broker: c.Broker, blocked: c.Blocked},
		Tokens:          &Tokens{writer: c.Writer},
		Rebalance:       &Rebalance{writer: c.Writer, policies: c.Policies, jobs: jobs, plans: c.Plans, newAllocID: c.NewAllocID, key: key},
	}
}

// common holds the fields of endpoints that create evaluations.
type common struct {
	writer *logwriter.Writer
	evals  evalqueue.Factory
	traces *evaltrace.Recorder
}

// replay returns the result of the first request with an idempotency key, about an object
// with the ID, or a conflict if that was another request. It returns nil if there was none.
//
// It precedes every check against the state: a repeated request returns the first result
// even if a priority class, a limit or the object has changed since. For the same reason,
// request is a hash of the parameters of the caller.
func (c *common) replay(ctx context.Context, key string, request [32]byte, id model.JobKey) (*Registered, error) {
	first, ok := c.writer.Snapshot().IdempotencyRecord(key)
	if !ok || c.writer.Now()-first.Time > state.IdempotencyWindow-replayMargin {
		return nil, nil
	}
	// The log returns the stored result instead of applying the command, which would be
	// refused, because no job has an empty ID.
	result, err := c.writer.CommitEntry(ctx, &replication.Entry{Key: key, Hash: request, Command: &replication.StopJob{}})
	if err != nil {
		return nil, err
	}
	return registered(result, id), nil
}

// replayMargin is how long before the end of state.IdempotencyWindow a repeated request is
// checked against the state again, in nanoseconds. Records expire with the first entry
// after the window that has a key: replay must not be that entry, since the log would store
// its refusal as the result of the key.
const replayMargin = int64(5 * time.Minute)

// Registered is the result of a write that creates an evaluation.
type Registered struct {
	EvalID         string // "": none was necessary
	Index          uint64
	JobModifyIndex uint64 // of the job or the binding as this write left it; 0: it was deleted
	Warnings       []string
	Replayed       bool // this is the result of an earlier call with the same idempotency key
}

// registered returns the result of a write about a job or a binding. Everything in it is
// of the entry itself: an index of the newest state may be that of a version which another
// caller wrote since, and a check against it would overwrite that version unseen.
func registered(result *replication.Result, key model.JobKey) *Registered {
	r := &Registered{Index: result.Index, JobModifyIndex: result.ModifyIndex, Replayed: result.Replayed}
	for _, e := range result.Evals {
		if e.JobKey() == key {
			r.EvalID = e.ID
			break
		}
	}
	return r
}

// RegisterOptions are options of the registration of a job or a binding.
type RegisterOptions struct {
	// Check is the JobModifyIndex that the object must have; 0: it must not exist; nil:
	// any.
	Check *uint64
	// Key is the idempotency key: a repeated request with the same key returns the
	// result of the first one. "": the request is not idempotent.
	Key string
	// Token is that of a plan to commit unchanged, instead of scheduling.
	Token string
	// ExplicitPriority means that a priority of 0 is set rather than omitted.
	ExplicitPriority bool
	// ExplicitPreemption means that the preemption policy of a binding is set rather
	// than inherited from its class.
	ExplicitPreemption bool
}

// ChangeOptions are options of a change of the stored version of a job, such as its count.
type ChangeOptions struct {
	Key     string   // as in RegisterOptions
	Request [32]byte // distinguishes requests with the same Key
}

// StopOptions are options of stopping a job or a binding.
type StopOptions struct {
	Purge bool   // remove the job once all of it has ended
	Key   string // as in RegisterOptions
}

// invalid returns an error that lists all problems of an object, or nil if there are
// none. The format names the object.
func invalid(problems []string, format string, args ...any) error {
	if len(problems) == 0 {
		return nil
	}
	text := fmt.Sprintf(format, args...) + ": " + strings.Join(problems, "; ")
	return apierror.New(apierror.CodeInvalid, "%s", text).WithDetails(map[string]any{"Problems": problems})
}

// State reads the state of this server.
type State struct{ writer *logwriter.Writer }

// Snapshot returns the newest state of this server.
func (s *State) Snapshot() *state.Snapshot { return s.writer.Snapshot() }

// WaitIndex waits until this server has the state at index or later.
func (s *State) WaitIndex(ctx context.Context, index uint64) (*state.Snapshot, error) {
	snap, err := s.writer.Store.WaitIndex(ctx, index)
	if err != nil {
		return nil, apierror.Interrupted(err)
	}
	return snap, nil
}

// Watch watches keys of the state; see state.Store.
func (s *State) Watch(keys ...state.Key) *state.Watch { return s.writer.Store.Watch(keys...) }

// Consistent returns a state that contains everything that was written before the call.
// It fails if this server does not lead.
func (s *State) Consistent(ctx context.Context) (*state.Snapshot, error) {
	return s.writer.Consistent(ctx)
}
