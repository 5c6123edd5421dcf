package storage

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/dgraph-io/badger/v4"
)

// Sweeping is whether deleted entries are still on the disk.
func (l *Log) Sweeping() bool {
	_, floor := l.reach()
	l.sweeping.Lock()
	defer l.sweeping.Unlock()
	return l.swept < floor
}

// CopySparse copies a file and leaves its holes.
var CopySparse = copySparse

// NextData is where a file goes on after a hole.
var NextData = nextData

// WriteAsNewer has the entry at index, or the log's state where that is 0, look as
// if a later release had written it, which does so at greater length.
func WriteAsNewer(layout Layout, index uint64) (err error) {
	db, err := openEngine(engineOptions(layout.Log(), discard(nil)).WithSyncWrites(true))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeEngine(db)) }()
	return db.Update(func(txn *badger.Txn) error {
		if index > 0 {
			b, err := get(txn, indexKey(index))
			if err != nil {
				return err
			}
			b = append(b, 1, 2, 3)
			b[4] = entryFormat + 1
			binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
			return txn.Set(indexKey(index), b)
		}
		b, err := get(txn, stateKey)
		if err != nil {
			return err
		}
		b = append(b[:len(b)-4], 1, 2, 3)
		b[0] = stateFormat + 1
		return txn.Set(stateKey, binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)))
	})
}

// LoseEntries takes entries out of a log without its noticing.
func LoseEntries(layout Layout, from, to uint64) (err error) {
	db, err := openEngine(engineOptions(layout.Log(), discard(nil)).WithSyncWrites(true))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeEngine(db)) }()
	return db.Update(func(txn *badger.Txn) error {
		for i := from; i <= to; i++ {
			if err := txn.Delete(indexKey(i)); err != nil {
				return err
			}
		}
		return nil
	})
}
