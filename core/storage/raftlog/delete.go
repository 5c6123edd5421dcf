package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/internal/background"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/disk"
)

// DeleteRange deletes the entries from low to high. They are either the oldest entries,
// which a snapshot covers, or the newest, which conflict with another leader's. It returns
// ErrGap for any other range.
//
// Deleting the oldest entries one by one would take long, and Badger would skip their
// tombstones on every scan. One small write therefore moves the floor, and the entries
// leave the disk in the background. The newest entries are deleted immediately.
func (l *Log) DeleteRange(low, high uint64) error {
	l.write.Lock()
	defer l.write.Unlock()
	if err := l.checkReserve(); err != nil {
		return err
	}
	s := l.state
	low, high = max(low, s.First), min(high, s.Last)
	switch {
	case s.IsEmpty() || low > high:
		return nil
	case low == s.First:
		l.tailDeleted = l.tailDeleted || high == s.Last
		return l.deleteHead(high)
	case high == s.Last:
		// Raft replaces a deleted tail at once. If the replacement could not be written,
		// Raft would keep believing in the old tail, so deletion requires the space of an
		// append.
		if err := l.checkWritable(); err != nil {
			return err
		}
		l.tailDeleted = true
		return l.deleteTail(low)
	}
	return fmt.Errorf("%w: cannot delete %d to %d of %d to %d", ErrGap, low, high, s.First, s.Last)
}

// deleteHead deletes all entries up to high. An empty log keeps LastTerm, which the
// rollback guard has recorded.
func (l *Log) deleteHead(high uint64) error {
	next := l.state
	// The floor remains even if the log becomes empty: keys at or below it are still to be
	// deleted.
	next.Floor = high
	next.First = high + 1
	if next.First > next.Last {
		next.First, next.Last = 0, 0
		next.Commit = 0
	}
	if err := l.commit(next, func(*badger.Txn) error { return nil }); err != nil {
		return err
	}
	l.trimRecent(next)
	l.background.Wake()
	return nil
}

// deleteTail deletes all entries from low on. Keys that exceed one transaction are
// deleted after it; if a crash prevents that, opening the log deletes them. low is
// greater than First, so the entry before it exists.
func (l *Log) deleteTail(low uint64) error {
	next, gone := l.state, l.state.Last
	term, err := l.termOf(low - 1)
	if err != nil {
		return err
	}
	// The term of the new last entry is read from the log, since the state holds only the
	// term of the old one.
	next.Last, next.LastTerm = low-1, term
	next.Commit = min(next.Commit, next.Last)
	l.staged = min(l.staged, next.Last)
	at := low
	err = l.commit(next, func(txn *badger.Txn) error {
		for at = low; at <= gone; at++ {
			if err := txn.Delete(indexKey(at)); errors.Is(err, badger.ErrTxnTooBig) {
				return nil
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.trimRecent(next)
	// The log is already shorter: the remaining keys are unreachable, and opening deletes
	// them after a crash.
	var rest [][]byte
	for ; at <= gone; at++ {
		rest = append(rest, indexKey(at))
	}
	if err := l.deleteKeys(rest); err != nil {
		l.fail(err)
		return err
	}
	return nil
}

// termOf returns the term of an entry. The caller holds write.
func (l *Log) termOf(index uint64) (uint64, error) {
	var e raft.Log
	if err := l.GetLog(index, &e); err != nil {
		return 0, err
	}
	return e.Term, nil
}

// trimRecent removes deleted entries from the cache.
func (l *Log) trimRecent(s State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent.trim(s.First, s.Last)
}

// deleteKeys deletes keys in as many transactions as necessary.
func (l *Log) deleteKeys(keys [][]byte) error {
	return badgerdb.DeleteKeys(func(f func(*badger.Txn) error) error { return badgerdb.Update(l.db, f) }, keys)
}

// lowerFloor prepares a log that starts again below its floor. All deleted entries
// leave the disk first; otherwise the background deletion would remove the new entries
// in their place. This is rare, because only the restore of an older state leads to it,
// so its cost does not matter.
func (l *Log) lowerFloor(first uint64) error {
	for {
		more, err := l.sweep()
		if err != nil {
			l.fail(err)
			return err
		}
		if !more {
			break
		}
	}
	l.sweepMu.Lock()
	defer l.sweepMu.Unlock()
	// The state and the progress of the deletion change in one transaction, so that no
	// crash leaves a floor above the new entries.
	next := l.state
	next.Floor = first - 1
	err := l.commit(next, func(txn *badger.Txn) error { return txn.Set(sweptKey, sweptValue(next.Floor)) })
	if err == nil {
		l.swept = next.Floor
	}
	return err
}

func sweptValue(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

// sweep removes one batch of entries at or below the floor from the disk, and returns false
// if none remain. It finds keys by iteration, because the range may have had gaps, and
// starts after the last removed key, so it meets no tombstones.
func (l *Log) sweep() (more bool, err error) {
	l.sweepMu.Lock()
	defer l.sweepMu.Unlock()
	l.mu.RLock()
	floor := l.state.Floor
	l.mu.RUnlock()
	if l.swept >= floor || disk.CheckFree(l.layout.Log(), l.cfg.MinFree/2) != nil {
		return false, nil // the next deletion tries again
	}
	began := time.Now()
	var keys [][]byte
	err = badgerdb.View(l.db, func(txn *badger.Txn) error {
		return walkIndexes(txn, l.swept+1, func(key []byte, index uint64) bool {
			if index > floor || len(keys) == l.cfg.SweepBatch {
				return false
			}
			keys = append(keys, key)
			return true
		})
	})
	if err != nil {
		return false, err
	}
	swept := floor
	if len(keys) == l.cfg.SweepBatch {
		swept = keyIndex(keys[len(keys)-1])
	}
	err = badgerdb.Update(l.db, func(txn *badger.Txn) error {
		for _, k := range keys {
			if err := txn.Delete(k); err != nil {
				return err
			}
		}
		return txn.Set(sweptKey, sweptValue(swept))
	})
	if err != nil {
		return false, err
	}
	l.swept = swept
	l.cfg.OnSweep(time.Since(began))
	return swept < floor, nil
}

// walkIndexes calls f for the keys of entries from index from on, without values, until f
// returns false.
func walkIndexes(txn *badger.Txn, from uint64, f func(key []byte, index uint64) bool) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{entryPrefix}})
	defer it.Close()
	for it.Seek(indexKey(from)); it.Valid(); it.Next() {
		key := it.Item().KeyCopy(nil)
		if len(key) != 9 {
			return fmt.Errorf("key of %d bytes among the entries", len(key))
		}
		if !f(key, keyIndex(key)) {
			return nil
		}
	}
	return nil
}

// sweepInBackground runs sweep after each wake-up and pauses between batches, so that
// appends are hardly delayed. An error rejects further writes, since Badger may hold
// data that the disk refused.
func (l *Log) sweepInBackground(stop, kicked <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-kicked:
		}
		for {
			more, err := l.sweep()
			if err != nil {
				l.write.Lock()
				l.fail(fmt.Errorf("delete old entries: %w", err))
				l.write.Unlock()
			}
			if !more {
				break
			}
			if !background.Sleep(stop, l.cfg.SweepPause) {
				return
			}
		}
	}
}

// syncInBackground syncs the rollback guard once a second. A second bounds how much of
// the guard a power failure loses; it then lags behind the log, which Verify accepts.
func (l *Log) syncInBackground(stop, _ <-chan struct{}) {
	for background.Sleep(stop, time.Second) {
		if err := l.guard.Sync(); err != nil {
			l.write.Lock()
			l.fail(fmt.Errorf("%s: %w", l.layout.RollbackGuard(), err))
			l.write.Unlock()
		}
	}
}
