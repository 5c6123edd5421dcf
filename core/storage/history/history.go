package history

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"github.com/cede-scheduler/cede/core/storage/internal/background"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/kvstore"
)

// History keeps records (decisions, events) in the order of the Raft indexes
// that they came from, and forgets the oldest when there are too many or they
// are too old.
//
// A record that Append has returned for survives the end of the process. At a
// power cut the last moments may be lost, for nothing is synced: history tells
// what was decided, and nothing is decided by it.
//
// Space is accounted for in segments: neighbours of about SegmentBytes. To
// forget is to drop the oldest segments and to move a watermark, in one small
// write; records below the watermark do not exist, and leave the disk in the
// background.
type Store struct {
	cfg Config
	kv  *kvstore.Store

	mu        sync.RWMutex // guards what follows; never held over a write
	watermark Position     // records before it do not exist
	swept     Position     // nothing lies before it
	segments  []segment    // oldest first
	bytes     int64
	records   int64

	chores background.Group
}

// Position is where a record stands: by its index, then by its number among
// those of that index.
type Position struct{ Index, Seq uint64 }

func (p Position) compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Index, q.Index), cmp.Compare(p.Seq, q.Seq))
}

func (p Position) before(q Position) bool { return p.compare(q) < 0 }

func (p Position) next() Position {
	if p.Seq++; p.Seq == 0 {
		p.Index++
	}
	return p
}

// RecordBytes is how large a record's data may be.
const MaxRecordBytes = 512 << 10

// New returns a store that only reads: it neither trims nor observes limits.
func OpenReadOnly(s *kvstore.Store) (*Store, error) {
	h := &Store{cfg: Config{}.withDefaults(), kv: s}
	if err := h.load(); err != nil {
		return nil, err
	}
	return h, nil
}

func Open(s *kvstore.Store, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	h := &Store{cfg: cfg.withDefaults(), kv: s}
	if err := h.load(); err != nil {
		return nil, s.Damage("the history cannot be read", err)
	}
	h.chores.Start(h.trimInBackground)
	h.chores.Wake()
	return h, nil
}

// load reads the accounts.
func (h *Store) load() error {
	return badgerdb.View(h.kv.DB, func(txn *badger.Txn) (err error) {
		if h.watermark, h.swept, err = readMarks(txn); err != nil {
			return err
		}
		if h.segments, err = readSegments(txn); err != nil {
			return err
		}
		for i := range h.segments {
			h.bytes += h.segments[i].bytes
			h.records += h.segments[i].records
		}
		return nil
	})
}

// Append keeps a record. Appending one again that is there, as replaying the
// log does, changes nothing, and so does one that would be forgotten already.
func (h *Store) Append(topic string, index, seq uint64, data []byte) error {
	return h.AppendAll([]Record{{Topic: topic, Position: Position{index, seq}, Data: data}})
}

// AppendAll keeps records, in one transaction where they fit into one. Those
// without a time get the present one.
func (h *Store) AppendAll(records []Record) error {
	now := h.cfg.Now()
	for i := range records {
		r := &records[i]
		switch {
		case r.Topic == "" || len(r.Topic) > 255:
			return fmt.Errorf("history: a topic of %d bytes: want 1 to 255", len(r.Topic))
		case len(r.Data) > MaxRecordBytes:
			return fmt.Errorf("history: a record of %d bytes: want at most %d", len(r.Data), MaxRecordBytes)
		}
	}
	h.kv.Mu.Lock()
	defer h.kv.Mu.Unlock()
	if err := h.append(records, now.UnixNano()); err != nil {
		return err
	}
	h.mu.RLock()
	large := h.cfg.MaxBytes > 0 && h.bytes > h.cfg.MaxBytes
	h.mu.RUnlock()
	if large {
		h.chores.Wake()
	}
	return nil
}

// append writes records, in halves when they are too many for one transaction.
func (h *Store) append(records []Record, now int64) error {
	if len(records) == 0 {
		return nil
	}
	d := h.draft()
	err := h.kv.Update(false, func(txn *badger.Txn) error {
		for i := range records {
			if err := d.add(txn, &records[i], now); err != nil {
				return err
			}
		}
		return d.write(txn)
	})
	if errors.Is(err, badger.ErrTxnTooBig) && len(records) > 1 {
		half := len(records) / 2
		if err := h.append(records[:half], now); err != nil {
			return err
		}
		return h.append(records[half:], now)
	}
	if err == nil {
		h.apply(d)
	}
	return err
}

// Sync brings what was appended to the disk.
func (h *Store) Sync() error {
	h.kv.Mu.Lock()
	defer h.kv.Mu.Unlock()
	return h.kv.Sync()
}

// HistoryStats is what a history holds.
type Stats struct {
	Records int64
	Bytes   int64
	First   Position // nothing is kept before it
	Last    Position
}

// Stats counts what is kept.
func (h *Store) Stats() Stats {
	h.mu.RLock()
	defer h.mu.RUnlock()
	s := Stats{Records: h.records, Bytes: h.bytes, First: h.watermark}
	if n := len(h.segments); n > 0 {
		s.First, s.Last = h.segments[0].start, h.segments[n-1].last
	}
	return s
}

func (h *Store) Close() { h.chores.Stop() }
