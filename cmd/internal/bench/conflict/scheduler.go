package conflict

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
	core "github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/worker"
)

// errStopped ends the work of a scheduler at the end of a measurement.
var errStopped = errors.New("the measurement has ended")

// An arrival is a job in the queue of a scheduler.
type arrival struct {
	eval *model.Evaluation
	at   time.Time
	run  []quantile // run times of its tasks; nil: until the end
}

// A scheduler is a worker with a queue. It runs as a coroutine, which yields while a
// decision takes time and when its queue is empty. Invariant: at most one of the cell and
// its schedulers runs at any time.
type scheduler struct {
	cell     *cell
	class    *Class
	decision time.Duration
	worker   *worker.Worker
	queue    []arrival
	current  arrival
	idle     bool
	yield    func(time.Duration) bool
	next     func() (time.Duration, bool)
	stop     func()
}

// queueEmpty is yielded if the queue is empty.
const queueEmpty = time.Duration(-1)

func newScheduler(ctx context.Context, m *cell, class *Class, decision time.Duration) *scheduler {
	s := &scheduler{cell: m, class: class, decision: decision, idle: true}
	s.worker = worker.New(worker.Config{
		Queue: s, Planner: s, States: m.store, Evals: s, Clock: m.clock,
		Scheduler: core.New(core.Config{Policies: m.policies}),
		NewEvalID: func() string { return s.current.eval.ID + "-blocked" },
	})
	s.next, s.stop = iter.Pull(func(yield func(time.Duration) bool) {
		s.yield = yield
		s.loop(ctx)
	})
	return s
}

// enqueue adds a job to the queue.
func (s *scheduler) enqueue(a arrival) {
	s.queue = append(s.queue, a)
	s.class.Jobs++
	if s.idle {
		s.idle = false
		s.resume()
	}
}

// resume runs the scheduler until it yields, and sets the timer that resumes it.
func (s *scheduler) resume() {
	wait, running := s.next()
	switch {
	case !running:
	case wait == queueEmpty:
		s.idle = true
	default:
		s.cell.clock.AfterFunc(wait, s.resume)
	}
}

// loop processes the queue.
func (s *scheduler) loop(ctx context.Context) {
	for {
		for len(s.queue) == 0 {
			if !s.yield(queueEmpty) {
				return
			}
		}
		s.current, s.queue = s.queue[0], s.queue[1:]
		s.class.wait += s.cell.clock.Now().Sub(s.current.at)
		s.class.started++
		err := s.worker.Work(ctx, broker.Delivery{Eval: s.current.eval, Attempt: 1})
		switch {
		case errors.Is(err, errStopped):
			return
		case errors.Is(err, worker.ErrTooManyAttempts):
			s.class.GivenUp++
		case err != nil:
			s.cell.err = err
			return
		}
	}
}

// Submit implements worker.Planner. The decision ends when the plan is submitted.
func (s *scheduler) Submit(_ context.Context, plan *model.Plan) (*model.PlanResult, error) {
	tasks := 0
	for i := range plan.Groups {
		tasks += len(plan.Groups[i].Placements)
	}
	took := s.decision + time.Duration(tasks)*s.cell.TaskTime
	s.class.busy += min(took, s.cell.end.Sub(s.cell.clock.Now()))
	if !s.yield(took) {
		return nil, errStopped
	}
	result, err := s.cell.applier.ApplyOne(plan)
	if err != nil {
		return nil, err
	}
	s.class.Plans++
	if !result.FullyCommitted() {
		s.class.Conflicts++
	}
	snap := s.cell.store.Snapshot()
	var placed []string
	for i := range plan.Groups {
		for _, a := range plan.Groups[i].Placements {
			if snap.Alloc(a.ID) != nil {
				placed = append(placed, a.ID)
			}
		}
	}
	s.class.Tasks += len(placed)
	s.class.Rejected += tasks - len(placed)
	if s.current.run != nil {
		s.cell.started(placed, s.current.run)
	}
	return result, nil
}

// WriteEvals implements worker.Evals.
func (s *scheduler) WriteEvals(_ context.Context, _ broker.Delivery, evals ...*model.Evaluation) error {
	if len(evals) == 1 {
		s.class.Decided++
	} else {
		s.class.Partial++ // the second one is blocked
	}
	txn := s.cell.begin()
	txn.EvalWriter().Upsert(evals...)
	txn.Commit()
	return nil
}

// Ack implements worker.Queue.
func (*scheduler) Ack(context.Context, string, broker.Token, uint64) error { return nil }

// Nack implements worker.Queue. A job is not retried after too many rejected plans.
func (*scheduler) Nack(context.Context, string, broker.Token) error { return nil }

// Renew implements worker.Queue.
func (*scheduler) Renew(context.Context, string, broker.Token) error { return nil }
