package raftlog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"sync"

	"github.com/cede-scheduler/cede/core/internal/atomicfile"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
)

// tailMark is how far the log was when the side file was written.
type GuardMark struct{ Seq, Last, LastTerm uint64 }

// tailFile is the side file. Badger mends a damaged journal by forgetting what
// comes after the damage, and says nothing. So after each transaction its
// number is noted here, outside of Badger: a log whose number is lower was
// rolled back. Whatever the transaction did, numbers only grow, so a mark that
// is behind the log is as it should be.
//
// Two slots are written in turn, each smaller than a sector, so that a torn
// write leaves the other. Marks reach the disk in the background: after a power
// cut the file may be a second behind.
type rollbackGuard struct {
	file *os.File

	mu    sync.Mutex
	dirty bool
}

const (
	guardMagic = "cedetail"
	slotSize   = 8 + 3*8 + 4
	slotStride = 512
	guardSize  = 2 * slotStride
)

func (m GuardMark) encode() []byte {
	b := append(make([]byte, 0, slotSize), guardMagic...)
	for _, v := range []uint64{m.Seq, m.Last, m.LastTerm} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, badgerdb.Castagnoli))
}

func (m *GuardMark) decode(b []byte) bool {
	if len(b) < slotSize || string(b[:8]) != guardMagic ||
		crc32.Checksum(b[:slotSize-4], badgerdb.Castagnoli) != binary.BigEndian.Uint32(b[slotSize-4:]) {
		return false
	}
	for i, v := range []*uint64{&m.Seq, &m.Last, &m.LastTerm} {
		*v = binary.BigEndian.Uint64(b[8+8*i:])
	}
	return true
}

var errGuard = errors.New("neither of its two marks can be read")

// readTail reads the newer mark. An empty file means that an operator vouches
// for the log: ok is false.
func ReadGuard(path string) (m GuardMark, ok bool, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return m, false, err
	}
	if len(b) == 0 {
		return m, false, nil
	}
	for at := 0; at < guardSize && at <= len(b); at += slotStride {
		var slot GuardMark
		if slot.decode(b[at:]) && (!ok || slot.Seq > m.Seq) {
			m, ok = slot, true
		}
	}
	if !ok {
		return m, false, errGuard
	}
	return m, true, nil
}

// createTail makes the file whole or not at all: an empty one means something.
func createGuard(path string, m GuardMark) error {
	b := make([]byte, guardSize)
	copy(b, m.encode())
	copy(b[slotStride:], m.encode())
	return atomicfile.Write(path, b, 0o600)
}

func openGuard(path string) (*rollbackGuard, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &rollbackGuard{file: f}, nil
}

// record writes a mark. The kernel has it from then on, the disk a little later.
func (t *rollbackGuard) record(m GuardMark) error {
	_, err := t.file.WriteAt(m.encode(), int64(m.Seq%2)*slotStride)
	t.mu.Lock()
	t.dirty = true
	t.mu.Unlock()
	return err
}

// sync brings the marks to the disk, where there are new ones.
func (t *rollbackGuard) sync() error {
	t.mu.Lock()
	dirty := t.dirty
	t.dirty = false
	t.mu.Unlock()
	if !dirty {
		return nil
	}
	return t.file.Sync()
}

func (t *rollbackGuard) close() error {
	return errors.Join(t.sync(), t.file.Close())
}
