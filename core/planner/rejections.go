package planner

import (
	"slices"
	"time"
)

// RejectionTrackerConfig says when a node that keeps turning plans down is taken out of
// scheduling. A healthy cluster rejects now and then, when two plans meet on a
// node; a node that rejects on and on means that schedulers and applier
// disagree about it, and every further plan for it is lost work.
type RejectionTrackerConfig struct {
	Threshold int           // rejections within Window that mark a node; default 0: off
	Window    time.Duration // default: 5m
	Nodes     int           // nodes remembered, the least recently rejected are forgotten; default: 50
	Burst     int           // nodes that may be marked in a row; default: 10
	Refill    time.Duration // time after which one more may be marked; default: 6m
}

func (c RejectionTrackerConfig) withDefaults() RejectionTrackerConfig {
	if c.Window <= 0 {
		c.Window = 5 * time.Minute
	}
	if c.Nodes <= 0 {
		c.Nodes = 50
	}
	if c.Burst <= 0 {
		c.Burst = 10
	}
	if c.Refill <= 0 {
		c.Refill = 6 * time.Minute
	}
	return c
}

// tracker counts rejections by node. It belongs to the applier's goroutine.
type tracker struct {
	cfg    RejectionTrackerConfig
	recent []rejecting // most recently rejected first; at most cfg.Nodes

	// tokens is how many nodes may be marked now; it grows by one every
	// cfg.Refill up to cfg.Burst, counted from refilled.
	tokens   int
	refilled int64
}

// rejecting is one node with the times of its last rejections, oldest first;
// never more than the threshold, so a busy node needs no more memory.
type rejecting struct {
	nodeID string
	at     []int64
}

func newTracker(cfg RejectionTrackerConfig) *tracker {
	cfg = cfg.withDefaults()
	return &tracker{cfg: cfg, tokens: cfg.Burst}
}

// reject counts one rejection and says whether the node shall be marked
// ineligible. A node whose mark the rate limit holds back stays counted, so
// its next rejection asks again.
func (t *tracker) reject(nodeID string, now int64) bool {
	if t.cfg.Threshold <= 0 || nodeID == "" {
		return false
	}
	n := t.touch(nodeID)
	oldest := now - int64(t.cfg.Window)
	n.at = slices.DeleteFunc(n.at, func(at int64) bool { return at <= oldest })
	if len(n.at) == t.cfg.Threshold {
		n.at = slices.Delete(n.at, 0, 1)
	}
	n.at = append(n.at, now)
	if len(n.at) < t.cfg.Threshold || !t.spend(now) {
		return false
	}
	t.recent = slices.Delete(t.recent, 0, 1)
	return true
}

// touch moves the node to the front, forgetting another when it is new and
// there is no room.
func (t *tracker) touch(nodeID string) *rejecting {
	i := slices.IndexFunc(t.recent, func(r rejecting) bool { return r.nodeID == nodeID })
	r := rejecting{nodeID: nodeID}
	switch {
	case i >= 0:
		r = t.recent[i]
		t.recent = slices.Delete(t.recent, i, i+1)
	case len(t.recent) == t.cfg.Nodes:
		t.recent = t.recent[:len(t.recent)-1]
	}
	t.recent = slices.Insert(t.recent, 0, r)
	return &t.recent[0]
}

// spend takes one token if there is one at now.
func (t *tracker) spend(now int64) bool {
	if t.tokens >= t.cfg.Burst {
		t.refilled = now // a full bucket earns nothing
	}
	if earned := (now - t.refilled) / int64(t.cfg.Refill); earned > 0 {
		t.tokens = int(min(int64(t.tokens)+earned, int64(t.cfg.Burst)))
		t.refilled += earned * int64(t.cfg.Refill)
	}
	if t.tokens == 0 {
		return false
	}
	t.tokens--
	return true
}
