package broker

import (
	"hash/maphash"
	"math/bits"

	"github.com/cede-scheduler/cede/core/model"
)

// The budget for the whole life of an evaluation is about 600 ns, and a cache miss
// costs a tenth of that. Go's maps with string keys touch two to four cache lines
// an access, store the keys a second time and hash them on each call. So entries
// and jobs are in chunks under small numbers, and two tables of eight bytes a slot
// find the numbers by hash. Nothing iterates over a table: its order differs from
// run to run and reaches no result.

// chunk is the number of values allocated at once.
const chunk = 256

// An arena gives numbers, from 1, to values with stable addresses. It assigns the
// lowest free number, so that values created together are close in memory.
type arena[T any] struct {
	chunks []*[chunk]T
	used   uint32 // numbers ever assigned
	free   bitmap // unused ones of them
}

// get is an unused number: the value under it is as put left it, or zero.
func (a *arena[T]) get() (uint32, *T) {
	if a.free.n > 0 {
		id := a.free.popLowest() + 1
		return id, a.at(id)
	}
	if int(a.used) == chunk*len(a.chunks) {
		a.chunks = append(a.chunks, new([chunk]T))
		a.free.words = append(a.free.words, make([]uint64, chunk/64)...)
	}
	a.used++
	return a.used, a.at(a.used)
}

func (a *arena[T]) at(id uint32) *T {
	id--
	return &a.chunks[id/chunk][id%chunk]
}

func (a *arena[T]) put(id uint32) { a.free.add(id - 1) }

// A bitmap is a set of small numbers with access to the lowest.
type bitmap struct {
	words []uint64
	low   uint32 // words below are empty
	n     int
}

func (b *bitmap) add(i uint32) {
	b.words[i/64] |= 1 << (i % 64)
	b.low = min(b.low, i/64)
	b.n++
}

// popLowest removes and returns the lowest number. It panics if there is none.
func (b *bitmap) popLowest() uint32 {
	for b.words[b.low] == 0 {
		b.low++
	}
	w := &b.words[b.low]
	i := b.low*64 + uint32(bits.TrailingZeros64(*w))
	*w &= *w - 1
	b.n--
	return i
}

// A table is a hash table of numbers with linear probing. It stores the hashes, so
// growing and removing need not read a key.
type table struct {
	slots []slot // a power of two; at most half are taken
	used  int
}

type slot struct{ hash, id uint32 } // id 0: free

// find returns the number under hash that match accepts, or 0.
func (t *table) find(hash uint32, is func(id uint32) bool) uint32 {
	if t.used == 0 {
		return 0
	}
	mask := uint32(len(t.slots) - 1)
	for i := hash & mask; t.slots[i].id != 0; i = (i + 1) & mask {
		if s := t.slots[i]; s.hash == hash && is(s.id) {
			return s.id
		}
	}
	return 0
}

// insert adds a number, which must not be in the table.
func (t *table) insert(hash, id uint32) {
	if 2*t.used >= len(t.slots) {
		t.grow()
	}
	t.used++
	t.put(slot{hash, id})
}

func (t *table) put(s slot) {
	mask := uint32(len(t.slots) - 1)
	i := s.hash & mask
	for t.slots[i].id != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = s
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, max(64, 2*len(old)))
	for _, s := range old {
		if s.id != 0 {
			t.put(s)
		}
	}
}

// remove removes a number, which must be in the table, and moves up those behind it
// so that no probe ends early.
func (t *table) remove(hash, id uint32) {
	mask := uint32(len(t.slots) - 1)
	hole := hash & mask
	for t.slots[hole].id != id {
		hole = (hole + 1) & mask
	}
	t.used--
	for i := (hole + 1) & mask; t.slots[i].id != 0; i = (i + 1) & mask {
		home := t.slots[i].hash & mask
		if (i-home)&mask >= (i-hole)&mask { // home is not between hole and i
			t.slots[hole] = t.slots[i]
			hole = i
		}
	}
	t.slots[hole] = slot{}
}

func (t *table) reset() {
	clear(t.slots)
	t.used = 0
}

// An entrySet holds the entries of all evaluations and their jobs.
type entrySet struct {
	seed    maphash.Seed
	seq     uint64 // order of arrival of the last entry
	entries arena[entry]
	evals   table // all entries, by evaluation ID
	jobs    arena[job]
	keys    table // jobs by key
	counts  [numStates][model.EvalTypes]int
}

func (s *entrySet) reset() {
	s.evals.reset()
	s.keys.reset()
	s.entries, s.jobs = arena[entry]{}, arena[job]{}
	s.counts = [numStates][model.EvalTypes]int{}
}

// A ref points from a heap to an entry as it was when it was pushed. It contains no
// pointer, so the garbage collector need not scan the heaps.
type ref struct{ id, gen uint32 }

func (e *entry) ref() ref { return ref{e.id, e.gen} }

func (s *entrySet) stale(r ref) bool { return s.entries.at(r.id).gen != r.gen }

func (s *entrySet) hashEval(id string) uint32 { return uint32(maphash.String(s.seed, id)) }

func (s *entrySet) hashJob(ev *model.Evaluation) uint32 {
	// Namespaces are few: keep their hash from cancelling that of an equal job id.
	const odd = 0x9e3779b97f4a7c15
	return uint32((maphash.String(s.seed, ev.Namespace)*odd ^ maphash.String(s.seed, ev.JobID)) >> 16)
}

// lookup returns the entry of an evaluation, or nil.
func (s *entrySet) lookup(evalID string) *entry {
	return s.lookupHash(evalID, s.hashEval(evalID))
}

func (s *entrySet) lookupHash(evalID string, hash uint32) *entry {
	id := s.evals.find(hash, func(id uint32) bool { return s.entries.at(id).eval.ID == evalID })
	if id == 0 {
		return nil
	}
	return s.entries.at(id)
}

// admit creates an entry for an evaluation that is not held. It belongs to no job
// yet.
func (s *entrySet) admit(ev *model.Evaluation, hash uint32, index uint64) *entry {
	id, e := s.entries.get()
	s.seq++
	e.id, e.hash, e.eval, e.typ, e.seq, e.index = id, hash, ev, ev.Type, s.seq, index
	s.counts[StateUnknown][e.typ]++
	s.evals.insert(hash, id)
	return e
}

// replace makes e the entry of another copy of its evaluation, as a new arrival.
func (s *entrySet) replace(e *entry, ev *model.Evaluation, index uint64) {
	s.seq++
	s.counts[e.state][e.typ]--
	e.eval, e.typ, e.seq, e.index = ev, ev.Type, s.seq, index
	s.counts[e.state][e.typ]++
}

// release frees e, which is in no list any more.
func (s *entrySet) release(e *entry) {
	s.counts[e.state][e.typ]--
	if e.job != nil {
		s.leaveJob(e)
	}
	id := e.id
	s.evals.remove(e.hash, id)
	*e = entry{gen: e.gen + 1}
	s.entries.put(id)
}

// total returns the number of evaluations in a state.
func (s *entrySet) total(of State) int {
	n := 0
	for _, c := range &s.counts[of] {
		n += c
	}
	return n
}

// move changes the state of e. The caller removes it from the list of the old state
// and adds it to that of the new one.
func (s *entrySet) move(e *entry, to State) {
	s.counts[e.state][e.typ]--
	e.gen++
	e.state = to
	s.counts[to][e.typ]++
}
