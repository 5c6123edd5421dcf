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

// A Store keeps records (decisions, events) in the order of the Raft indexes that caused
// them, and deletes the oldest if they exceed the limits of age or size.
//
// A record survives the end of the process once Append has returned. A power failure may
// lose the most recent records, because nothing is synced: the history reports decisions,
// and no decision depends on it.
//
// Space is accounted for in segments of adjacent records with about SegmentBytes each.
// Trimming removes the oldest segments and moves a watermark in one small write. Records
// below the watermark do not exist; they leave the disk in the background.
type Store struct {
	cfg Config
	kv  *kvstore.Store

	mu        sync.RWMutex // guards the fields below; never held during a write
	watermark Position     // Invariant: records before it do not exist
	swept     Position     // Invariant: no keys before it
	segments  []segment    // oldest first
	bytes     int64
	records   int64

	chores background.Group
}

// A Position orders records: by Raft index, then by sequence number within the index.
type Position struct{ Index, Seq uint64 }

func (p Position) compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Index, q.Index), cmp.Compare(p.Seq, q.Seq))
}

func (p Position) before(q Position) bool { return p.compare(q) < 0 }

// next returns the position that follows p directly.
func (p Position) next() Position {
	if p.Seq++; p.Seq == 0 {
		p.Index++
	}
	return p
}

// MaxRecordBytes is the maximum size of the data of a record.
const MaxRecordBytes = 512 << 10

// OpenReadOnly returns a store for reading. It runs no background work.
func OpenReadOnly(s *kvstore.Store) (*Store, error) {
	h := &Store{cfg: Config{}.withDefaults(), kv: s}
	if err := h.load(); err != nil {
		return nil, err
	}
	return h, nil
}

// Open opens the history in a key-value store and starts trimming it. It returns a
// *datadir.DamageError if the accounts cannot be read.
func Open(s *kvstore.Store, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	h := &Store{cfg: cfg.withDefaults(), kv: s}
	if err := h.load(); err != nil {
		return nil, s.Damage("cannot read history", err)
	}
	h.chores.Start(h.trimInBackground)
	h.chores.Wake()
	return h, nil
}

// load reads watermark and segments.
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

// Append stores a record. It changes nothing if the record exists, as when the Raft log is
// replayed, or if the record is below the watermark.
func (h *Store) Append(topic string, index, seq uint64, data []byte) error {
	return h.AppendAll([]Record{{Topic: topic, Position: Position{index, seq}, Data: data}})
}

// AppendAll stores records, in one transaction if they fit. Records without a time get the
// current one. It returns an error if a topic or the data is too long.
func (h *Store) AppendAll(records []Record) error {
	now := h.cfg.Now()
	for i := range records {
		r := &records[i]
		switch {
		case r.Topic == "" || len(r.Topic) > 255:
			return fmt.Errorf("history: topic has %d bytes: must be between 1 and 255", len(r.Topic))
		case len(r.Data) > MaxRecordBytes:
			return fmt.Errorf("history: record has %d bytes: must be at most %d", len(r.Data), MaxRecordBytes)
		}
	}
	h.kv.Mu.Lock()
	defer h.kv.Mu.Unlock()
	if err := h.append(records, now.UnixNano()); err != nil {
		return err
	}
	// Trimming is requested as soon as the size exceeds the limit; the age is checked at
	// intervals.
	h.mu.RLock()
	large := h.cfg.MaxBytes > 0 && h.bytes > h.cfg.MaxBytes
	h.mu.RUnlock()
	if large {
		h.chores.Wake()
	}
	return nil
}

// append writes records, in halves if they exceed one transaction. Accounts change in the
// same transaction as the records that they count.
func (h *Store) append(records []Record, now int64) error {
	if len(records) == 0 {
		return nil
	}
	// Segments change only after the commit: if it fails, the draft is dropped.
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

// Stats describes the content of a history.
type Stats struct {
	Records int64
	Bytes   int64
	First   Position // nothing is stored before it
	Last    Position
}

// Stats returns the number, size and range of the stored records.
func (h *Store) Stats() Stats {
	h.mu.RLock()
	defer h.mu.RUnlock()
	s := Stats{Records: h.records, Bytes: h.bytes, First: h.watermark}
	if n := len(h.segments); n > 0 {
		s.First, s.Last = h.segments[0].start, h.segments[n-1].last
	}
	return s
}

// Close stops the background work. The key-value store remains open.
func (h *Store) Close() { h.chores.Stop() }
