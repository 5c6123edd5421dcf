package storage

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dgraph-io/badger/v4"
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
func (h *History) List(q Query) ([]Record, error) {
	orElse(&q.Limit, 100)
	h.mu.RLock()
	mark := h.mark
	h.mu.RUnlock()
	var list []Record
	err := view(h.shelf.db, func(txn *badger.Txn) error {
		w := &window{q: q, mark: mark, prefix: []byte{recordPrefix}}
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
			} else if r, err = readRecord(txn, key); errors.Is(err, errMissing) {
				err = fmt.Errorf("record of %s: %w", q.Topic, err)
			}
			if err != nil {
				return false, h.shelf.damage("the history is damaged", err)
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
	b, err := get(txn, primary)
	if err == nil && b == nil {
		err = errMissing
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
	after := w.after()
	for it.Seek(w.begin()); it.Valid(); it.Next() {
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

// after is the key to continue behind; nil: begin with the first.
func (w *window) after() []byte {
	r := w.q.After
	switch {
	case r == nil:
		return nil
	case w.q.Topic != "":
		return topicKey(w.q.Topic, r.Position)
	}
	return recordKey(r.Position, r.Topic)
}

// begin is the key to seek.
func (w *window) begin() []byte {
	if key := w.after(); key != nil {
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
