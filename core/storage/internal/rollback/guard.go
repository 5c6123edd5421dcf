// Package rollback owns small files that record the progress of a database outside it. If
// a database is behind its file, it has lost writes.
//
// It does not open the database, and its callers decide what a loss means. A Guard is
// used by one writer and one goroutine that syncs it.
package rollback

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"sync"

	"github.com/cede-scheduler/cede/core/internal/atomicfile"
	"github.com/cede-scheduler/cede/core/storage/internal/badgerdb"
)

// A Mark is the progress of a database when the guard was written: the number of its last
// transaction and, for a log, its last entry.
type Mark struct{ Seq, Last, LastTerm uint64 }

// A Guard is a small file next to a database. Badger repairs a damaged journal by
// dropping everything after the damage, without an error. The number of each transaction is
// therefore also recorded here, outside Badger: if the database has a lower number than the
// guard, it was rolled back. Numbers only grow, so a guard that is behind the database is
// normal.
//
// Two slots, each smaller than a sector, are written alternately, so that a torn write
// damages only one. Marks are synced in the background: after a power failure the guard may
// be one second behind.
type Guard struct {
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
func (m Mark) encode() []byte {
	b := append(make([]byte, 0, slotSize), guardMagic...)
	for _, v := range []uint64{m.Seq, m.Last, m.LastTerm} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, badgerdb.Castagnoli))
}

// decode reports whether b holds a valid slot, and sets m if it does.
func (m *Mark) decode(b []byte) bool {
	if len(b) < slotSize || string(b[:8]) != guardMagic ||
		crc32.Checksum(b[:slotSize-4], badgerdb.Castagnoli) != binary.BigEndian.Uint32(b[slotSize-4:]) {
		return false
	}
	for i, v := range []*uint64{&m.Seq, &m.Last, &m.LastTerm} {
		*v = binary.BigEndian.Uint64(b[8+8*i:])
	}
	return true
}

// ErrDamaged means that a guard holds no valid mark.
var ErrDamaged = errors.New("neither of the two marks can be read")

// Read returns the newer mark. If the file is empty, the operator accepts the log as
// it is: ok is false. It returns ErrDamaged if neither mark is valid.
func Read(path string) (m Mark, ok bool, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return m, false, err
	}
	if len(b) == 0 {
		return m, false, nil
	}
	for at := 0; at < guardSize && at <= len(b); at += slotStride {
		var slot Mark
		if slot.decode(b[at:]) && (!ok || slot.Seq > m.Seq) {
			m, ok = slot, true
		}
	}
	if !ok {
		return m, false, ErrDamaged
	}
	return m, true, nil
}

// Create creates the file atomically, because an empty file has a meaning.
func Create(path string, m Mark) error {
	b := make([]byte, guardSize)
	copy(b, m.encode())
	copy(b[slotStride:], m.encode())
	return atomicfile.Write(path, b, 0o600)
}

// Open opens the file that Create has written, for in-place writes.
func Open(path string) (*Guard, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &Guard{file: f}, nil
}

// Record writes a mark. It survives a killed process immediately, and a power failure after
// the next sync.
func (t *Guard) Record(m Mark) error {
	// Slots alternate by the lowest bit of the number.
	_, err := t.file.WriteAt(m.encode(), int64(m.Seq%2)*slotStride)
	t.mu.Lock()
	t.dirty = true
	t.mu.Unlock()
	return err
}

// Sync syncs the file if marks were written since the last call. A mark that is
// recorded during the call is synced by the next one.
func (t *Guard) Sync() error {
	t.mu.Lock()
	dirty := t.dirty
	t.dirty = false
	t.mu.Unlock()
	if !dirty {
		return nil
	}
	return t.file.Sync()
}

// Close syncs and closes the file.
func (t *Guard) Close() error {
	return errors.Join(t.Sync(), t.file.Close())
}
