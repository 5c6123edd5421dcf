package planner

import (
	"slices"
	"time"
)

// RejectionTrackerConfig configures when a node that keeps rejecting plans is
// marked ineligible. A healthy cluster rejects occasionally, when two plans compete
// for a node. A node that rejects continuously means that schedulers and applier
// disagree about it, and every further plan for it is wasted.
type RejectionTrackerConfig struct {
	Threshold int           // rejections within Window that mark a node; default: 0, disabled
	Window    time.Duration // default: 5m
	Nodes     int           // nodes tracked; the least recently rejected is dropped; default: 50
	Burst     int           // nodes that may be marked at once; default: 10
	Refill    time.Duration // time until one more may be marked; default: 6m
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

// A tracker counts rejections by node. It belongs to the applier's goroutine. It is not
// part of the replicated state: a new leader counts from zero, which only delays
// a mark.
type tracker struct {
	cfg    RejectionTrackerConfig
	recent []rejectedNode // most recently rejected first; at most cfg.Nodes

	// tokens is the number of nodes that may be marked now. It grows by one every
	// cfg.Refill up to cfg.Burst, counted from refilled.
	tokens   int
	refilled int64
}

// A rejectedNode holds the times of the last rejections of a node, oldest first, at
// most as many as the threshold.
type rejectedNode struct {
	nodeID string
	at     []int64
}

func newTracker(cfg RejectionTrackerConfig) *tracker {
	cfg = cfg.withDefaults()
	return &tracker{cfg: cfg, tokens: cfg.Burst}
}

// reject counts a rejection and reports whether the node is to be marked ineligible. A
// node whose mark is rate-limited remains counted, so its next rejection tries again.
// now is the time of the batch, in Unix nanoseconds, and may be equal for many calls. A
// call costs a search over at most cfg.Nodes entries.
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
	// The node starts from zero: if an operator makes it eligible again, one rejection
	// must not mark it at once.
	t.recent = slices.Delete(t.recent, 0, 1)
	return true
}

// touch moves the node to the front. It drops the last node if the list is full.
func (t *tracker) touch(nodeID string) *rejectedNode {
	i := slices.IndexFunc(t.recent, func(r rejectedNode) bool { return r.nodeID == nodeID })
	r := rejectedNode{nodeID: nodeID}
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

// spend takes one token; it returns false if there is none at now. refilled advances by
// whole intervals, so that fractions of an interval are not lost.
func (t *tracker) spend(now int64) bool {
	if t.tokens >= t.cfg.Burst {
		t.refilled = now // a full bucket is not refilled
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
