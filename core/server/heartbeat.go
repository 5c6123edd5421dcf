package server

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
)

const (
	// widest is how long nodes that fail together are gathered at most.
	widest = 2 * time.Second
	// stormNodes is how many nodes in one window make the next one twice as long.
	stormNodes = 4
)

// heartbeats knows by when each node must report, on the leader.
//
// A timer for each node is 10,000 timers that are reset 500 times a second. Here
// a heartbeat writes one number; nodes lie in a heap by the deadline that they
// had when they were put there, and one timer waits for its head. What comes up
// with a later deadline by now goes back in, so that a node is moved once a TTL
// whatever it reports.
//
// Nodes of a rack that loses power miss their deadlines over a while, as those
// are spread. What misses its own within a window becomes one entry, for which
// apply makes one evaluation for each job, and a window with many makes the next
// one longer: every entry of a storm costs an evaluation of each system job.
type heartbeats struct {
	s *Server

	mu      sync.Mutex
	on      bool
	ctx     context.Context // of writes; ends with the term
	cancel  context.CancelFunc
	due     map[string]int64 // deadlines, in ticks; nodes that are up
	heap    deadlines
	timer   clock.Timer
	window  time.Duration
	expired []string // gathered
	closing bool     // the window's timer runs
	group   sync.WaitGroup
}

func newHeartbeats(s *Server) *heartbeats { return &heartbeats{s: s} }

// deadline is a node as it was put into the heap.
type deadline struct {
	at int64
	id string
}

type deadlines []deadline

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at < d[j].at }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(x any)        { *d = append(*d, x.(deadline)) }
func (d *deadlines) Pop() any {
	old := *d
	last := old[len(old)-1]
	*d = old[:len(old)-1]
	return last
}

// begin takes over all nodes that are up. What they reported to the leader
// before is not known, so all are given time to find this one.
func (h *heartbeats) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.on, h.due, h.heap, h.expired = true, map[string]int64{}, nil, nil
	h.window, h.closing = h.s.cfg.ExpiryWindow, false
	snap := h.s.Snapshot()
	base := h.base(snap.NodeCount())
	at := h.s.ticks() + int64(max(h.s.cfg.FailoverGrace, 3*base))
	for n := range snap.Nodes() {
		if n.Status == model.NodeReady {
			h.set(n.ID, at+h.s.cfg.Random(int64(base)))
		}
	}
	h.arm()
}

// end forgets everything.
func (h *heartbeats) end() {
	h.mu.Lock()
	h.on, h.due, h.heap, h.expired = false, nil, nil, nil
	if h.timer != nil {
		h.timer.Stop()
	}
	h.cancel()
	h.mu.Unlock()
	h.group.Wait()
}

// base is the shortest TTL: what keeps the reports of so many nodes below the
// rate that the leader wants.
func (h *heartbeats) base(nodes int) time.Duration {
	stretched := time.Duration(nodes) * time.Second / time.Duration(h.s.cfg.HeartbeatRate)
	return max(h.s.cfg.HeartbeatTTL, stretched)
}

// beat notes that a node is there, and says within what time it must report
// again.
func (h *heartbeats) beat(id string, nodes int) time.Duration {
	base := h.base(nodes)
	ttl := base + time.Duration(h.s.cfg.Random(int64(base)))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.on {
		h.set(id, h.s.ticks()+int64(ttl+h.s.cfg.HeartbeatGrace))
		h.arm()
	}
	return ttl
}

// pending is how many nodes have a deadline ahead.
func (h *heartbeats) pending() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.due)
}

// forget stops watching a node.
func (h *heartbeats) forget(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.due, id)
}

func (h *heartbeats) set(id string, at int64) {
	if _, known := h.due[id]; !known {
		heap.Push(&h.heap, deadline{at, id})
	}
	h.due[id] = at
}

// arm sets the timer to the head of the heap. A timer that fires too early finds
// nothing and is set again.
func (h *heartbeats) arm() {
	if len(h.heap) == 0 {
		return
	}
	d := time.Duration(max(h.heap[0].at-h.s.ticks(), 0))
	if h.timer == nil {
		h.timer = h.s.cfg.Clock.AfterFunc(d, h.fire)
		return
	}
	h.timer.Reset(d)
}

// fire gathers the nodes whose time is up.
func (h *heartbeats) fire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.on {
		return
	}
	now := h.s.ticks()
	for len(h.heap) > 0 && h.heap[0].at <= now {
		id := h.heap[0].id
		at, known := h.due[id]
		switch {
		case !known:
			heap.Pop(&h.heap)
		case at > now:
			h.heap[0].at = at
			heap.Fix(&h.heap, 0)
		default:
			heap.Pop(&h.heap)
			delete(h.due, id)
			h.expired = append(h.expired, id)
		}
	}
	h.arm()
	h.gather()
}

// gather has what has expired written when the window ends.
func (h *heartbeats) gather() {
	if len(h.expired) == 0 || h.closing {
		return
	}
	h.closing = true
	ctx, window := h.ctx, h.window
	h.group.Go(func() {
		if clock.Sleep(ctx, h.s.cfg.Clock, window) {
			h.write(ctx)
		}
	})
}

// write marks what was gathered as down. What was heard of meanwhile is not.
func (h *heartbeats) write(ctx context.Context) {
	snap := h.s.Snapshot()
	h.mu.Lock()
	ids := slices.DeleteFunc(h.expired, func(id string) bool {
		_, back := h.due[id]
		n := snap.Node(id)
		return back || n == nil || n.Status == model.NodeDown
	})
	h.expired, h.closing = nil, false
	h.widen(len(ids))
	h.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	size := h.s.entrySize(len(ids))
	for part := range slices.Chunk(ids, size) {
		if err := h.markDown(ctx, part); err != nil {
			h.again(part)
		}
	}
}

// widen makes the next window fit for a storm, or for the calm after it.
func (h *heartbeats) widen(nodes int) {
	if nodes >= stormNodes {
		h.window = min(2*max(h.window, time.Millisecond), max(widest, h.s.cfg.ExpiryWindow))
	} else {
		h.window = h.s.cfg.ExpiryWindow
	}
}

func (h *heartbeats) markDown(ctx context.Context, ids []string) error {
	down := model.NodeDown
	_, err := h.s.writer.Commit(ctx, &replication.ChangeNodes{IDs: ids, Change: state.NodeChange{Status: &down}})
	if err != nil {
		if ctx.Err() == nil {
			h.s.logger.WarnContext(ctx, "nodes not marked down", "nodes", len(ids), "err", err)
		}
		return err
	}
	h.s.logger.InfoContext(ctx, "nodes missed their heartbeats", "nodes", len(ids), "node_id", ids[0])
	return nil
}

// again gives nodes that could not be marked another moment.
func (h *heartbeats) again(ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.on {
		return
	}
	at := h.s.ticks() + int64(time.Second)
	for _, id := range ids {
		if _, back := h.due[id]; !back {
			h.set(id, at)
		}
	}
	h.arm()
}
