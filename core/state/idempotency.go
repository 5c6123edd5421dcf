package state

import (
	"iter"

	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// AppliedMax is how many idempotency keys are remembered, and AppliedFor for
// how many nanoseconds of the entries' time.
const (
	MaxIdempotencyRecords = 1 << 16
	IdempotencyWindow     = int64(24 * 60 * 60 * 1e9)
)

// IdempotencyRecord is what became of the request with an idempotency key.
type IdempotencyRecord struct {
	Hash   [32]byte // of the request
	Index  uint64   // of the entry that answered it
	Time   int64    // of that entry, Unix nanoseconds
	Result []byte
}

type idempotencyRow struct {
	key string
	IdempotencyRecord
}

// idempotencyRing is a ring: the oldest key goes first, so nothing is searched to
// make room. Invariant: places first to first+n, modulo AppliedMax, have rows.
type idempotencyRing struct {
	ring  cow.Vec[*idempotencyRow]
	index cow.Index
	first int
	n     int
}

func (a *idempotencyRing) at(i int) *idempotencyRow {
	return a.ring.At((a.first + i) % MaxIdempotencyRecords)
}

func (a *idempotencyRing) find(key string) *idempotencyRow {
	slot, ok := a.index.Find(hashID(key), func(slot int32) bool { return a.ring.At(int(slot)).key == key })
	if !ok {
		return nil
	}
	return a.ring.At(int(slot))
}

func (a *idempotencyRing) drop(o cow.Owner) {
	slot := int32(a.first)
	a.index.Delete(o, hashID(a.ring.At(a.first).key), slot)
	a.ring.Set(o, a.first, nil)
	a.first = (a.first + 1) % MaxIdempotencyRecords
	a.n--
}

func (a *idempotencyRing) add(o cow.Owner, row *idempotencyRow) {
	if a.n == MaxIdempotencyRecords {
		a.drop(o)
	}
	slot := (a.first + a.n) % MaxIdempotencyRecords
	if slot == a.ring.Len() {
		a.ring.Append(o, row)
	} else {
		a.ring.Set(o, slot, row)
	}
	a.index.Insert(o, hashID(row.key), int32(slot))
	a.n++
}

// IdempotencyRecord is what became of the request with this idempotency key.
func (v *View) IdempotencyRecord(key string) (IdempotencyRecord, bool) {
	if row := v.small.idempotency.find(key); row != nil {
		return row.IdempotencyRecord, true
	}
	return IdempotencyRecord{}, false
}

// IdempotencyRecords yields the idempotency keys that are remembered, the oldest
// first. Adding them in this order gives the same.
func (v *View) IdempotencyRecords() iter.Seq2[string, IdempotencyRecord] {
	return func(yield func(string, IdempotencyRecord) bool) {
		a := &v.small.idempotency
		for i := range a.n {
			if row := a.at(i); !yield(row.key, row.IdempotencyRecord) {
				return
			}
		}
	}
}

// AddIdempotencyRecord remembers an idempotency key; the oldest is forgotten where there
// are too many. A key that is remembered already panics.
func (t *Txn) AddIdempotencyRecord(key string, a IdempotencyRecord) {
	own := &t.ownSmall().idempotency
	if own.find(key) != nil {
		panic("state: idempotency key " + key + " is remembered already")
	}
	own.add(t.owner, &idempotencyRow{key, a})
	t.touch(TableConfig.All())
}

// ExpireIdempotencyRecords forgets the keys whose entries are older than AppliedFor at
// now, up to the first that is not.
func (t *Txn) ExpireIdempotencyRecords(now int64) {
	for a := &t.small.idempotency; a.n > 0 && now-a.at(0).Time > IdempotencyWindow; a = &t.small.idempotency {
		t.ownSmall().idempotency.drop(t.owner)
	}
}
