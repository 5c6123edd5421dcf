package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/dgraph-io/badger/v4"
	"github.com/hashicorp/raft"
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
	if err := l.mayAppend(); err != nil {
		return err
	}
	if err := l.checkAppend(entries); err != nil {
		return err
	}
	if first := entries[0].Index; l.state.empty() && first <= l.state.floor {
		if err := l.lowerFloor(first); err != nil {
			return err
		}
	}
	if err := l.append(entries, true); err != nil {
		return err
	}
	l.cut = false
	return nil
}

// checkAppend is whether entries continue the log.
func (l *Log) checkAppend(entries []*raft.Log) error {
	index, term := l.state.last, l.state.lastTerm
	if l.state.empty() {
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
	if next.empty() {
		next.first = first.Index
	}
	next.last, next.lastTerm = last.Index, last.Term
	if end {
		next.commit = max(next.commit, min(l.staged, next.last))
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
	if err := l.mayWriteLittle(); err != nil {
		return err
	}
	return l.commit(l.state, func(txn *badger.Txn) error {
		return txn.Set(stableKey(key), checked(value))
	})
}

// Get reads what Set stored; nil when there is nothing.
func (l *Log) Get(key []byte) (value []byte, err error) {
	err = view(l.db, func(txn *badger.Txn) error {
		b, err := get(txn, stableKey(key))
		if err != nil || b == nil {
			return err
		}
		if value, err = unchecked(b); err != nil {
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

// checked puts a checksum before a value.
func checked(value []byte) []byte {
	b := make([]byte, 4, 4+len(value))
	binary.BigEndian.PutUint32(b, crc32.Checksum(value, castagnoli))
	return append(b, value...)
}

// unchecked is the value without its checksum, once that has been compared.
func unchecked(b []byte) ([]byte, error) {
	if len(b) < 4 || crc32.Checksum(b[4:], castagnoli) != binary.BigEndian.Uint32(b) {
		return nil, errEntry
	}
	return b[4:], nil
}

// mayWrite is whether entries may be written. The caller holds write.
func (l *Log) mayWrite() error { return l.mayWriteDownTo(l.cfg.MinFree) }

// mayAppend is whether entries may be appended. What takes the place of an end that was
// deleted goes on as long as the deletion did: where it is refused, Raft still believes in
// the old end, and takes nothing of the leader any more until it is started anew. So the
// deletion needs the room of the append, and the append no more than what was there then.
func (l *Log) mayAppend() error {
	if l.cut {
		return l.mayWriteLittle()
	}
	return l.mayWrite()
}

// mayWriteLittle is whether a vote or a deletion may be written: they need
// little room, and Raft can neither vote nor make room without.
func (l *Log) mayWriteLittle() error { return l.mayWriteDownTo(l.cfg.MinFree / 2) }

func (l *Log) mayWriteDownTo(free int64) error {
	if l.closed {
		return ErrClosed
	}
	if l.failed != nil {
		return fmt.Errorf("%w: %w", ErrFailed, l.failed)
	}
	return checkFree(l.layout.Log(), free)
}

// checkFree refuses to begin a write on a disk that is nearly full.
func checkFree(dir string, least int64) error {
	if least < 0 {
		return nil
	}
	free, err := freeBytes(dir)
	if err != nil {
		return err
	}
	if free < uint64(least) {
		return fmt.Errorf("%w: %d MiB are left under %s, and writing needs %d MiB; make room", ErrNoSpace, free>>20, dir, least>>20)
	}
	return nil
}

// commit writes one transaction: what fill puts into it, and the state that
// holds from then on. The caller holds write.
//
// A failed write ends all writing. Badger keeps in memory what the disk has
// refused, the kernel takes pages that it could not write for written, and the
// next sync that succeeds would vouch for a journal with a hole in it.
func (l *Log) commit(next logState, fill func(*badger.Txn) error) error {
	next.seq = l.state.seq + 1
	begun := false
	err := guard(func() error {
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
		err = l.tail.note(tailMark{next.seq, next.last, next.lastTerm})
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
	go l.cfg.Fault(err)
}
