package history

import (
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/cede-scheduler/cede/core/storage/internal/background"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/kvstore"
)

// trim deletes the oldest segments until age and size are within the limits. At least
// the newest segment is kept if only the size is exceeded. It deletes no record itself,
// which would take long: sweep does so in small batches.
func (h *Store) trim() error {
	h.kv.Mu.Lock()
	defer h.kv.Mu.Unlock()
	// A segment is as old as its newest record: it may only be deleted if all of its
	// records are too old.
	oldest := h.cfg.Now().Add(-h.cfg.MaxAge).UnixNano()
	n, bytes, records := 0, h.bytes, h.records
	for n < len(h.segments) {
		s := &h.segments[n]
		large := h.cfg.MaxBytes > 0 && bytes > h.cfg.MaxBytes && n < len(h.segments)-1
		old := h.cfg.MaxAge > 0 && s.newest < oldest
		if !large && !old {
			break
		}
		bytes -= s.bytes
		records -= s.records
		n++
	}
	if n == 0 {
		return nil
	}
	began := time.Now()
	// Without a remaining segment the watermark moves behind the last record.
	mark := h.segments[n-1].last.next()
	if n < len(h.segments) {
		mark = h.segments[n].start
	}
	// Segments and watermark change in one transaction, so a crash cannot separate them.
	err := h.kv.Shrink(func(txn *badger.Txn) error {
		for _, s := range h.segments[:n] {
			if err := txn.Delete(segmentKey(s.id)); err != nil {
				return err
			}
		}
		return txn.Set(kvstore.HistoryKey, encodeMarks(mark, h.swept))
	})
	if err != nil {
		return err
	}
	h.cfg.OnSweep(time.Since(began))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watermark, h.bytes, h.records = mark, bytes, records
	h.segments = slices.Delete(h.segments, 0, n)
	return nil
}

// sweepRecords bounds the records that one batch deletes, and so how long appends wait
// for the lock.
const sweepRecords = 256

// sweep removes one batch of records below the watermark from the disk, and returns
// false if none remain. A crash between batches loses nothing: the progress is stored
// with each batch, and keys below the watermark are invisible anyway.
func (h *Store) sweep() (more bool, err error) {
	h.kv.Mu.Lock()
	defer h.kv.Mu.Unlock()
	if !h.swept.before(h.watermark) {
		return false, nil
	}
	began := time.Now()
	swept := h.watermark
	var keys [][]byte
	err = badgerdb.View(h.kv.DB, func(txn *badger.Txn) error {
		// The iteration starts at the last deleted position, so it meets no tombstones.
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{kvstore.RecordPrefix}})
		defer it.Close()
		for it.Seek(appendPosition([]byte{kvstore.RecordPrefix}, h.swept)); it.Valid(); it.Next() {
			key := it.Item().KeyCopy(nil)
			p, topic, err := parseRecordKey(key)
			if err != nil {
				return err
			}
			if !p.before(h.watermark) {
				return nil
			}
			// Each record has two keys.
			if len(keys) >= 2*sweepRecords {
				swept, more = p, true
				return nil
			}
			keys = append(keys, key, topicKey(topic, p))
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	err = h.kv.Shrink(func(txn *badger.Txn) error {
		for _, key := range keys {
			if err := txn.Delete(key); err != nil {
				return err
			}
		}
		return txn.Set(kvstore.HistoryKey, encodeMarks(h.watermark, swept))
	})
	if err != nil {
		return false, err
	}
	h.cfg.OnSweep(time.Since(began))
	h.mu.Lock()
	h.swept = swept
	h.mu.Unlock()
	return more, nil
}

// trimInBackground trims after a wake-up, which reports excess size, and at intervals,
// because records grow old. It ends when stop is closed, between two batches at the
// latest. An error is logged, and the next interval tries again.
func (h *Store) trimInBackground(stop, kicked <-chan struct{}) {
	ticker := time.NewTicker(h.cfg.TrimEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-kicked:
		case <-ticker.C:
		}
		err := h.trim()
		for more := err == nil; more; {
			if more, err = h.sweep(); more && !background.Sleep(stop, 2*time.Millisecond) {
				return
			}
		}
		if err != nil {
			h.kv.Logger.Warn("failed to trim the history", "err", err)
		}
	}
}
