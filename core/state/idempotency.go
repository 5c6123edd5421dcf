package state

import (
	"iter"

	"github.com/cede-scheduler/cede/core/state/internal/cow"
)

// MaxIdempotencyRecords is the number of records that the state retains, and
// IdempotencyWindow how long, in nanoseconds of the time of log entries.
const (
	MaxIdempotencyRecords = 1 << 16
	IdempotencyWindow     = int64(24 * 60 * 60 * 1e9)
)

// An IdempotencyRecord is the result of the request with an idempotency key.
type IdempotencyRecord struct {
	Hash   [32]byte // of the request
	Index  uint64   // of the log entry that the request led to
	Time   int64    // of that entry, Unix nanoseconds
	Result []byte
}

type idempotencyRow struct {
	key string
	IdempotencyRecord
}

// An idempotencyRing drops the oldest record first, so that nothing is searched
// when it is full. Invariant: positions first to first+n, modulo
// MaxIdempotencyRecords, have rows.
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

// drop removes the oldest record. The ring must not be empty.
func (a *idempotencyRing) drop(o cow.Owner) {
	slot := int32(a.first)
	a.index.Delete(o, hashID(a.ring.At(a.first).key), slot)
	a.ring.Set(o, a.first, nil)
	a.first = (a.first + 1) % MaxIdempotencyRecords
	a.n--
}

// add stores a record behind the newest. The ring grows up to its bound, and memory is
// never returned, since a busy server fills it again.
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

// IdempotencyRecord returns the result of the request with the idempotency key; it
// returns false if there is none.
func (v *smallTables) IdempotencyRecord(key string) (IdempotencyRecord, bool) {
	if row := v.idempotency.find(key); row != nil {
		return row.IdempotencyRecord, true
	}
	return IdempotencyRecord{}, false
}

// IdempotencyRecords yields the retained keys, the oldest first. Adding them in
// this order results in the same state.
func (v *smallTables) IdempotencyRecords() iter.Seq2[string, IdempotencyRecord] {
	return func(yield func(string, IdempotencyRecord) bool) {
		a := &v.idempotency
		for i := range a.n {
			if row := a.at(i); !yield(row.key, row.IdempotencyRecord) {
				return
			}
		}
	}
}

// Add adds a record and drops the oldest if there are too many. It
// panics if the key is retained already.
func (t IdempotencyWriter) Add(key string, a IdempotencyRecord) {
	own := &t.ownSmall().idempotency
	if own.find(key) != nil {
		panic("state: idempotency key " + key + " has a record already")
	}
	own.add(t.owner, &idempotencyRow{key, a})
	t.touch(TableConfig.All())
}

// Expire drops the records that are older than IdempotencyWindow at
// now, up to the first that is not. Times ascend with the log except after a change of
// leader with a slower clock, so an expired record may stay behind a younger one until
// that expires as well.
func (t IdempotencyWriter) Expire(now int64) {
	for a := &t.idempotency; a.n > 0 && now-a.at(0).Time > IdempotencyWindow; a = &t.idempotency {
		t.ownSmall().idempotency.drop(t.owner)
	}
}
