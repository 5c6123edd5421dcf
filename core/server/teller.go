package server

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
)

// topicDecisions is where the history keeps Decisions.
const topicDecisions = "decisions"

// decisionsKept is how many of the newest decisions are kept in memory.
const decisionsKept = 1024

// teller makes events of what was applied, beside the goroutine that applies.
// It does so on every server, from the same entries, so that a reader may go on
// at another server.
type teller struct {
	s *Server

	mu    sync.Mutex
	queue []replication.Applied
	begun bool          // something was noted
	more  chan struct{} // one slot

	// before is the state of the entry told last, for traces; nil: nobody watches,
	// or it is not known. It is of the goroutine that tells.
	before *state.Snapshot

	newest struct {
		sync.Mutex
		ring[*Decision]
	}
}

func newTeller(s *Server) *teller {
	t := &teller{s: s, more: make(chan struct{}, 1)}
	t.newest.capacity = decisionsKept
	return t
}

// note queues entries. It is called by the goroutine that applies.
func (t *teller) note(list []replication.Applied) {
	if len(list) == 0 {
		return
	}
	t.mu.Lock()
	if !t.begun { // what was applied before this server was told is not known to it
		t.begun = true
		t.queue = append(t.queue, replication.Applied{Index: list[0].Index - 1})
	}
	t.queue = append(t.queue, list...)
	t.mu.Unlock()
	select {
	case t.more <- struct{}{}:
	default:
	}
}

// run publishes until ctx ends, and then what is still there.
func (t *teller) run(ctx context.Context) {
	for {
		select {
		case <-t.more:
			t.tellAll()
		case <-ctx.Done():
			t.tellAll()
			return
		}
	}
}

func (t *teller) tellAll() {
	t.mu.Lock()
	list := t.queue
	t.queue = nil
	t.mu.Unlock()
	for i := range list {
		t.tell(&list[i])
		if t.s.traces != nil {
			t.before = list[i].Snap
		}
		list[i] = replication.Applied{} // its snapshot may go
	}
}

func (t *teller) tell(a *replication.Applied) {
	if a.Entry == nil {
		t.s.stream.Reset(a.Index)
		return
	}
	if a.Result.Err != nil || a.Result.Replayed {
		return
	}
	if t.s.term.Load() != nil {
		t.s.traces.RecordStarts(a, t.before)
	}
	n := narrator{a: a}
	n.tell()
	t.s.stream.Publish(n.list...)
	seq := uint64(0)
	for i := range n.list {
		if p, ok := n.list[i].Payload.(events.DecisionPayload); ok {
			t.keep(&Decision{Index: a.Index, Time: a.Entry.Time, Namespace: n.list[i].Namespace, DecisionPayload: p}, seq)
			seq++
		}
	}
}

// keep remembers a decision, in memory and in the history.
func (t *teller) keep(d *Decision, seq uint64) {
	t.newest.Lock()
	t.newest.add(d)
	t.newest.Unlock()
	if t.s.cfg.History == nil {
		return
	}
	data, err := json.Marshal(d)
	if err == nil {
		err = t.s.cfg.History.Append(topicDecisions, d.Index, seq, data)
	}
	if err != nil {
		t.s.logger.Warn("decision not recorded", "index", d.Index, "eval_id", d.EvalID, "err", err)
	}
}
