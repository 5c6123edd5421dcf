package history

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/kvstore"
)

// A segment accounts for the records from its start to the start of the next segment.
// It is written in the transaction that adds the records. Accounts of segments replace
// a walk over the records, which Badger would make slow by skipping tombstones.
type segment struct {
	id             uint64
	start, last    Position
	bytes, records int64
	oldest, newest int64 // ns
}

const segmentSize = 2*positionSize + 4*8

// segmentKey returns the key of a segment. Keys sort by number, which is the order of
// creation.
func segmentKey(id uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{kvstore.SegmentPrefix}, id)
}

// encode returns the stored form: start, last, four numbers, with a checksum.
func (s *segment) encode() []byte {
	b := appendPosition(appendPosition(make([]byte, 0, segmentSize), s.start), s.last)
	for _, v := range []int64{s.bytes, s.records, s.oldest, s.newest} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return badgerdb.Seal(b)
}

// decode sets s from its key and stored value. It returns badgerdb.ErrChecksum if the value
// is damaged.
func (s *segment) decode(key, value []byte) error {
	b, err := badgerdb.Unseal(value)
	if err != nil || len(b) != segmentSize || len(key) != 9 {
		return fmt.Errorf("segment: %w", badgerdb.ErrChecksum)
	}
	s.id, s.start, s.last = binary.BigEndian.Uint64(key[1:]), positionAt(b), positionAt(b[positionSize:])
	for i, v := range []*int64{&s.bytes, &s.records, &s.oldest, &s.newest} {
		*v = int64(binary.BigEndian.Uint64(b[2*positionSize+8*i:]))
	}
	return nil
}

// readSegments returns all segments, oldest first. They sort by start: a segment that
// was extended downward keeps its number.
func readSegments(txn *badger.Txn) (list []segment, err error) {
	badgerdb.WalkKeys(txn, []byte{kvstore.SegmentPrefix}, func(item *badger.Item) bool {
		var s segment
		err = item.Value(func(b []byte) error { return s.decode(item.Key(), b) })
		list = append(list, s)
		return err == nil
	})
	slices.SortFunc(list, func(a, b segment) int { return a.start.compare(b.start) })
	return list, err
}

// readMarks returns the watermark and the progress of the background deletion.
func readMarks(txn *badger.Txn) (mark, swept Position, err error) {
	b, err := badgerdb.Get(txn, kvstore.HistoryKey)
	if err != nil || b == nil {
		return mark, swept, err
	}
	if b, err = badgerdb.Unseal(b); err != nil || len(b) != 2*positionSize {
		return mark, swept, fmt.Errorf("watermark: %w", badgerdb.ErrChecksum)
	}
	return positionAt(b), positionAt(b[positionSize:]), nil
}

// encodeMarks returns the stored form of the watermark and the progress of the deletion.
func encodeMarks(mark, swept Position) []byte {
	return badgerdb.Seal(appendPosition(appendPosition(nil, mark), swept))
}

// A draft collects changes of segments until they are written. If the transaction
// fails, it is discarded. It must be used while the lock of the key-value store is
// held, since it reads segments without their own lock.
type draft struct {
	h       *Store
	changed map[int]segment // by position in h.segments; new ones follow
	count   int
	bytes   int64
	records int64
}

func (h *Store) draft() *draft {
	return &draft{h: h, changed: map[int]segment{}, count: len(h.segments)}
}

// at returns a segment with the changes of the draft.
func (d *draft) at(place int) segment {
	if s, ok := d.changed[place]; ok {
		return s
	}
	return d.h.segments[place]
}

// add adds a record to the transaction and to its segment. It skips records that exist or
// are below the watermark.
func (d *draft) add(txn *badger.Txn, r *Record, now int64) error {
	if r.before(d.h.watermark) {
		return nil
	}
	key := recordKey(r.Position, r.Topic)
	newest := d.count == 0 || d.at(d.count-1).last.before(r.Position)
	// A record after the newest one cannot exist, which saves the lookup in the common
	// case.
	if !newest {
		if old, err := badgerdb.Get(txn, key); err != nil || old != nil {
			return err
		}
	}
	value := encodeRecord(r, now)
	at := int64(binary.BigEndian.Uint64(value[4:]))
	second := topicKey(r.Topic, r.Position)
	size := int64(len(key) + len(value) + len(second) + recordExtra)
	place, s := d.segmentFor(r.Position, newest, at)
	s.bytes += size
	s.records++
	s.oldest, s.newest = min(s.oldest, at), max(s.newest, at)
	if s.last.before(r.Position) {
		s.last = r.Position
	}
	d.changed[place] = s
	d.bytes += size
	d.records++
	if err := txn.Set(key, value); err != nil {
		return err
	}
	return txn.Set(second, nil)
}

// segmentFor returns the segment of a position. If the newest segment is full or old
// enough, it starts another one. A record below the newest one, as the replay of the
// log appends it, goes to the segment that covers its position, so that segments never
// overlap.
func (d *draft) segmentFor(p Position, newest bool, at int64) (int, segment) {
	if newest && (d.count == 0 || d.full(d.at(d.count-1), at)) {
		id := uint64(1)
		if d.count > 0 {
			id = d.at(d.count-1).id + 1
		}
		d.count++
		return d.count - 1, segment{id: id, start: p, oldest: at, newest: at}
	}
	place := d.count - 1
	for place > 0 && p.before(d.at(place).start) {
		place--
	}
	s := d.at(place)
	if p.before(s.start) {
		s.start = p // the oldest segment extends down to the watermark
	}
	return place, s
}

// full reports whether a segment has reached its size or covers a sixteenth of the
// maximum age. The bound by age lets trimming follow MaxAge within a sixteenth of it.
func (d *draft) full(s segment, at int64) bool {
	age := d.h.cfg.MaxAge
	return s.bytes >= d.h.cfg.SegmentBytes || age > 0 && time.Duration(at-s.oldest) > age/16
}

// write adds the changed segments to the transaction.
func (d *draft) write(txn *badger.Txn) error {
	for _, s := range d.changed {
		if err := txn.Set(segmentKey(s.id), s.encode()); err != nil {
			return err
		}
	}
	return nil
}

// apply adopts the changes of a draft after its transaction was committed. Only here do
// readers see the new accounts. New segments are adopted in ascending order.
func (h *Store) apply(d *draft) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for place := range d.count {
		s, ok := d.changed[place]
		switch {
		case place == len(h.segments):
			h.segments = append(h.segments, s)
		case ok:
			h.segments[place] = s
		}
	}
	h.bytes += d.bytes
	h.records += d.records
}
