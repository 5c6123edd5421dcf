package planner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/cede-scheduler/cede/core/internal/heapq"
	"github.com/cede-scheduler/cede/core/model"
)

// A Queue holds plans until the applier takes them: by priority, then in order of
// arrival. It is disabled until SetEnabled(true), and safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	enabled bool
	heap    heapq.Heap[*PendingPlan]
	seq     uint64 // order of arrival

	// waiting counts the plans in heap that were not withdrawn.
	waiting int

	// more holds a token if plans may be queued. One slot suffices: there is one
	// applier, and it drains the queue before it waits here again.
	more chan struct{}
}

// A PendingPlan is a submitted plan. It is answered once.
type PendingPlan struct {
	plan *model.Plan
	done chan struct{}

	// Written before done is closed, read after it.
	result *model.PlanResult
	err    error

	// state is guarded by Queue.mu.
	state planState
}

// planState is the state of a pending plan.
type planState uint8

const (
	planQueued planState = iota
	planTaken
	planAnswered
)

// NewQueue returns a disabled queue.
func NewQueue() *Queue { return &Queue{more: make(chan struct{}, 1)} }

// SetEnabled enables or disables the queue. Disabling it answers every queued plan with
// ErrDisabled; the applier answers the plans that it has taken. A submitter that holds
// ErrDisabled may submit the plan to the new leader.
func (q *Queue) SetEnabled(on bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enabled = on
	if on {
		return
	}
	for q.heap.Len() > 0 {
		q.respondLocked(q.heap.Pop().Value, nil, ErrDisabled)
	}
	q.waiting = 0
}

// Depth returns the number of queued plans.
func (q *Queue) Depth() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// Enqueue submits a plan and returns at once. The plan must not be changed
// afterwards. It returns a *PlanError if the plan is malformed, and ErrDisabled if
// the queue is disabled.
func (q *Queue) Enqueue(plan *model.Plan) (*PendingPlan, error) {
	if err := Validate(plan); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.enabled {
		return nil, ErrDisabled
	}
	p := &PendingPlan{plan: plan, done: make(chan struct{})}
	q.seq++
	// The heap pops the lowest key. A priority is at most MaxInt32, so the difference
	// is never negative, and a higher priority is lower.
	q.heap.Push(heapq.Key{A: uint64(math.MaxInt32 - int64(plan.Priority)), B: q.seq}, p)
	q.waiting++
	// A full channel holds a token already.
	select {
	case q.more <- struct{}{}:
	default:
	}
	return p, nil
}

// Submit submits a plan and waits for its result. If ctx is done first, a queued
// plan is withdrawn. A plan that the applier has taken may still be applied: the error is
// then ErrUnknownOutcome.
func (q *Queue) Submit(ctx context.Context, plan *model.Plan) (*model.PlanResult, error) {
	p, err := q.Enqueue(plan)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
	}
	if q.withdraw(p, ctx.Err()) {
		return nil, ctx.Err()
	}
	select {
	case <-p.done: // answered meanwhile, so the outcome is certain
		return p.result, p.err
	default:
		return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, ctx.Err())
	}
}

// Done is closed once the plan is answered.
func (p *PendingPlan) Done() <-chan struct{} { return p.done }

// Result returns the result. It returns an error if Done is not closed yet.
func (p *PendingPlan) Result() (*model.PlanResult, error) {
	select {
	case <-p.done:
		return p.result, p.err
	default:
		return nil, errors.New("planner: Result before Done")
	}
}

// withdraw removes a plan that is still queued. It returns false if the applier has
// taken it.
func (q *Queue) withdraw(p *PendingPlan, why error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.state != planQueued {
		return false
	}
	q.respondLocked(p, nil, why)
	q.waiting--
	// Withdrawn plans remain in the heap until they reach its top. If they are the
	// majority, they are removed at once, so that short timeouts of submitters cost
	// no memory.
	if dead := q.heap.Len() - q.waiting; dead > 64 && dead > q.waiting {
		q.heap.Filter(func(it *heapq.Item[*PendingPlan]) bool { return it.Value.state == planQueued })
	}
	return true
}

// pop returns the first plan, or nil if there is none. Withdrawn plans are skipped
// here, so that withdraw needs no search in the heap.
func (q *Queue) pop() *PendingPlan {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.heap.Len() > 0 {
		p := q.heap.Pop().Value
		if p.state == planQueued {
			p.state = planTaken
			q.waiting--
			return p
		}
	}
	return nil
}

// respond sends the result to the submitter of a plan that was taken. A plan that was
// answered before is left as it is: Submit may have withdrawn it.
func (q *Queue) respond(p *PendingPlan, result *model.PlanResult, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.respondLocked(p, result, err)
}

func (q *Queue) respondLocked(p *PendingPlan, result *model.PlanResult, err error) {
	if p.state == planAnswered {
		return
	}
	p.state = planAnswered
	p.result, p.err = result, err
	close(p.done)
}
