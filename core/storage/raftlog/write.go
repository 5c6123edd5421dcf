package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"
	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
	"github.com/cede-scheduler/cede/core/storage/internal/disk"
	"github.com/cede-scheduler/cede/core/storage/internal/rollback"
)

// StoreLog appends one entry.
func (l *Log) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs appends entries together with the staged commit index. Entries that exceed
// one transaction are written in several, in order of their indexes, so a crash leaves
// a prefix. It returns ErrGap if the entries do not continue the log. It returns
// ErrNoSpace before the disk is full, and ErrFailed after an earlier write failed. The
// log retains entries in its cache, so the caller must not change them.
func (l *Log) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	l.write.Lock()
	defer l.write.Unlock()
	if err := l.checkAppendable(); err != nil {
		return err
	}
	if err := l.checkContiguous(entries); err != nil {
		return err
	}
	// After a snapshot restore the log may start below what was deleted before.
	if first := entries[0].Index; l.state.IsEmpty() && first <= l.state.Floor {
		if err := l.lowerFloor(first); err != nil {
			return err
		}
	}
	if err := l.append(entries, true); err != nil {
		return err
	}
	l.tailDeleted = false
	return nil
}

// checkContiguous returns ErrGap if entries do not continue the log, or if a term
// decreases.
func (l *Log) checkContiguous(entries []*raft.Log) error {
	index, term := l.state.Last, l.state.LastTerm
	if l.state.IsEmpty() {
		index, term = entries[0].Index-1, 0
	}
	for _, e := range entries {
		if index++; e.Index != index {
			return fmt.Errorf("%w: got entry %d, want %d", ErrGap, e.Index, index)
		}
		if e.Term < term {
			return fmt.Errorf("%w: entry %d has term %d, lower than term %d before it", ErrGap, e.Index, e.Term, term)
		}
		term = e.Term
	}
	if entries[0].Index == 0 {
		return fmt.Errorf("%w: entry 0 is not valid", ErrGap)
	}
	return nil
}

// append writes entries in one transaction, or in halves if they exceed it. The commit
// index is written with the last part, given by end. A transaction that is too big has
// written nothing, so dividing it is safe.
func (l *Log) append(entries []*raft.Log, end bool) error {
	first, last := entries[0], entries[len(entries)-1]
	next := l.state
	if next.IsEmpty() {
		next.First = first.Index
	}
	next.Last, next.LastTerm = last.Index, last.Term
	if end {
		next.Commit = max(next.Commit, min(l.staged, next.Last))
	}
	err := l.commit(next, func(txn *badger.Txn) error { return l.put(txn, entries) })
	if errors.Is(err, badger.ErrTxnTooBig) && len(entries) > 1 {
		half := len(entries) / 2
		if err := l.append(entries[:half], false); err != nil {
			return err
		}
		return l.append(entries[half:], end)
	}
	if err != nil {
		return err
	}
	// Only durable entries may be cached, because readers trust the cache.
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range entries {
		l.recent.add(e)
	}
	return nil
}

// put adds entries to a transaction. They are encoded into one reusable buffer, which
// Badger has copied when the commit returns.
func (l *Log) put(txn *badger.Txn, entries []*raft.Log) error {
	size := 0
	for _, e := range entries {
		size += 9 + entrySize(e)
	}
	if cap(l.buf) < size {
		l.buf = make([]byte, 0, size)
	}
	b := l.buf[:0]
	for _, e := range entries {
		at := len(b)
		b = appendIndexKey(b, e.Index)
		value := len(b)
		b = appendEntry(b, e)
		if err := txn.Set(b[at:value:value], b[value:len(b):len(b)]); err != nil {
			return err
		}
	}
	if size > 1<<20 {
		l.buf = nil // do not retain the buffer of a rare large batch
	}
	return nil
}

// StageCommitIndex sets the commit index that is stored with the next entries. It
// writes nothing itself. A crash may lose it: the stored index is a lower bound of the
// committed entries.
func (l *Log) StageCommitIndex(index uint64) error {
	l.write.Lock()
	defer l.write.Unlock()
	l.staged = index
	return nil
}

// Set stores a value of Raft's stable store. Raft stores its term and vote here: it
// must not vote before they are durable.
func (l *Log) Set(key, value []byte) error {
	l.write.Lock()
	defer l.write.Unlock()
	if err := l.checkReserve(); err != nil {
		return err
	}
	return l.commit(l.state, func(txn *badger.Txn) error {
		return txn.Set(stableKey(key), badgerdb.Seal(value))
	})
}

// Get returns the value of a key, or nil if it was never set. It reads the disk and
// needs no lock, since Badger's transactions are isolated.
func (l *Log) Get(key []byte) (value []byte, err error) {
	err = badgerdb.View(l.db, func(txn *badger.Txn) error {
		b, err := badgerdb.Get(txn, stableKey(key))
		if err != nil || b == nil {
			return err
		}
		if value, err = badgerdb.Unseal(b); err != nil {
			return l.damage(fmt.Sprintf("cannot read the value of %q", key), err)
		}
		return nil
	})
	return value, err
}

// SetUint64 stores a number of Raft's stable store.
func (l *Log) SetUint64(key []byte, value uint64) error {
	return l.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 returns the number of a key, or 0 if it was never set.
func (l *Log) GetUint64(key []byte) (uint64, error) {
	b, err := l.Get(key)
	if err != nil || b == nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, l.damage(fmt.Sprintf("value of %q is not a number", key), nil)
	}
	return binary.BigEndian.Uint64(b), nil
}

// checkWritable returns an error if entries must not be written. The caller holds write.
func (l *Log) checkWritable() error { return l.checkFree(l.cfg.MinFree) }

// checkAppendable returns an error if entries must not be appended. The replacement of a
// deleted tail is allowed down to the smaller reserve: if it were refused, Raft would keep
// believing in the old tail and accept nothing from the leader until it is restarted.
// deleteTail has required the full space, and the replacement needs no more than was
// deleted.
func (l *Log) checkAppendable() error {
	if l.tailDeleted {
		return l.checkReserve()
	}
	return l.checkWritable()
}

// checkReserve returns an error if a vote or a deletion must not be written. They are
// small, and without them Raft can neither vote nor free space.
func (l *Log) checkReserve() error { return l.checkFree(l.cfg.MinFree / 2) }

// checkFree returns an error if the log is closed, has failed, or the disk has fewer than
// free bytes.
func (l *Log) checkFree(free int64) error {
	if l.closed {
		return datadir.ErrClosed
	}
	if l.failed != nil {
		return fmt.Errorf("%w: %w", datadir.ErrFailed, l.failed)
	}
	return disk.CheckFree(l.layout.Log(), free)
}

// commit writes one transaction: the changes of fill and the state that is valid from then
// on. The caller holds write.
//
// A failed write rejects all later ones. Badger keeps in memory what the disk has refused,
// the kernel marks pages clean that it could not write, and the next sync that succeeds
// would vouch for a journal with a hole.
func (l *Log) commit(next State, fill func(*badger.Txn) error) error {
	next.Seq = l.state.Seq + 1
	// Only errors after the commit started make the contents of the disk uncertain.
	begun := false
	err := badgerdb.Guard(func() error {
		txn := l.db.NewTransaction(true)
		defer txn.Discard()
		if err := txn.Set(stateKey, next.encode()); err != nil {
			return err
		}
		if err := fill(txn); err != nil {
			return err
		}
		begun = true
		return txn.Commit()
	})
	if err == nil {
		// The guard is written after the commit: a mark without its entries would look
		// like a log that was rolled back.
		err = l.guard.Record(rollback.Mark{Seq: next.Seq, Last: next.Last, LastTerm: next.LastTerm})
	}
	if err != nil {
		if begun {
			l.fail(err)
		}
		return err
	}
	// Readers see the new state only once it is durable.
	l.mu.Lock()
	l.state = next
	l.mu.Unlock()
	return nil
}

// fail rejects all further writes. The caller holds write.
func (l *Log) fail(err error) {
	if l.failed != nil {
		return
	}
	l.failed = err
	l.logger().Error("failed to write the raft log; further entries are rejected", "err", err)
	go l.cfg.OnFault(err)
}
