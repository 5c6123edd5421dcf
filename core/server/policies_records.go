package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/cede-scheduler/cede/core/internal/ring"
	"github.com/cede-scheduler/cede/core/server/eventsink"
)

// Topics of the history that hold what policies decided.
const (
	topicPolicyDecisions = "policy-decisions" // of PolicyDecision
	topicPolicyShadows   = "policy-shadows"   // of ShadowDifference
)

// recordsQueue is how many records may wait for the disk; recordsKept how many
// of the newest decisions are kept in memory.
const (
	recordsQueue = 1024
	recordsKept  = 256
)

// policyRecords keeps what policies decided: the newest in memory, all of it in
// the history. A worker that decides never waits for a disk: what finds no room
// in the queue is left out and counted.
type policyRecords struct {
	history eventsink.History // nil: there is none
	logger  *slog.Logger
	queue   chan policyRecord

	mu     sync.Mutex
	newest ring.Ring[*PolicyDecision]
	lost   int64

	last map[string]recordAt // by topic; run alone uses it
}

type policyRecord struct {
	topic string
	index uint64
	data  any
}

// recordAt is where the last record of a topic is.
type recordAt struct {
	index uint64
	seq   uint64
}

func newPolicyRecords(h eventsink.History, logger *slog.Logger) *policyRecords {
	return &policyRecords{
		history: h, logger: logger, queue: make(chan policyRecord, recordsQueue),
		newest: ring.New[*PolicyDecision](recordsKept), last: map[string]recordAt{},
	}
}

// decision keeps a decision. It is not changed any more.
func (r *policyRecords) decision(d *PolicyDecision) {
	r.mu.Lock()
	r.newest.Add(d)
	r.mu.Unlock()
	r.keep(topicPolicyDecisions, d.Index, d)
}

// keep has a record written.
func (r *policyRecords) keep(topic string, index uint64, data any) {
	if r.history == nil {
		return
	}
	select {
	case r.queue <- policyRecord{topic, index, data}:
	default:
		r.mu.Lock()
		r.lost++
		r.mu.Unlock()
	}
}

// decisions is the newest decisions under a policy's name, the newest first, and
// how many records were not written.
func (r *policyRecords) decisions(name string, most int) (list []*PolicyDecision, lost int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for d := range r.newest.Backward {
		if len(list) == most {
			break
		}
		if d.Policy == name {
			list = append(list, d)
		}
	}
	return list, r.lost
}

// run writes records until the context ends, and then what is still there.
func (r *policyRecords) run(ctx context.Context) {
	for {
		select {
		case rec := <-r.queue:
			r.write(rec)
		case <-ctx.Done():
			for len(r.queue) > 0 {
				r.write(<-r.queue)
			}
			return
		}
	}
}

// write appends a record. Workers decide on snapshots in no order; the history
// wants rising indexes, so a late one goes to the index of the last.
func (r *policyRecords) write(rec policyRecord) {
	data, err := json.Marshal(rec.data)
	if err == nil {
		at := r.last[rec.topic]
		if rec.index > at.index {
			at = recordAt{index: rec.index}
		} else {
			at.seq++
		}
		r.last[rec.topic] = at
		err = r.history.Append(rec.topic, at.index, at.seq, data)
	}
	if err != nil {
		r.logger.Warn("decision of a policy not recorded", "topic", rec.topic, "err", err)
	}
}
