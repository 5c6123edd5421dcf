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

// A GuardMark is the progress of the log when the guard was written.
type GuardMark struct{ Seq, Last, LastTerm uint64 }

// rollbackGuard is a small file next to the log. Badger repairs a damaged journal by
// dropping everything after the damage, without an error. The number of each transaction is
// therefore also recorded here, outside Badger: if the log has a lower number than the
// guard, it was rolled back. Numbers only grow, so a guard that is behind the log is
// normal.
//
// Two slots, each smaller than a sector, are written alternately, so that a torn write
// damages only one. Marks are synced in the background: after a power failure the guard may
// be one second behind.
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

// encode returns the content of one slot: magic, three numbers, checksum.
func (m GuardMark) encode() []byte {
	b := append(make([]byte, 0, slotSize), guardMagic...)
	for _, v := range []uint64{m.Seq, m.Last, m.LastTerm} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, badgerdb.Castagnoli))
}

// decode reports whether b holds a valid slot, and sets m if it does.
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

var errGuard = errors.New("neither of the two marks can be read")

// ReadGuard returns the newer mark. If the file is empty, the operator accepts the log as
// it is: ok is false. It returns errGuard if neither mark is valid.
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

// createGuard creates the file atomically, because an empty file has a meaning.
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

// record writes a mark. It survives a killed process immediately, and a power failure after
// the next sync.
func (t *rollbackGuard) record(m GuardMark) error {
	// Slots alternate by the lowest bit of the number.
	_, err := t.file.WriteAt(m.encode(), int64(m.Seq%2)*slotStride)
	t.mu.Lock()
	t.dirty = true
	t.mu.Unlock()
	return err
}

// sync syncs the file if marks were written since the last call.
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
