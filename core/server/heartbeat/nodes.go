package heartbeat

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/internal/heapq"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state/apply"
)

const (
	// maxWindow is the longest time for which nodes that fail together are collected.
	maxWindow = 2 * time.Second
	// stormNodes is how many nodes in one window double the next one.
	stormNodes = 4
)

// Nodes tracks the deadlines of nodes.
//
// One timer a node would be 10,000 timers that are reset 500 times a second. Instead, a
// heartbeat writes one number. Nodes are in a heap by the deadline that they had when
// they were pushed, and one timer waits for the first of them. A node that comes up with
// a later deadline by then is pushed again, so that it moves once a TTL however often it
// reports.
//
// The nodes of a rack that loses power miss their deadlines one after the other, because
// deadlines are spread. Those that expire within a window form one entry, for which the
// state creates one evaluation for each job. A window with many nodes doubles the next
// one: every entry of a storm costs an evaluation of each system job.
type Nodes struct {
	cfg Config

	mu      sync.Mutex
	active  bool
	ctx     context.Context // of writes; ends with the term
	cancel  context.CancelFunc
	due     map[string]int64   // deadlines in ticks, of nodes that are up
	heap    heapq.Heap[string] // IDs by deadline. Invariant: holds every key of due, at its deadline or an earlier one.
	timer   clock.Timer
	window  time.Duration
	expired []string // to be written when the window ends
	waiting bool     // a goroutine waits for the window to end
	group   sync.WaitGroup
}

// NewNodes returns a tracker that is inactive before Start.
func NewNodes(c Config) *Nodes { return &Nodes{cfg: c} }

// Start tracks all nodes that are up. The deadlines of the leader before are unknown,
// so every node gets time to find this one.
func (h *Nodes) Start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.active, h.due, h.heap, h.expired = true, map[string]int64{}, heapq.Heap[string]{}, nil
	h.window, h.waiting = h.cfg.ExpiryWindow, false
	snap := h.cfg.Writer.Snapshot()
	base := h.baseTTL(snap.NodeCount())
	at := h.cfg.Ticks() + int64(max(h.cfg.FailoverGrace, 3*base))
	for n := range snap.Nodes() {
		if n.Status == model.NodeReady {
			h.set(n.ID, at+h.cfg.Random(int64(base)))
		}
	}
	h.resetTimer()
}

// Stop drops all deadlines and waits for writes in flight.
func (h *Nodes) Stop() {
	h.mu.Lock()
	h.active, h.due, h.heap, h.expired = false, nil, heapq.Heap[string]{}, nil
	if h.timer != nil {
		h.timer.Stop()
	}
	h.cancel()
	h.mu.Unlock()
	h.group.Wait()
}

// baseTTL returns the shortest TTL at which so many nodes stay below the rate.
func (h *Nodes) baseTTL(nodes int) time.Duration {
	stretched := time.Duration(nodes) * time.Second / time.Duration(h.cfg.Rate)
	return max(h.cfg.TTL, stretched)
}

// Beat records that a node reported, and returns the time within which it must report
// again. nodes is how many there are.
func (h *Nodes) Beat(id string, nodes int) time.Duration {
	base := h.baseTTL(nodes)
	ttl := base + time.Duration(h.cfg.Random(int64(base)))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.active {
		h.set(id, h.cfg.Ticks()+int64(ttl+h.cfg.Grace))
		h.resetTimer()
	}
	return ttl
}

// Len returns how many nodes are tracked.
func (h *Nodes) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.due)
}

// Remove stops tracking a node.
func (h *Nodes) Remove(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.due, id)
}

func (h *Nodes) set(id string, at int64) {
	if _, known := h.due[id]; !known {
		h.heap.Push(heapq.Key{A: uint64(at)}, id)
	}
	h.due[id] = at
}

// resetTimer sets the timer to the first deadline in the heap. If that has moved by the
// time the timer fires, the timer is set again.
func (h *Nodes) resetTimer() {
	if h.heap.Len() == 0 {
		return
	}
	d := time.Duration(max(int64(h.heap.Min().A)-h.cfg.Ticks(), 0))
	if h.timer == nil {
		h.timer = h.cfg.Clock.AfterFunc(d, h.expire)
		return
	}
	h.timer.Reset(d)
}

// expire collects the nodes that missed their deadline.
func (h *Nodes) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.active {
		return
	}
	now := h.cfg.Ticks()
	for h.heap.Len() > 0 && int64(h.heap.Min().A) <= now {
		id := h.heap.Pop().Value
		at, known := h.due[id]
		switch {
		case !known:
		case at > now:
			h.heap.Push(heapq.Key{A: uint64(at)}, id)
		default:
			delete(h.due, id)
			h.expired = append(h.expired, id)
		}
	}
	h.resetTimer()
	h.scheduleWrite()
}

// scheduleWrite writes the expired nodes when the window ends.
func (h *Nodes) scheduleWrite() {
	if len(h.expired) == 0 || h.waiting {
		return
	}
	h.waiting = true
	ctx, window := h.ctx, h.window
	h.group.Go(func() {
		if clock.Sleep(ctx, h.cfg.Clock, window) {
			h.write(ctx)
		}
	})
}

// write marks the expired nodes as down, except those that have reported meanwhile.
func (h *Nodes) write(ctx context.Context) {
	snap := h.cfg.Writer.Snapshot()
	h.mu.Lock()
	ids := slices.DeleteFunc(h.expired, func(id string) bool {
		_, back := h.due[id]
		n := snap.Node(id)
		return back || n == nil || n.Status == model.NodeDown
	})
	h.expired, h.waiting = nil, false
	h.adjustWindow(len(ids))
	h.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	for part := range slices.Chunk(ids, h.cfg.BatchSize(len(ids))) {
		if err := h.markDown(ctx, part); err != nil {
			h.retry(part)
		}
	}
}

// adjustWindow doubles the window during a storm and resets it afterwards.
func (h *Nodes) adjustWindow(nodes int) {
	if nodes >= stormNodes {
		h.window = min(2*max(h.window, time.Millisecond), max(maxWindow, h.cfg.ExpiryWindow))
	} else {
		h.window = h.cfg.ExpiryWindow
	}
}

func (h *Nodes) markDown(ctx context.Context, ids []string) error {
	down := model.NodeDown
	_, err := h.cfg.Writer.Commit(ctx, &replication.ChangeNodes{IDs: ids, Change: apply.NodeChange{Status: &down}})
	if err != nil {
		if ctx.Err() == nil {
			h.cfg.Logger.WarnContext(ctx, "failed to mark nodes down", "nodes", len(ids), "err", err)
		}
		return err
	}
	h.cfg.Logger.InfoContext(ctx, "nodes missed their heartbeats", "nodes", len(ids), "node_id", ids[0])
	return nil
}

// retry gives nodes that could not be marked down another second.
func (h *Nodes) retry(ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.active {
		return
	}
	at := h.cfg.Ticks() + int64(time.Second)
	for _, id := range ids {
		if _, back := h.due[id]; !back {
			h.set(id, at)
		}
	}
	h.resetTimer()
}
