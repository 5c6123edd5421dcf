package comparisons

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/cede-scheduler/cede/core/clock"
)

// Status is the state of a comparison.
type Status string

// The states of comparisons.
const (
	Waiting   Status = "waiting"
	Running   Status = "running"
	Complete  Status = "complete"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// A Comparison describes a comparison to callers. It is a copy.
type Comparison struct {
	ID       string
	Name     string
	Policies []string
	Seeds    int
	Actor    string // accessor of the token that submitted it; "": none
	Status   Status
	Progress
	Created, Started, Ended int64 // Unix nanoseconds; 0: not yet
	Error                   *Error
	Warnings                []string
	Version                 uint64 // of this state; it grows with every change
}

// ErrFull means that a comparison waits already.
var ErrFull = errors.New("another comparison waits")

// ErrNotFound means that no comparison has the ID.
var ErrNotFound = errors.New("comparison not found")

// ErrNoReport means that a comparison has no report.
var ErrNoReport = errors.New("the comparison has no report")

// Config configures a queue.
type Config struct {
	Command []string // starts a process that calls Serve, with Arg as one more argument
	Limits  Limits
	Clock   clock.Clock // default: clock.Real
}

// A Queue plays comparisons one after the other.
type Queue struct {
	command []string
	limits  Limits
	clock   clock.Clock

	mu       sync.Mutex
	entries  []*entry // the oldest first
	reserved bool     // a caller reads the input of the next comparison
	playing  bool     // Invariant: at most one goroutine plays
	closed   bool
	version  uint64
	players  sync.WaitGroup
}

// An entry is a comparison with its input or its report.
type entry struct {
	Comparison
	input   *Input // nil when it has ended
	report  *Report
	cancel  context.CancelFunc // while it is played
	changed chan struct{}      // closed by the next change
}

// NewQueue returns a queue. Nothing runs before the first comparison.
func NewQueue(c Config) *Queue {
	if c.Clock == nil {
		c.Clock = clock.Real{}
	}
	return &Queue{command: c.Command, limits: c.Limits.WithDefaults(), clock: c.Clock}
}

// Limits returns the limits of a comparison.
func (q *Queue) Limits() Limits { return q.limits }

// Reserve reserves the place of the next comparison, so that at most one caller holds an
// input in memory besides those of the queue. It returns ErrFull if the place is taken. The
// caller must call release.
func (q *Queue) Reserve() (release func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.reserved || slices.ContainsFunc(q.entries, func(e *entry) bool { return e.Status == Waiting }) {
		return nil, ErrFull
	}
	q.reserved = true
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.reserved = false
	}), nil
}

// Submit queues a comparison. The caller holds the reservation.
func (q *Queue) Submit(in *Input, actor string) Comparison {
	in.Limits = q.limits
	e := &entry{input: in, changed: make(chan struct{})}
	e.ID, e.Name, e.Seeds, e.Actor, e.Status = strings.ToLower(rand.Text()[:12]), in.Name, in.Seeds, actor, Waiting
	for _, p := range in.Policies {
		e.Policies = append(e.Policies, p.Name)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	e.Created = q.clock.Now().UnixNano()
	q.entries = append(q.entries, e)
	q.change(e)
	if !q.playing && !q.closed {
		q.playing = true
		q.players.Go(q.play)
	}
	return e.Comparison
}

// change wakes the callers that wait for a change of the entry. The caller must hold mu.
func (q *Queue) change(e *entry) {
	q.version++
	e.Version = q.version
	close(e.changed)
	e.changed = make(chan struct{})
}

// play plays until no comparison waits.
func (q *Queue) play() {
	for {
		ctx, cancel := context.WithCancel(context.Background())
		e := q.next(cancel)
		if e == nil {
			cancel()
			return
		}
		report, err := run(ctx, q.command, e.input, func(p Progress) {
			q.mu.Lock()
			defer q.mu.Unlock()
			e.Progress = p
			q.change(e)
		})
		q.end(e, report, err, ctx.Err() != nil)
		cancel()
	}
}

// next marks the comparison that waits as running. It returns nil if none does.
func (q *Queue) next(cancel context.CancelFunc) *entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.entries, func(e *entry) bool { return e.Status == Waiting })
	if i < 0 || q.closed {
		q.playing = false
		return nil
	}
	e := q.entries[i]
	e.Status, e.Started, e.cancel = Running, q.clock.Now().UnixNano(), cancel
	q.change(e)
	return e
}

func (q *Queue) end(e *entry, report *Report, err *Error, cancelled bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.input, e.cancel, e.Ended = nil, nil, q.clock.Now().UnixNano()
	switch {
	case cancelled:
		e.Status = Cancelled
	case err != nil:
		e.Status, e.Error = Failed, err
	default:
		e.Status, e.report, e.Warnings, e.Share = Complete, report, report.Warnings, 1
	}
	q.change(e)
	q.forget()
}

// forget removes the oldest ended comparisons beyond the limits. The caller must hold mu.
func (q *Queue) forget() {
	kept, bytes := 0, 0
	for i, e := range slices.Backward(q.entries) {
		if e.Ended == 0 {
			continue
		}
		if e.report != nil {
			bytes += e.report.size()
		}
		if kept++; kept > q.limits.Kept || kept > 1 && bytes > q.limits.KeptBytes {
			q.entries = slices.Delete(q.entries, i, i+1)
		}
	}
}

// List returns all comparisons, the newest first.
func (q *Queue) List() []Comparison {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := make([]Comparison, len(q.entries))
	for i, e := range q.entries {
		list[len(list)-1-i] = e.Comparison
	}
	return list
}

// Get returns a comparison as soon as its version is greater than after, or when ctx ends.
func (q *Queue) Get(ctx context.Context, id string, after uint64) (Comparison, error) {
	for {
		q.mu.Lock()
		e := q.find(id)
		if e == nil {
			q.mu.Unlock()
			return Comparison{}, ErrNotFound
		}
		got, changed := e.Comparison, e.changed
		q.mu.Unlock()
		if got.Version > after || got.Ended != 0 {
			return got, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return got, nil
		}
	}
}

// find returns the entry with the ID, or nil. The caller must hold mu.
func (q *Queue) find(id string) *entry {
	for _, e := range q.entries {
		if e.ID == id {
			return e
		}
	}
	return nil
}

// Report returns the report of a comparison.
func (q *Queue) Report(id string) (*Report, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.find(id)
	switch {
	case e == nil:
		return nil, ErrNotFound
	case e.report == nil:
		return nil, ErrNoReport
	}
	return e.report, nil
}

// Cancel ends a comparison that waits or is played, and removes one that has ended.
func (q *Queue) Cancel(id string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.find(id)
	switch {
	case e == nil:
		return ErrNotFound
	case e.Status == Waiting:
		e.Status, e.input, e.Ended = Cancelled, nil, q.clock.Now().UnixNano()
		q.change(e)
	case e.cancel != nil:
		e.cancel()
	default:
		q.entries = slices.DeleteFunc(q.entries, func(o *entry) bool { return o == e })
		q.change(e)
	}
	return nil
}

// Stop ends all comparisons, and waits for the process.
func (q *Queue) Stop() {
	q.mu.Lock()
	q.closed = true
	for _, e := range q.entries {
		if e.cancel != nil {
			e.cancel()
		}
	}
	q.mu.Unlock()
	q.players.Wait()
}
