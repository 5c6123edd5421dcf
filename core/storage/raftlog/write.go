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
)

// StoreLog appends one entry.
func (l *Log) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs appends entries, and the staged commit index with them, in one
// transaction. Entries too large for one go in several, in the order of their
// indexes: what a crash leaves of them is a prefix.
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

// checkContiguous is whether entries continue the log.
func (l *Log) checkContiguous(entries []*raft.Log) error {
	index, term := l.state.Last, l.state.LastTerm
	if l.state.IsEmpty() {
		index, term = entries[0].Index-1, 0
	}
	for _, e := range entries {
		if index++; e.Index != index {
			return fmt.Errorf("%w: entry %d comes where %d should", ErrGap, e.Index, index)
		}
		if e.Term < term {
			return fmt.Errorf("%w: entry %d is of term %d, the one before it of term %d", ErrGap, e.Index, e.Term, term)
		}
		term = e.Term
	}
	if entries[0].Index == 0 {
		return fmt.Errorf("%w: there is no entry 0", ErrGap)
	}
	return nil
}

// append writes entries in one transaction, or in halves when they are too
// many for one. The commit index goes with the end.
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
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range entries {
		l.recent.add(e)
	}
	return nil
}

// put adds entries to a transaction. They are encoded side by side in a buffer
// that is used again: after the commit Badger has copied them.
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
		l.buf = nil // a rare giant is not kept
	}
	return nil
}

// StageCommitIndex remembers index until the next entries are stored.
func (l *Log) StageCommitIndex(index uint64) error {
	l.write.Lock()
	defer l.write.Unlock()
	l.staged = index
	return nil
}

// Set stores a value under one of Raft's own keys.
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

// Get reads what Set stored; nil when there is nothing.
func (l *Log) Get(key []byte) (value []byte, err error) {
	err = badgerdb.View(l.db, func(txn *badger.Txn) error {
		b, err := badgerdb.Get(txn, stableKey(key))
		if err != nil || b == nil {
			return err
		}
		if value, err = badgerdb.Unseal(b); err != nil {
			return l.damage(fmt.Sprintf("the value of %q cannot be read", key), err)
		}
		return nil
	})
	return value, err
}

// SetUint64 stores a number.
func (l *Log) SetUint64(key []byte, value uint64) error {
	return l.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 reads a number; 0 when there is none.
func (l *Log) GetUint64(key []byte) (uint64, error) {
	b, err := l.Get(key)
	if err != nil || b == nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, l.damage(fmt.Sprintf("the value of %q is no number", key), nil)
	}
	return binary.BigEndian.Uint64(b), nil
}

// checkWritable is whether entries may be written. The caller holds write.
func (l *Log) checkWritable() error { return l.checkFree(l.cfg.MinFree) }

// checkAppendable is whether entries may be appended. What takes the place of an end that was
// deleted goes on as long as the deletion did: where it is refused, Raft still believes in
// the old end, and takes nothing of the leader any more until it is started anew. So the
// deletion needs the room of the append, and the append no more than what was there then.
func (l *Log) checkAppendable() error {
	if l.tailDeleted {
		return l.checkReserve()
	}
	return l.checkWritable()
}

// checkReserve is whether a vote or a deletion may be written: they need
// little room, and Raft can neither vote nor make room without.
func (l *Log) checkReserve() error { return l.checkFree(l.cfg.MinFree / 2) }

func (l *Log) checkFree(free int64) error {
	if l.closed {
		return datadir.ErrClosed
	}
	if l.failed != nil {
		return fmt.Errorf("%w: %w", datadir.ErrFailed, l.failed)
	}
	return disk.CheckFree(l.layout.Log(), free)
}

// commit writes one transaction: what fill puts into it, and the state that
// holds from then on. The caller holds write.
//
// A failed write ends all writing. Badger keeps in memory what the disk has
// refused, the kernel takes pages that it could not write for written, and the
// next sync that succeeds would vouch for a journal with a hole in it.
func (l *Log) commit(next State, fill func(*badger.Txn) error) error {
	next.Seq = l.state.Seq + 1
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
		err = l.guard.record(GuardMark{next.Seq, next.Last, next.LastTerm})
	}
	if err != nil {
		if begun {
			l.fail(err)
		}
		return err
	}
	l.mu.Lock()
	l.state = next
	l.mu.Unlock()
	return nil
}

// fail ends all writing. The caller holds write.
func (l *Log) fail(err error) {
	if l.failed != nil {
		return
	}
	l.failed = err
	l.logger().Error("the raft log could not be written, and takes no more entries", "err", err)
	go l.cfg.OnFault(err)
}
