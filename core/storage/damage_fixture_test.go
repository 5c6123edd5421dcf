package storage_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"log/slog"

	"github.com/dgraph-io/badger/v4"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
)

// markAsNewer rewrites the entry at index, or the state of the log if index is 0, as a
// later release might have written it: with a higher format number and more bytes, and a
// valid checksum.
func markAsNewer(layout datadir.Layout, index uint64) error {
	return updateLog(layout, func(txn *badger.Txn) error {
		if index > 0 {
			b, err := badgerdb.Get(txn, entryKey(index))
			if err != nil {
				return err
			}
			b = append(b, 1, 2, 3)
			b[4]++ // the format follows the checksum
			binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], badgerdb.Castagnoli))
			return txn.Set(entryKey(index), b)
		}
		b, err := badgerdb.Get(txn, []byte{'s'})
		if err != nil {
			return err
		}
		b = append(b[:len(b)-4], 1, 2, 3)
		b[0]++ // the format comes first, the checksum last
		return txn.Set([]byte{'s'}, binary.BigEndian.AppendUint32(b, crc32.Checksum(b, badgerdb.Castagnoli)))
	})
}

// removeEntries deletes the entries from first to last from the disk and leaves the
// state of the log as it is. It simulates a database that lost data without an error.
func removeEntries(layout datadir.Layout, first, last uint64) error {
	return updateLog(layout, func(txn *badger.Txn) error {
		for i := first; i <= last; i++ {
			if err := txn.Delete(entryKey(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// entryKey returns the key of an entry in the Badger directory of the log.
func entryKey(index uint64) []byte { return binary.BigEndian.AppendUint64([]byte{'l'}, index) }

// updateLog runs one transaction on the Badger directory of a log that is not open. It
// opens the real directory, so later checks see the change.
func updateLog(layout datadir.Layout, fn func(*badger.Txn) error) (err error) {
	db, err := badgerdb.Open(badgerdb.Options(layout.Log(), slog.New(slog.DiscardHandler)).WithSyncWrites(true))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, badgerdb.Close(db)) }()
	return db.Update(fn)
}
