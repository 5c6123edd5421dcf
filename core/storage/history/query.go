package history

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/kvstore"
)

// A Query selects records. The zero value lists the first 100 records of all topics.
type Query struct {
	// From is the first index, or the last one if Backward is set.
	From uint64 // default: the oldest record, or the newest
	// After continues after the last record of the previous page; From is ignored then.
	After    *Record
	Backward bool
	Topic    string // default: all
	Limit    int    // default: 100
}

// List returns records in order, or in reverse order. If it returns fewer than the
// limit, there are no more. If it returns an error, it also returns the records before
// the error. A page costs its own records: iteration starts at the record after the
// previous page. Records that are appended between two pages appear if they sort behind
// the first.
func (h *Store) List(q Query) ([]Record, error) {
	q.Limit = cmp.Or(q.Limit, 100)
	h.mu.RLock()
	// The watermark may move during the query. Records that it passes may or may not be
	// listed.
	mark := h.watermark
	h.mu.RUnlock()
	var list []Record
	err := badgerdb.View(h.kv.DB, func(txn *badger.Txn) error {
		// A query by topic walks the topic keys, which have no values, and reads each
		// record by its position.
		w := &window{q: q, mark: mark, prefix: []byte{kvstore.RecordPrefix}}
		if q.Topic != "" {
			w.prefix = topicKeys(q.Topic)
		}
		return w.each(txn, func(key []byte, item *badger.Item) (bool, error) {
			var r Record
			var err error
			if q.Topic == "" {
				err = item.Value(func(b []byte) error {
					r, err = decodeRecord(key, b)
					return err
				})
			} else if r, err = readRecord(txn, key); errors.Is(err, badgerdb.ErrMissing) {
				err = fmt.Errorf("record of %s: %w", q.Topic, err)
			}
			if err != nil {
				return false, h.kv.Damage("history is damaged", err)
			}
			// Badger reuses the value after the callback.
			r.Data = append([]byte(nil), r.Data...)
			list = append(list, r)
			return len(list) < q.Limit, nil
		})
	})
	return list, err
}

// readRecord returns the record that a topic key refers to.
func readRecord(txn *badger.Txn, key []byte) (Record, error) {
	at := len(key) - positionSize
	primary := recordKey(positionAt(key[at:]), string(key[2:at]))
	b, err := badgerdb.Get(txn, primary)
	if err == nil && b == nil {
		err = badgerdb.ErrMissing
	}
	if err != nil {
		return Record{}, err
	}
	return decodeRecord(primary, b)
}

// window iterates over the keys that a query selects. prefix selects the records or the
// keys of one topic.
type window struct {
	q      Query
	mark   Position
	prefix []byte
}

// each calls f for the keys of the window until f returns false or an error. It skips
// keys below the watermark, which are deleted records still on the disk. Keys sort by
// position within a prefix, so a backward iteration may end at the watermark, and a
// forward one starts behind it.
func (w *window) each(txn *badger.Txn, f func([]byte, *badger.Item) (bool, error)) error {
	it := txn.NewIterator(badger.IteratorOptions{
		Prefix: w.prefix, Reverse: w.q.Backward,
		PrefetchValues: w.q.Topic == "", PrefetchSize: min(max(w.q.Limit, 1), 100),
	})
	defer it.Close()
	after := w.afterKey()
	for it.Seek(w.seekKey()); it.Valid(); it.Next() {
		key := it.Item().Key()
		// Seek finds the last record of the previous page itself, unless it was
		// trimmed.
		if after != nil && string(key) == string(after) {
			continue
		}
		at := len(key) - positionSize
		if w.q.Topic == "" {
			at = 1
		}
		if at < 1 || len(key) < at+positionSize {
			return fmt.Errorf("key of %d bytes among the records", len(key))
		}
		if positionAt(key[at:]).before(w.mark) {
			if w.q.Backward {
				return nil
			}
			continue
		}
		if more, err := f(key, it.Item()); err != nil || !more {
			return err
		}
	}
	return nil
}

// afterKey returns the last key of the previous page, or nil on the first page.
func (w *window) afterKey() []byte {
	r := w.q.After
	switch {
	case r == nil:
		return nil
	case w.q.Topic != "":
		return topicKey(w.q.Topic, r.Position)
	}
	return recordKey(r.Position, r.Topic)
}

// seekKey returns the key at which the iteration starts.
func (w *window) seekKey() []byte {
	if key := w.afterKey(); key != nil {
		return key
	}
	if !w.q.Backward {
		p := Position{Index: w.q.From}
		if p.before(w.mark) {
			p = w.mark
		}
		return appendPosition(slices.Clip(w.prefix), p)
	}
	p := Position{w.q.From, math.MaxUint64}
	p.Index = cmp.Or(p.Index, math.MaxUint64)
	// after every topic of that position
	return append(appendPosition(slices.Clip(w.prefix), p), 0xff, 0xff)
}
