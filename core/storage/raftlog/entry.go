package raftlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
)

// Format of a stored entry, all numbers big-endian:
//
//	crc32c of the rest   4
//	format               1
//	type                 1
//	index                8
//	term                 8
//	appended, ns         8   least integer if unknown
//	length of the data   4
//	data, extensions
//
// The checksum is necessary because Badger may return an older value or none without an
// error.
const (
	entryFormat = 1
	entryHeader = 4 + 1 + 1 + 8 + 8 + 8 + 4
)

// never represents a zero AppendedAt.
const never = -1 << 63

// entrySize returns the encoded size of an entry in bytes.
func entrySize(l *raft.Log) int { return entryHeader + len(l.Data) + len(l.Extensions) }

// appendEntry appends the encoding of l to b.
func appendEntry(b []byte, l *raft.Log) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, entryFormat, byte(l.Type))
	b = binary.BigEndian.AppendUint64(b, l.Index)
	b = binary.BigEndian.AppendUint64(b, l.Term)
	appended := int64(never)
	if !l.AppendedAt.IsZero() {
		appended = l.AppendedAt.UnixNano()
	}
	b = binary.BigEndian.AppendUint64(b, uint64(appended))
	b = binary.BigEndian.AppendUint32(b, uint32(len(l.Data)))
	b = append(b, l.Data...)
	b = append(b, l.Extensions...)
	binary.BigEndian.PutUint32(b[at:], crc32.Checksum(b[at+4:], badgerdb.Castagnoli))
	return b
}

// decodeEntry verifies b and decodes it as the entry at index. The entry retains b. It
// returns badgerdb.ErrChecksum for damaged data and datadir.ErrNewer for a later format.
func decodeEntry(b []byte, index uint64, into *raft.Log) error {
	if len(b) < entryHeader || crc32.Checksum(b[4:], badgerdb.Castagnoli) != binary.BigEndian.Uint32(b) {
		return badgerdb.ErrChecksum
	}
	if b[4] != entryFormat {
		return fmt.Errorf("%w: format %d, this release supports format %d", datadir.ErrNewer, b[4], entryFormat)
	}
	if got := binary.BigEndian.Uint64(b[6:]); got != index {
		return fmt.Errorf("contains entry %d", got)
	}
	size := int(binary.BigEndian.Uint32(b[30:]))
	if size > len(b)-entryHeader {
		return badgerdb.ErrChecksum
	}
	*into = raft.Log{Type: raft.LogType(b[5]), Index: index, Term: binary.BigEndian.Uint64(b[14:])}
	if appended := int64(binary.BigEndian.Uint64(b[22:])); appended != never {
		into.AppendedAt = time.Unix(0, appended)
	}
	rest := b[entryHeader:]
	if size > 0 {
		into.Data = rest[:size:size]
	}
	if len(rest) > size {
		into.Extensions = rest[size:]
	}
	return nil
}
