package policymgr

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/cede-scheduler/cede/core/internal/ring"
)

// Topics of the history.
const (
	topicDecisions = "policy-decisions" // of Decision
	topicShadows   = "policy-shadows"   // of ShadowDifference
)

const (
	// maxQueue is how many records may wait for the disk.
	maxQueue = 1024
	// maxRecent is how many of the newest decisions are held in memory.
	maxRecent = 256
)

// decisionHistory stores decisions: the newest in memory, and all of them in the history.
// A worker never waits for the disk: records that the queue has no space for are dropped
// and counted.
type decisionHistory struct {
	store  History // nil: decisions are held in memory only
	logger *slog.Logger
	queue  chan record

	mu      sync.Mutex
	recent  ring.Ring[*Decision]
	dropped int64

	last map[string]position // by topic; used by run only
}

type record struct {
	topic string
	index uint64
	data  any
}

// position is that of the last record of a topic.
type position struct{ index, seq uint64 }

func newDecisionHistory(h History, logger *slog.Logger) *decisionHistory {
	return &decisionHistory{
		store: h, logger: logger, queue: make(chan record, maxQueue),
		recent: ring.New[*Decision](maxRecent), last: map[string]position{},
	}
}

// add stores a decision, which must not be changed any more.
func (h *decisionHistory) add(d *Decision) {
	h.mu.Lock()
	h.recent.Add(d)
	h.mu.Unlock()
	h.enqueue(topicDecisions, d.Index, d)
}

// enqueue queues a record for the history.
func (h *decisionHistory) enqueue(topic string, index uint64, data any) {
	if h.store == nil {
		return
	}
	select {
	case h.queue <- record{topic, index, data}:
	default:
		h.mu.Lock()
		h.dropped++
		h.mu.Unlock()
	}
}

// recentOf returns the newest decisions of a policy, the newest first, and how many
// records of all policies were dropped.
func (h *decisionHistory) recentOf(name string, limit int) (list []*Decision, dropped int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for d := range h.recent.Backward {
		if len(list) == limit {
			break
		}
		if d.Policy == name {
			list = append(list, d)
		}
	}
	return list, h.dropped
}

// run writes records until ctx ends, and then drains the queue.
func (h *decisionHistory) run(ctx context.Context) {
	for {
		select {
		case r := <-h.queue:
			h.write(r)
		case <-ctx.Done():
			for len(h.queue) > 0 {
				h.write(<-h.queue)
			}
			return
		}
	}
}

// write appends a record. Workers plan on snapshots in any order, but the history requires
// rising indexes: a late record gets the index of the last one.
func (h *decisionHistory) write(r record) {
	data, err := json.Marshal(r.data)
	if err == nil {
		at := h.last[r.topic]
		if r.index > at.index {
			at = position{index: r.index}
		} else {
			at.seq++
		}
		h.last[r.topic] = at
		err = h.store.Append(r.topic, at.index, at.seq, data)
	}
	if err != nil {
		h.logger.Warn("failed to record policy decision", "topic", r.topic, "err", err)
	}
}
