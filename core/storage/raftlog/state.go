package raftlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/dgraph-io/badger/v4"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
)

// The keys of the log's Badger directory: one prefix for each kind.
const (
	entryPrefix  = 'l' // and the index
	stablePrefix = 'k' // and Raft's own key
)

var (
	stateKey = []byte{'s'}
	sweptKey = []byte{'w'}
)

// indexKey is the key of one entry; keys are in the order of indexes.
func indexKey(index uint64) []byte { return appendIndexKey(nil, index) }

func appendIndexKey(b []byte, index uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, entryPrefix), index)
}

func keyIndex(key []byte) uint64 { return binary.BigEndian.Uint64(key[1:]) }

func stableKey(key []byte) []byte { return append([]byte{stablePrefix}, key...) }

// logState is what the log is, whatever keys lie on the disk: entries outside
// [first, last] do not exist. It is written in every transaction that changes
// the log or a stable value.
type State struct {
	Seq         uint64 // counts those transactions
	First, Last uint64 // 0, 0: empty
	LastTerm    uint64 // of the last entry, or of the last one that there was
	Commit      uint64 // a lower bound of what is committed; at most last
	Floor       uint64 // no live entry is at or below it; what is there is to be deleted
}

func (s *State) IsEmpty() bool { return s.Last == 0 }

func (s *State) Contains(index uint64) bool {
	return index >= s.First && index <= s.Last && index != 0
}

const (
	stateFormat = 1
	stateSize   = 1 + 6*8 + 4
)

func (s *State) encode() []byte {
	b := make([]byte, 0, stateSize)
	b = append(b, stateFormat)
	for _, v := range []uint64{s.Seq, s.First, s.Last, s.LastTerm, s.Commit, s.Floor} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, badgerdb.Castagnoli))
}

func (s *State) decode(b []byte) error {
	end := len(b) - 4 // of whatever format: a later one may have another size
	if end < 1 || crc32.Checksum(b[:end], badgerdb.Castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return badgerdb.ErrChecksum
	}
	if b[0] != stateFormat {
		return fmt.Errorf("%w: it is of format %d, and this one reads format %d", datadir.ErrNewer, b[0], stateFormat)
	}
	if len(b) != stateSize {
		return badgerdb.ErrChecksum
	}
	for i, v := range []*uint64{&s.Seq, &s.First, &s.Last, &s.LastTerm, &s.Commit, &s.Floor} {
		*v = binary.BigEndian.Uint64(b[1+8*i:])
	}
	return nil
}

// readState reads the state, false when there is none, and how far deleting
// has come.
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
