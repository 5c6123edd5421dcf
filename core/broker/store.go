package broker

import (
	"hash/maphash"
	"math/bits"

	"github.com/cede-scheduler/cede/core/model"
)

// The broker's budget is some 600 ns for the whole life of an evaluation, and a
// cache miss costs a tenth of that. Go's maps from strings touch two to four
// lines an access, keep the keys a second time and hash them anew on each call.
// So entries and jobs lie in chunks under small numbers, and two tables of eight
// bytes a slot find the numbers by hash. Nothing iterates over a table: its
// order, which differs from run to run, reaches no result.

// chunk is how many values are allocated at once.
const chunk = 256

// arena gives numbers, from 1, to values that stay where they are. It gives the
// lowest that is free, so that what comes together lies together.
type arena[T any] struct {
	chunks []*[chunk]T
	used   uint32 // numbers ever given out
	free   bitmap // of those, the ones that were put back
}

// get is an unused number: the value under it is as put left it, or zero.
func (a *arena[T]) get() (uint32, *T) {
	if a.free.n > 0 {
		id := a.free.take() + 1
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

// bitmap is a set of small numbers that gives its least.
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

// take removes the least number; there must be one.
func (b *bitmap) take() uint32 {
	for b.words[b.low] == 0 {
		b.low++
	}
	w := &b.words[b.low]
	i := b.low*64 + uint32(bits.TrailingZeros64(*w))
	*w &= *w - 1
	b.n--
	return i
}

// table is a hash table of numbers with linear probing. It keeps the hashes, so
// growing and removing look at no key.
type table struct {
	slots []slot // a power of two; at most half are taken
	used  int
}

type slot struct{ hash, id uint32 } // id 0: free

// find is the number under hash for which is says yes, or 0.
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

// insert adds a number that is not there.
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

// remove takes out a number that is there, and moves those behind it up so that
// no probe ends too early.
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

func (b *Broker) hashEval(id string) uint32 { return uint32(maphash.String(b.seed, id)) }

func (b *Broker) hashJob(ev *model.Evaluation) uint32 {
	// Namespaces are few: keep their hash from cancelling that of an equal job id.
	const odd = 0x9e3779b97f4a7c15
	return uint32((maphash.String(b.seed, ev.Namespace)*odd ^ maphash.String(b.seed, ev.JobID)) >> 16)
}

// lookup is the entry of an evaluation, or nil.
func (b *Broker) lookup(evalID string) *entry {
	return b.lookupHash(evalID, b.hashEval(evalID))
}

func (b *Broker) lookupHash(evalID string, hash uint32) *entry {
	id := b.evals.find(hash, func(id uint32) bool { return b.entries.at(id).eval.ID == evalID })
	if id == 0 {
		return nil
	}
	return b.entries.at(id)
}

// admit makes an entry for an evaluation that is not held. It belongs to no job
// yet.
func (b *Broker) admit(ev *model.Evaluation, hash uint32, index uint64) *entry {
	id, e := b.entries.get()
	b.seq++
	e.id, e.hash, e.eval, e.typ, e.seq, e.index = id, hash, ev, ev.Type, b.seq, index
	b.counts[StateUnknown][e.typ]++
	b.evals.insert(hash, id)
	return e
}

// release forgets e altogether; it is in no list any more.
func (b *Broker) release(e *entry) {
	b.counts[e.state][e.typ]--
	if e.job != nil {
		b.leave(e)
	}
	id := e.id
	b.evals.remove(e.hash, id)
	*e = entry{gen: e.gen + 1}
	b.entries.put(id)
}
