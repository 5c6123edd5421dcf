// Package eventsink turns applied log entries into events and preemption decisions,
// and serves both to readers.
//
// Every server builds the same events from the same entries, so that a reader can
// continue at another server. Nothing here changes the state.
//
// Observe must be called by the goroutine that applies the log, in the order of the
// log; it never blocks. All other methods are safe for concurrent use.
package eventsink

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"sync"

	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/internal/ring"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/storage/history"
)

// History stores records for longer than events are held in memory: *history.Store.
// Append is called with rising indexes; seq counts the records of one index. After a
// restart, records that were appended before may be appended again.
type History interface {
	Append(topic string, index, seq uint64, data []byte) error
	List(q history.Query) ([]history.Record, error)
}

// topicDecisions is the topic of the history that holds Decisions.
const topicDecisions = "decisions"

// maxDecisions is how many of the newest decisions are held in memory.
const maxDecisions = 1024

// Config configures a Publisher.
type Config struct {
	Capacity int     // events held for readers; 0: events.DefaultCapacity
	History  History // nil: decisions are held in memory only
	Logger   *slog.Logger
	// StateIndex returns the index of the state. Decisions waits until the entries up to it are
	// published. nil: it does not wait.
	StateIndex func() uint64
	// OnEntry is called for each entry that took effect, before its events are
	// published, with the state before the entry, or nil if that is unknown. nil: states
	// are not held for it.
	OnEntry func(a *replication.Applied, before *state.Snapshot)
}

// A Publisher publishes the events of applied entries. Make it with New.
type Publisher struct {
	cfg    Config
	stream *events.Buffer

	mu      sync.Mutex
	queue   []replication.Applied
	started bool          // Observe was called
	more    chan struct{} // one slot: queue is not empty

	// published is the index of the newest published entry, or of the state when the publisher
	// was made; advanced is closed and replaced when it changes.
	published uint64
	advanced  chan struct{}

	// before is the state after the last published entry; nil without OnEntry. It is
	// used by the goroutine of Run only.
	before *state.Snapshot

	newestMu sync.Mutex
	newest   ring.Ring[*Decision]
}

// New returns a Publisher that publishes nothing before Run.
func New(c Config) *Publisher {
	p := &Publisher{
		cfg: c, stream: events.NewBuffer(c.Capacity), more: make(chan struct{}, 1), newest: ring.New[*Decision](maxDecisions),
		advanced: make(chan struct{}),
	}
	if c.StateIndex != nil {
		p.published = c.StateIndex()
	}
	return p
}

// Observe queues applied entries for publication.
func (p *Publisher) Observe(list []replication.Applied) {
	if len(list) == 0 {
		return
	}
	p.mu.Lock()
	if !p.started { // readers must not assume that they have seen earlier events
		p.started = true
		p.queue = append(p.queue, replication.Applied{Index: list[0].Index - 1})
	}
	p.queue = append(p.queue, list...)
	p.mu.Unlock()
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// Run publishes until ctx ends, and then drains the queue.
func (p *Publisher) Run(ctx context.Context) {
	for {
		select {
		case <-p.more:
			p.publishQueue()
		case <-ctx.Done():
			p.publishQueue()
			p.advance(math.MaxUint64) // nothing follows
			return
		}
	}
}

// Close ends every subscription. It is called after Run has returned.
func (p *Publisher) Close() { p.stream.Close() }

func (p *Publisher) publishQueue() {
	p.mu.Lock()
	list := p.queue
	p.queue = nil
	p.mu.Unlock()
	for i := range list {
		p.publish(&list[i])
		if p.cfg.OnEntry != nil {
			p.before = list[i].Snap
		}
		p.advance(list[i].Index)
		list[i] = replication.Applied{} // releases its snapshot
	}
}

// advance records that the entries up to an index are published.
func (p *Publisher) advance(index uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.published = max(p.published, index)
	close(p.advanced)
	p.advanced = make(chan struct{})
}

// waitForState waits until the entries of the current state are published: a reader that has
// seen an evaluation complete also finds its decisions. It returns the error of ctx.
func (p *Publisher) waitForState(ctx context.Context) error {
	if p.cfg.StateIndex == nil {
		return nil
	}
	for index := p.cfg.StateIndex(); ; {
		p.mu.Lock()
		published, advanced := p.published, p.advanced
		p.mu.Unlock()
		if published >= index {
			return nil
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *Publisher) publish(a *replication.Applied) {
	if a.Entry == nil {
		p.stream.Reset(a.Index)
		p.stream.Publish(auditEvents(a)...)
		return
	}
	if a.Result.Err != nil || a.Result.Replayed {
		return
	}
	if p.cfg.OnEntry != nil {
		p.cfg.OnEntry(a, p.before)
	}
	list := eventsOf(a)
	p.stream.Publish(list...)
	seq := uint64(0)
	for i := range list {
		if payload, ok := list[i].Payload.(events.DecisionPayload); ok {
			p.storeDecision(&Decision{Index: a.Index, Time: a.Entry.Time, Namespace: list[i].Namespace, DecisionPayload: payload}, seq)
			seq++
		}
	}
}

// storeDecision stores a decision in memory and in the history.
func (p *Publisher) storeDecision(d *Decision, seq uint64) {
	p.newestMu.Lock()
	p.newest.Add(d)
	p.newestMu.Unlock()
	if p.cfg.History == nil {
		return
	}
	data, err := json.Marshal(d)
	if err == nil {
		err = p.cfg.History.Append(topicDecisions, d.Index, seq, data)
	}
	if err != nil {
		p.cfg.Logger.Warn("failed to record preemption decision", "index", d.Index, "eval_id", d.EvalID, "err", err)
	}
}

// Events subscribes to events from an index on, or to future events if from is 0. No
// topics, or "*", selects all topics; an unknown topic has no events. If events from
// that index on are no longer held, the subscription reports them as lost.
func (p *Publisher) Events(_ context.Context, from uint64, topics []string) (*events.Subscription, error) {
	var filter events.Filter
	for _, name := range topics {
		if name == "*" {
			return p.stream.Subscribe(from, nil), nil
		}
		filter = append(filter, events.Topic(name))
	}
	return p.stream.Subscribe(from, filter), nil
}
