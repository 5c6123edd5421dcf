package raftlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/dgraph-io/badger/v4"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
)

// Key prefixes of the log's Badger directory. They are part of the on-disk format.
const (
	entryPrefix  = 'l' // followed by the index
	stablePrefix = 'k' // followed by Raft's own key
)

var (
	stateKey = []byte{'s'}
	sweptKey = []byte{'w'}
)

// OwnerKey is the stable key of the ID of the server that wrote the log. Raft does not use
// it. Logs of earlier releases do not have it.
var OwnerKey = []byte("CedeServerID")

// indexKey returns the key of an entry. Keys sort by index.
func indexKey(index uint64) []byte { return appendIndexKey(nil, index) }

func appendIndexKey(b []byte, index uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, entryPrefix), index)
}

func keyIndex(key []byte) uint64 { return binary.BigEndian.Uint64(key[1:]) }

func stableKey(key []byte) []byte { return append([]byte{stablePrefix}, key...) }

// A State defines the content of the log, whichever keys are on the disk: entries outside
// [First, Last] do not exist. It is written in every transaction that changes the log or a
// stable value.
type State struct {
	Seq         uint64 // number of such transactions so far
	First, Last uint64 // 0, 0 if the log is empty
	LastTerm    uint64 // of the last entry, or of the last deleted one if the log is empty
	Commit      uint64 // lower bound of the committed entries; Invariant: at most Last
	Floor       uint64 // Invariant: no live entry at or below it; keys there are to be deleted
}

// IsEmpty reports whether the log has no entries.
func (s *State) IsEmpty() bool { return s.Last == 0 }

// Contains reports whether the log has an entry at index.
func (s *State) Contains(index uint64) bool {
	return index >= s.First && index <= s.Last && index != 0
}

const (
	stateFormat = 1
	stateSize   = 1 + 6*8 + 4
)

// encode returns the stored form: format, six numbers, checksum.
func (s *State) encode() []byte {
	b := make([]byte, 0, stateSize)
	b = append(b, stateFormat)
	for _, v := range []uint64{s.Seq, s.First, s.Last, s.LastTerm, s.Commit, s.Floor} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, badgerdb.Castagnoli))
}

// decode verifies b and sets s. It returns datadir.ErrNewer for a later format.
func (s *State) decode(b []byte) error {
	end := len(b) - 4 // the checksum comes last in every format, whatever its size
	if end < 1 || crc32.Checksum(b[:end], badgerdb.Castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return badgerdb.ErrChecksum
	}
	if b[0] != stateFormat {
		return fmt.Errorf("%w: format %d, this release supports format %d", datadir.ErrNewer, b[0], stateFormat)
	}
	if len(b) != stateSize {
		return badgerdb.ErrChecksum
	}
	for i, v := range []*uint64{&s.Seq, &s.First, &s.Last, &s.LastTerm, &s.Commit, &s.Floor} {
		*v = binary.BigEndian.Uint64(b[1+8*i:])
	}
	return nil
}

// readState returns the state, false if there is none, and the progress of the
// background deletion. It returns badgerdb.ErrChecksum if the state is damaged.
func readState(db *badger.DB) (s State, swept uint64, ok bool, err error) {
	err = badgerdb.View(db, func(txn *badger.Txn) error {
		b, err := badgerdb.Get(txn, stateKey)
		if err != nil || b == nil {
			return err
		}
		ok = true
		if err := s.decode(b); err != nil {
			return err
		}
		if b, err = badgerdb.Get(txn, sweptKey); err != nil || b == nil {
			return err
		}
		if len(b) == 8 {
			swept = binary.BigEndian.Uint64(b)
		}
		return nil
	})
	return s, swept, ok, err
}
