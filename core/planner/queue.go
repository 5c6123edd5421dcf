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

// Queue holds plans until the applier takes them: higher priority first, and
// within a priority the one that came first. It is disabled until
// SetEnabled(true), and safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	enabled bool
	heap    heapq.Heap[*PendingPlan]
	seq     uint64 // orders plans of one priority

	// waiting counts the plans in heap that nobody withdrew.
	waiting int

	// more holds a token when plans may be waiting. One slot is enough: there
	// is one applier, and it drains the queue before it looks here again.
	more chan struct{}
}

// PendingPlan is a plan that was handed in and is answered once.
type PendingPlan struct {
	plan *model.Plan
	done chan struct{}

	// Written before done is closed, read after it.
	result *model.PlanResult
	err    error

	// place is guarded by Queue.mu.
	place place
}

// place is where a pending plan is.
type place uint8

const (
	placeQueue place = iota
	placeApplier
	placeAnswered
)

// NewQueue returns a disabled queue.
func NewQueue() *Queue { return &Queue{more: make(chan struct{}, 1)} }

// SetEnabled turns the queue on or off. Turning it off answers every plan that
// waits with ErrDisabled; plans that the applier has taken are its business.
func (q *Queue) SetEnabled(on bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enabled = on
	if on {
		return
	}
	for q.heap.Len() > 0 {
		q.answerLocked(q.heap.Pop().Value, nil, ErrDisabled)
	}
	q.waiting = 0
}

// Enabled is whether plans are accepted.
func (q *Queue) Enabled() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.enabled
}

// Depth is how many plans wait.
func (q *Queue) Depth() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// Enqueue hands a plan in and returns at once. The plan must not be changed
// afterwards. It fails with a PlanError or with ErrDisabled.
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
	q.heap.Push(heapq.Key{A: uint64(math.MaxInt32 - int64(plan.Priority)), B: q.seq}, p)
	q.waiting++
	select {
	case q.more <- struct{}{}:
	default:
	}
	return p, nil
}

// Submit hands a plan in and waits for its result. When ctx ends first, a plan
// that still waits is withdrawn; one that the applier has taken may yet be
// applied, and the error says so.
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
	case <-p.done: // answered meanwhile: better than "maybe"
		return p.result, p.err
	default:
		return nil, fmt.Errorf("plan may be applied yet: %w", ctx.Err())
	}
}

// Done is closed once the plan is answered.
func (p *PendingPlan) Done() <-chan struct{} { return p.done }

// Result is the answer. It may be called only after Done is closed.
func (p *PendingPlan) Result() (*model.PlanResult, error) {
	select {
	case <-p.done:
		return p.result, p.err
	default:
		return nil, errors.New("planner: Result before Done")
	}
}

// withdraw takes a plan back that the applier has not taken.
func (q *Queue) withdraw(p *PendingPlan, why error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.place != placeQueue {
		return false
	}
	q.answerLocked(p, nil, why)
	q.waiting--
	// Withdrawn plans stay in the heap until they come up. When most of it is
	// such plans they go at once, so that impatient submitters cost no memory.
	if dead := q.heap.Len() - q.waiting; dead > 64 && dead > q.waiting {
		q.heap.Filter(func(it *heapq.Item[*PendingPlan]) bool { return it.Value.place == placeQueue })
	}
	return true
}

// take hands the first plan to the applier; nil when none waits.
func (q *Queue) take() *PendingPlan {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.heap.Len() > 0 {
		p := q.heap.Pop().Value
		if p.place == placeQueue {
			p.place = placeApplier
			q.waiting--
			return p
		}
	}
	return nil
}

// answer gives the submitter of a taken plan its result.
func (q *Queue) answer(p *PendingPlan, result *model.PlanResult, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.answerLocked(p, result, err)
}

func (q *Queue) answerLocked(p *PendingPlan, result *model.PlanResult, err error) {
	if p.place == placeAnswered {
		return
	}
	p.place = placeAnswered
	p.result, p.err = result, err
	close(p.done)
}
