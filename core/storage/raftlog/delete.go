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

// DeleteRange deletes the entries from low to high, which are the oldest ones
// (they are in a snapshot) or the newest ones (another leader knows better).
//
// Deleting the oldest would take a while, and Badger would look through the
// remains on every scan. So one small write says that they are gone, and they
// leave the disk in the background. The newest go at once.
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
		if err := l.checkWritable(); err != nil {
			return err
		}
		l.tailDeleted = true
		return l.deleteTail(low)
	}
	return fmt.Errorf("%w: deleting %d to %d of %d to %d", ErrGap, low, high, s.First, s.Last)
}

// deleteHead drops all up to high.
func (l *Log) deleteHead(high uint64) error {
	next := l.state
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

// deleteTail drops all from low on. What does not fit into the transaction that
// says so is deleted after it; should that not happen, opening does it.
func (l *Log) deleteTail(low uint64) error {
	next, gone := l.state, l.state.Last
	term, err := l.termOf(low - 1)
	if err != nil {
		return err
	}
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

// termOf is the term of a live entry. The caller holds write.
func (l *Log) termOf(index uint64) (uint64, error) {
	var e raft.Log
	if err := l.GetLog(index, &e); err != nil {
		return 0, err
	}
	return e.Term, nil
}

func (l *Log) trimRecent(s State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent.trim(s.First, s.Last)
}

// deleteKeys deletes keys in as many transactions as it takes.
func (l *Log) deleteKeys(keys [][]byte) error {
	return badgerdb.DeleteKeys(l.db, keys)
}

// lowerFloor makes room for a log that begins anew below what was deleted: the
// remains go now, lest they be deleted later in place of the new entries.
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
	next := l.state
	next.Floor = first - 1
	err := l.commit(next, func(txn *badger.Txn) error { return txn.Set(sweptKey, sweptValue(next.Floor)) })
	if err == nil {
		l.swept = next.Floor
	}
	return err
}

func sweptValue(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

// sweep deletes one batch of what lies at or below the floor; false when
// nothing was left. Keys are found by walking, for the range may have had
// holes; walking begins after what was swept, so it meets no remains.
func (l *Log) sweep() (more bool, err error) {
	l.sweepMu.Lock()
	defer l.sweepMu.Unlock()
	l.mu.RLock()
	floor := l.state.Floor
	l.mu.RUnlock()
	if l.swept >= floor || disk.CheckFree(l.layout.Log(), l.cfg.MinFree/2) != nil {
		return false, nil // what is not deleted now is deleted after the next time
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

// walkIndexes calls f for the keys of entries from index on, without values,
// until it says false.
func walkIndexes(txn *badger.Txn, from uint64, f func(key []byte, index uint64) bool) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{entryPrefix}})
	defer it.Close()
	for it.Seek(indexKey(from)); it.Valid(); it.Next() {
		key := it.Item().KeyCopy(nil)
		if len(key) != 9 {
			return fmt.Errorf("a key of %d bytes lies among the entries", len(key))
		}
		if !f(key, keyIndex(key)) {
			return nil
		}
	}
	return nil
}

// sweepInBackground deletes when it is told to, and rests between batches so
// that appending hardly notices.
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
				l.fail(fmt.Errorf("deleting old entries: %w", err))
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

// syncInBackground brings the side file to the disk.
func (l *Log) syncInBackground(stop, _ <-chan struct{}) {
	for background.Sleep(stop, time.Second) {
		if err := l.guard.sync(); err != nil {
			l.write.Lock()
			l.fail(fmt.Errorf("%s: %w", l.layout.RollbackGuard(), err))
			l.write.Unlock()
		}
	}
}
