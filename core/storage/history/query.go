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

// Query asks for records.
type Query struct {
	// From is the first index, or with Backward the last one.
	From uint64 // default: the oldest record, or the newest
	// After continues behind the last record that was read, From aside.
	After    *Record
	Backward bool
	Topic    string // default: all
	Limit    int    // default: 100
}

// List reads records in order, or backward. Fewer than the limit means that
// there are no more. With an error come the records before it.
func (h *Store) List(q Query) ([]Record, error) {
	q.Limit = cmp.Or(q.Limit, 100)
	h.mu.RLock()
	mark := h.watermark
	h.mu.RUnlock()
	var list []Record
	err := badgerdb.View(h.kv.DB, func(txn *badger.Txn) error {
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
				return false, h.kv.Damage("the history is damaged", err)
			}
			r.Data = append([]byte(nil), r.Data...)
			list = append(list, r)
			return len(list) < q.Limit, nil
		})
	})
	return list, err
}

// readRecord reads the record that a topic's key stands for.
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

// window walks the keys that a query is about.
type window struct {
	q      Query
	mark   Position
	prefix []byte
}

func (w *window) each(txn *badger.Txn, f func([]byte, *badger.Item) (bool, error)) error {
	it := txn.NewIterator(badger.IteratorOptions{
		Prefix: w.prefix, Reverse: w.q.Backward,
		PrefetchValues: w.q.Topic == "", PrefetchSize: min(max(w.q.Limit, 1), 100),
	})
	defer it.Close()
	after := w.afterKey()
	for it.Seek(w.seekKey()); it.Valid(); it.Next() {
		key := it.Item().Key()
		if after != nil && string(key) == string(after) {
			continue
		}
		at := len(key) - positionSize
		if w.q.Topic == "" {
			at = 1
		}
		if at < 1 || len(key) < at+positionSize {
			return fmt.Errorf("a key of %d bytes lies among the records", len(key))
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

// afterKey is the key to continue behind; nil: begin with the first.
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

// seekKey is the key to seek.
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
	if p.Index == 0 {
		p.Index = math.MaxUint64
	}
	// Behind every topic of that position.
	return append(appendPosition(slices.Clip(w.prefix), p), 0xff, 0xff)
}
