package broker

import (
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/internal/heapq"
	"github.com/cede-scheduler/cede/core/model"
)

// An UnblockFilter decides which blocked evaluations may use a node or member
// cluster that changed. Without it, capacity for one small task would wake ten
// thousand evaluations that need more.
//
// Both methods run under the lock of Blocked and must not call back into it.
type UnblockFilter interface {
	// MayPlace reports whether the evaluation may be able to use the node now.
	// Within one Unblock it is called in the order of release, so the filter may
	// subtract what the evaluations it accepted will use, and reject later ones.
	// A filter that does so must see to another Unblock of the node if the
	// capacity is not used after all. For cache see Excludes.
	MayPlace(eval *model.Evaluation, nodeID string, cache *any) bool
	// Excludes reports whether MayPlace is certain to return false, whichever
	// evaluations were accepted before. Most blocked evaluations need far more than
	// a change frees: Blocked skips them here without ordering them. A filter
	// without a cheap test returns false.
	//
	// Both methods may cache data about the evaluation in *cache, which is nil at
	// first and is retained while the evaluation is blocked.
	Excludes(eval *model.Evaluation, nodeID string, cache *any) bool
}

// A BlockResult is the result of Blocked.Block.
type BlockResult uint8

// The results.
const (
	BlockIgnored   BlockResult = iota // the broker is disabled, or the evaluation is final
	BlockTracked                      // waits for room
	BlockReleased                     // missed an unblock while it was computed: queued at once
	BlockDuplicate                    // a newer evaluation of its job waits instead
)

func (o BlockResult) String() string {
	return [...]string{"ignored", "tracked", "released", "duplicate"}[o]
}

// Blocked holds the evaluations that lack capacity, and queues them when a change
// may have freed some. NewBlocked creates it.
//
// Of each job it holds at most one evaluation that waits for classes of nodes: the
// one with the newest snapshot. Evaluations of system jobs wait for single nodes. A
// job may have several of them, which divide the nodes: the newest has all of its
// own, an older one those that the newer ones do not name.
type Blocked struct {
	b *Broker

	mu       sync.Mutex
	seq      uint64
	ids      map[string]*record
	jobs     map[model.JobKey]*blockedJob
	bindings group                    // bindings: waiting for member clusters
	byNode   group                    // waiting for nodes
	byClass  group                    // waiting for classes, without a shape
	shapes   shapes                   // waiting for classes, by shape
	dups     []*Cancellation          // oldest first
	dupOf    map[string]*Cancellation // by ID of the evaluation; the elements of dups
	recent   recentUnblocks
	// classes assigns numbers to the classes that records rule out.
	classes classNumbers
	types   [model.EvalTypes]int

	cursors heapq.Heap[cursor] // empty between calls
}

// A record is one blocked evaluation.
type record struct {
	head            // most changes read nothing else
	key   heapq.Key // order of release
	shape uint64    // equivalence class; 0 if it is in none
	nodes []string  // ascending; empty: waits for a class
	// ruledOut holds the numbers of the classes that are infeasible for it.
	ruledOut classSet
	gone     bool // no longer in ids; about to leave its group
}

// A head is the part of a record that decides whether a change may unblock it.
type head struct {
	eval  *model.Evaluation
	cache any    // owned by the UnblockFilter; see Excludes
	seen  uint64 // snapshot index of the evaluation
}

// isBinding reports whether the evaluation is of a binding: it waits for member
// clusters, not for nodes.
func (r *record) isBinding() bool { return r.eval.Type == model.JobBinding }

type blockedJob struct {
	byClass *record
	byNode  []*record // disjoint nodes, in no defined order
}

// NewBlocked creates the tracker of b, of which there is one. It accepts
// evaluations while b is enabled and is flushed when b is disabled.
func NewBlocked(b *Broker) *Blocked {
	t := &Blocked{b: b}
	t.reset()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blocked = t
	return t
}

// Flush drops all evaluations.
func (t *Blocked) Flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reset()
}

func (t *Blocked) reset() {
	t.ids = make(map[string]*record)
	t.jobs = make(map[model.JobKey]*blockedJob)
	t.shapes = newShapes()
	t.bindings, t.byNode, t.byClass = nil, nil, nil
	t.dups, t.dupOf = nil, map[string]*Cancellation{}
	t.recent, t.classes = newRecentUnblocks(), newClassNumbers()
	t.types = [model.EvalTypes]int{}
}

// Block adds an evaluation that lacked capacity in the state at its SnapshotIndex.
// If a later change may have freed some, it is queued at once. filter, which may be
// nil, decides for the nodes concerned.
func (t *Blocked) Block(ev *model.Evaluation, filter UnblockFilter) BlockResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ev.Status.Final() {
		t.removeID(ev.ID)
		return BlockIgnored
	}
	if !t.b.Enabled() {
		return BlockIgnored
	}
	t.recent.prune(t.b.now(), t.b.cfg.UnblockRetention)
	r := t.newRecord(ev)
	if index, ok := t.recent.missedBy(r, &t.classes, filter); ok {
		t.removeID(ev.ID)
		t.b.enqueueUnblocked(index, ev)
		return BlockReleased
	}
	return t.track(r)
}

// Unblock queues the evaluations that wait for the node after a change of its
// capacity at index: highest priority first, then oldest. If nodeID is empty, some
// node of the class changed. An evaluation stays blocked if its snapshot is not
// older than index, or if filter, which may be nil, rejects it. It returns the
// queued evaluations in order.
func (t *Blocked) Unblock(class uint64, nodeID string, index uint64, filter UnblockFilter) []*model.Evaluation {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.b.Enabled() {
		return nil
	}
	now := t.b.now()
	t.recent.add(location{class, nodeID}, index, now)
	t.recent.prune(now, t.b.cfg.UnblockRetention)
	return t.release(change{location: location{class, nodeID}, index: index}.with(filter))
}

// UnblockAll is Unblock for a change that may affect every evaluation: another
// policy, another configuration, or a new leader, which has no record of the changes
// that it missed.
func (t *Blocked) UnblockAll(index uint64) []*model.Evaluation {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.b.Enabled() {
		return nil
	}
	t.recent.raiseFloor(index)
	return t.release(change{everywhere: true, index: index})
}

// Untrack removes and returns the blocked evaluations of a job, because an
// evaluation placed all of it or the job was deleted. The caller sets their final
// status.
func (t *Blocked) Untrack(key model.JobKey) []*model.Evaluation {
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.jobs[key]
	if j == nil {
		return nil
	}
	recs := slices.Clone(j.byNode)
	if j.byClass != nil {
		recs = append(recs, j.byClass)
	}
	slices.SortFunc(recs, compareRecords)
	out := make([]*model.Evaluation, len(recs))
	for i, r := range recs {
		t.remove(r)
		out[i] = r.eval
	}
	return out
}

// Remove drops an evaluation that was cancelled or deleted in the state, and
// reports whether it was held.
func (t *Blocked) Remove(evalID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.removeID(evalID)
}

func (t *Blocked) removeID(evalID string) bool {
	r := t.ids[evalID]
	if r == nil {
		return false
	}
	t.remove(r)
	return true
}

// Contains reports whether the evaluation is blocked.
func (t *Blocked) Contains(evalID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ids[evalID] != nil
}

// PopDuplicates removes and returns evaluations that a newer blocked one replaces,
// oldest first, at most limit of them; if limit is not positive, a batch. The
// caller cancels them in the state.
func (t *Blocked) PopDuplicates(limit int) []*Cancellation {
	t.mu.Lock()
	defer t.mu.Unlock()
	if limit <= 0 {
		limit = t.b.cfg.ReaperBatch
	}
	n := min(limit, len(t.dups))
	if n == 0 {
		return nil
	}
	out := slices.Clone(t.dups[:n])
	t.dups = slices.Delete(t.dups, 0, n)
	for _, c := range out {
		delete(t.dupOf, c.Eval.ID)
	}
	if len(t.dups) > 0 {
		t.b.reap.wake()
	}
	return out
}

// ReturnDuplicates returns evaluations from PopDuplicates that could not be
// written.
func (t *Blocked) ReturnDuplicates(cs []*Cancellation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.b.Enabled() && len(cs) > 0 {
		for _, c := range cs {
			if t.dupOf[c.Eval.ID] == nil { // not duplicated again meanwhile
				t.addDuplicate(c)
			}
		}
		t.b.reap.wake()
	}
}

func (t *Blocked) counts() [model.EvalTypes]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.types
}

// Len returns the number of blocked evaluations.
func (t *Blocked) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ids)
}

// BlockedStats counts the blocked evaluations by what they wait for.
type BlockedStats struct {
	Total      int
	Captured   int // classes that may be feasible, or were not seen
	Escaped    int // any node
	ByNode     int // certain nodes
	Duplicates int // to be cancelled
}

// Stats returns the current counts.
func (t *Blocked) Stats() BlockedStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := BlockedStats{Total: len(t.ids), ByNode: len(t.byNode), Duplicates: len(t.dups)}
	for _, r := range t.ids {
		if len(r.nodes) == 0 && r.eval.Escaped {
			s.Escaped++
		}
	}
	s.Captured = s.Total - s.ByNode - s.Escaped
	return s
}
