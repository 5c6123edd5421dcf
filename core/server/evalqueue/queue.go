package evalqueue

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/evaltrace"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/worker"
)

// Peers calls the leader, by server ID: *rpc.Client.
type Peers interface {
	Dequeue(ctx context.Context, to string, most int, wait time.Duration) (*rpc.Deliveries, error)
	UpdateDelivery(ctx context.Context, to string, s rpc.DeliveryUpdate) error
	SubmitPlan(ctx context.Context, to string, plan []byte) (result []byte, err error)
	WriteEvals(ctx context.Context, to string, e rpc.EvalResults) error
}

// Config configures a Queue. All fields but Peers and Traces are required.
type Config struct {
	Writer  *logwriter.Writer
	Broker  *broker.Broker
	Plans   *planner.Queue
	Updates *Updates
	Peers   Peers               // nil: there are no other servers
	Traces  *evaltrace.Recorder // nil: tracing is disabled
	Clock   clock.Clock
	Logger  *slog.Logger
	Random  func(n int64) int64 // in [0, n), for jitter
	Poll    time.Duration       // for which a call waits for evaluations at the leader

	// WaitReady waits until this server has every active policy.
	WaitReady func(ctx context.Context) error
	// OnDelivery is called for each delivery of the local broker.
	OnDelivery func(d *broker.Delivery)
}

// source is where evaluations come from: Local or remote.
type source interface {
	worker.Queue
	worker.Planner
	worker.Evals
	worker.Source
}

var (
	_ source = (*Local)(nil)
	_ source = (*remote)(nil)
)

// A Queue delivers evaluations to the workers of one server, from its own broker while
// it leads and from the leader otherwise. The source is chosen at each call. Make it with
// New.
type Queue struct {
	cfg     Config
	local   *Local
	remote  *remote
	leading atomic.Bool

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when leading changes
}

var _ source = (*Queue)(nil)

// New returns a Queue of a server that does not lead.
func New(c Config) *Queue {
	q := &Queue{cfg: c, local: &Local{cfg: c}, changed: make(chan struct{})}
	q.remote = newRemote(c, q.leader)
	return q
}

// Local returns the source of a server that leads, for calls of other servers.
func (q *Queue) Local() *Local { return q.local }

// SetLeading sets whether evaluations come from the local broker.
func (q *Queue) SetLeading(leading bool) {
	q.leading.Store(leading)
	q.mu.Lock()
	defer q.mu.Unlock()
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *Queue) leadershipChange() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.changed
}

// Start lets the queue call the leader until ctx ends; Wait waits for calls in flight.
func (q *Queue) Start(ctx context.Context) { q.remote.dequeuer.start(ctx) }

// Wait waits for calls in flight after the context of Start has ended.
func (q *Queue) Wait() { q.remote.dequeuer.wait() }

// States returns the access of workers to the state. A wait fails after a few seconds, so
// that the evaluation goes to a server that is up to date.
func (q *Queue) States() worker.States {
	return stateWaiter{store: q.cfg.Writer.Store, onLate: q.remote.dequeuer.setBehind}
}

// leader returns the server to call, or isLocal if that is this one. It returns a
// *rpc.NotLeaderError if the leader is unknown.
func (q *Queue) leader() (id string, isLocal bool, err error) {
	if q.leading.Load() || q.cfg.Peers == nil {
		return "", true, nil
	}
	log := q.cfg.Writer.Log
	id, _ = log.Leader()
	if id == "" || id == q.cfg.Writer.ServerID {
		return "", false, &rpc.NotLeaderError{Term: log.Term()}
	}
	return id, false, nil
}

// source returns the source to use now.
func (q *Queue) source() source {
	if q.leading.Load() || q.cfg.Peers == nil {
		return q.local
	}
	return q.remote
}

// Dequeue waits for an evaluation. It returns none while an active policy is missing on
// this server.
func (q *Queue) Dequeue(ctx context.Context) (broker.Delivery, error) {
	for {
		changed := q.leadershipChange()
		if !q.leading.Load() && q.cfg.Peers == nil {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return broker.Delivery{}, ctx.Err()
			}
		}
		if err := q.cfg.WaitReady(ctx); err != nil {
			return broker.Delivery{}, err
		}
		d, err := q.source().Dequeue(ctx)
		if errors.Is(err, errLeading) {
			continue
		}
		return d, err
	}
}

// Ack implements worker.Queue.
func (q *Queue) Ack(ctx context.Context, evalID string, token broker.Token, snapshot uint64) error {
	return q.source().Ack(ctx, evalID, token, snapshot)
}

// Nack implements worker.Queue.
func (q *Queue) Nack(ctx context.Context, evalID string, token broker.Token) error {
	return q.source().Nack(ctx, evalID, token)
}

// Renew implements worker.Queue.
func (q *Queue) Renew(ctx context.Context, evalID string, token broker.Token) error {
	return q.source().Renew(ctx, evalID, token)
}

// Submit implements worker.Planner.
func (q *Queue) Submit(ctx context.Context, plan *model.Plan) (*model.PlanResult, error) {
	return q.source().Submit(ctx, plan)
}

// WriteEvals implements worker.Evals.
func (q *Queue) WriteEvals(ctx context.Context, of broker.Delivery, evals ...*model.Evaluation) error {
	return q.source().WriteEvals(ctx, of, evals...)
}
