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
	// capacity is not used after all.
	MayPlace(eval *model.Evaluation, nodeID string) bool
	// Excludes reports whether MayPlace is certain to return false, whichever
	// evaluations were accepted before. Most blocked evaluations need far more than
	// a change frees: Blocked skips them here without ordering them. The
	// filter may cache data about the evaluation in *cache, which is nil at first
	// and is retained while the evaluation is blocked. A filter without a cheap
	// test returns false.
	Excludes(eval *model.Evaluation, nodeID string, cache *any) bool
}

// BlockResult is what became of an evaluation given to Block.
type BlockResult uint8

// The outcomes.
const (
	BlockIgnored   BlockResult = iota // the broker is disabled, or the evaluation is final
	BlockTracked                      // waits for room
	BlockReleased                     // missed an unblock while it was computed: queued at once
	BlockDuplicate                    // a newer one of its job waits in its stead
)

func (o BlockResult) String() string {
	return [...]string{"ignored", "tracked", "released", "duplicate"}[o]
}

// Blocked holds the evaluations that found no room, and queues them when a
// change may have made some. Make it with NewBlocked.
//
// A job has at most one evaluation here that waits for a class, the one that
// looked at the newest snapshot. Of those that wait for nodes (system jobs) it
// may have several, which divide the nodes among them: the newest has all of
// its own, an older one what the newer do not name.
type Blocked struct {
	b *Broker

	mu     sync.Mutex
	seq    uint64
	ids    map[string]*record
	jobs   map[model.JobKey]*blockedJob
	bound  group            // bindings: waiting for member clusters
	nodal  group            // waiting for nodes
	single group            // waiting for classes, without a shape
	shapes map[uint64]group // waiting for classes, by shape
	dups   []*Cancellation
	seen   sightings
	// classes numbers what the records in ids rule out.
	classes classNumbers
	types   [model.EvalTypes]int

	cursors heapq.Heap[cursor] // empty between calls
}

// record is one blocked evaluation.
type record struct {
	eval  *model.Evaluation
	key   heapq.Key // order of release
	seen  uint64    // index of its snapshot
	shape uint64    // 0: it is like no other
	nodes []string  // ascending; empty: waits for a class
	// ruledOut are the numbers of the classes that cannot take it.
	ruledOut classSet
	gone     bool // no longer in ids; about to leave its group
	cache    any  // owned by the UnblockFilter; see Excludes
}

// binds is whether the evaluation is of a binding: member clusters may take it,
// and no node.
func (r *record) binds() bool { return r.eval.Type == model.JobBinding }

type blockedJob struct {
	byClass *record
	byNode  []*record // disjoint nodes; the order says nothing
}

// NewBlocked makes the tracker of b, of which there is one. It takes
// evaluations while b is enabled and is flushed when b is disabled.
func NewBlocked(b *Broker) *Blocked {
	t := &Blocked{b: b}
	t.reset()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blocked = t
	return t
}

// Flush forgets everything.
func (t *Blocked) Flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reset()
}

func (t *Blocked) reset() {
	t.ids = make(map[string]*record)
	t.jobs = make(map[model.JobKey]*blockedJob)
	t.shapes = make(map[uint64]group)
	t.bound, t.nodal, t.single, t.dups = nil, nil, nil, nil
	t.seen, t.classes = newSightings(), newClassNumbers()
	t.types = [model.EvalTypes]int{}
}

// Block takes an evaluation that found no room in the state at its
// SnapshotIndex. If room may have come up since, it is queued at once; screen,
// which may be nil, answers for the nodes in question.
func (t *Blocked) Block(ev *model.Evaluation, filter UnblockFilter) BlockResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ev.Status.Final() {
		t.forget(ev.ID)
		return BlockIgnored
	}
	if !t.b.Enabled() {
		return BlockIgnored
	}
	t.seen.prune(t.b.now(), t.b.cfg.UnblockRetention)
	r := t.newRecord(ev)
	if index, ok := t.seen.missedBy(r, &t.classes, filter); ok {
		t.forget(ev.ID)
		t.b.enqueueUnblocked(index, ev)
		return BlockReleased
	}
	return t.track(r)
}

// Unblock tells that the node, of the class, may have room since index, and
// queues those that wait for such: highest priority first, then oldest. An empty
// nodeID means some node of the class. An evaluation whose snapshot is not older
// than index has seen the room and stays, and so does one for which screen, which
// may be nil, says no. What was queued is returned in order.
func (t *Blocked) Unblock(class uint64, nodeID string, index uint64, filter UnblockFilter) []*model.Evaluation {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.b.Enabled() {
		return nil
	}
	now := t.b.now()
	t.seen.note(place{class, nodeID}, index, now)
	t.seen.prune(now, t.b.cfg.UnblockRetention)
	return t.release(change{place: place{class, nodeID}, index: index}.with(filter))
}

// UnblockAll is Unblock for a change that may make room for anybody: another
// policy, another configuration, a new leader that cannot know what was missed.
func (t *Blocked) UnblockAll(index uint64) []*model.Evaluation {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.b.Enabled() {
		return nil
	}
	t.seen.everywhere(index)
	return t.release(change{everywhere: true, index: index})
}

// Untrack forgets what is blocked of a job, because an evaluation placed all of
// it or the job is gone. The caller sees to it that what is returned gets a
// final status.
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

// Remove drops one evaluation that was cancelled or deleted in the state.
func (t *Blocked) Remove(evalID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.forget(evalID)
}

func (t *Blocked) forget(evalID string) bool {
	r := t.ids[evalID]
	if r == nil {
		return false
	}
	t.remove(r)
	return true
}

// Contains is whether the evaluation waits for room.
func (t *Blocked) Contains(evalID string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ids[evalID] != nil
}

// PopDuplicates hands out evaluations in whose stead a newer one waits, oldest
// first, at most limit of them (not positive: a batch), to be cancelled in the
// state.
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
	if len(t.dups) > 0 {
		t.b.announce()
	}
	return out
}

// ReturnDuplicates takes back what TakeDuplicates handed out in vain.
func (t *Blocked) ReturnDuplicates(cs []*Cancellation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.b.Enabled() && len(cs) > 0 {
		t.dups = append(t.dups, cs...)
		t.b.announce()
	}
}

func (t *Blocked) counts() [model.EvalTypes]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.types
}

// Len is how many evaluations wait.
func (t *Blocked) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ids)
}

// BlockedStats says what the blocked evaluations wait for.
type BlockedStats struct {
	Total      int
	Captured   int // classes that may be feasible, or were not seen
	Escaped    int // any node
	ByNode     int // certain nodes
	Duplicates int // to be cancelled
}

// Stats is how things stand now.
func (t *Blocked) Stats() BlockedStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := BlockedStats{Total: len(t.ids), ByNode: len(t.nodal), Duplicates: len(t.dups)}
	for _, r := range t.ids {
		if len(r.nodes) == 0 && r.eval.Escaped {
			s.Escaped++
		}
	}
	s.Captured = s.Total - s.ByNode - s.Escaped
	return s
}
