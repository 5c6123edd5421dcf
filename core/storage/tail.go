package storage

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"sync"
)

// tailMark is how far the log was when the side file was written.
type tailMark struct{ seq, last, lastTerm uint64 }

// tailFile is the side file. Badger mends a damaged journal by forgetting what
// comes after the damage, and says nothing. So after each transaction its
// number is noted here, outside of Badger: a log whose number is lower was
// rolled back. Whatever the transaction did, numbers only grow, so a mark that
// is behind the log is as it should be.
//
// Two slots are written in turn, each smaller than a sector, so that a torn
// write leaves the other. Marks reach the disk in the background: after a power
// cut the file may be a second behind.
type tailFile struct {
	file *os.File

	mu    sync.Mutex
	dirty bool
}

const (
	tailMagic = "cedetail"
	slotSize  = 8 + 3*8 + 4
	slotApart = 512
	tailSize  = 2 * slotApart
)

func (m tailMark) encode() []byte {
	b := append(make([]byte, 0, slotSize), tailMagic...)
	for _, v := range []uint64{m.seq, m.last, m.lastTerm} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func (m *tailMark) decode(b []byte) bool {
	if len(b) < slotSize || string(b[:8]) != tailMagic ||
		crc32.Checksum(b[:slotSize-4], castagnoli) != binary.BigEndian.Uint32(b[slotSize-4:]) {
		return false
	}
	for i, v := range []*uint64{&m.seq, &m.last, &m.lastTerm} {
		*v = binary.BigEndian.Uint64(b[8+8*i:])
	}
	return true
}

var errTail = errors.New("neither of its two marks can be read")

// readTail reads the newer mark. An empty file means that an operator vouches
// for the log: ok is false.
func readTail(path string) (m tailMark, ok bool, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return m, false, err
	}
	if len(b) == 0 {
		return m, false, nil
	}
	for at := 0; at < tailSize && at <= len(b); at += slotApart {
		var slot tailMark
		if slot.decode(b[at:]) && (!ok || slot.seq > m.seq) {
			m, ok = slot, true
		}
	}
	if !ok {
		return m, false, errTail
	}
	return m, true, nil
}

// createTail makes the file whole or not at all: an empty one means something.
func createTail(path string, m tailMark) error {
	b := make([]byte, tailSize)
	copy(b, m.encode())
	copy(b[slotApart:], m.encode())
	return writeWhole(path, b)
}

func openTail(path string) (*tailFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &tailFile{file: f}, nil
}

// note writes a mark. The kernel has it from then on, the disk a little later.
func (t *tailFile) note(m tailMark) error {
	_, err := t.file.WriteAt(m.encode(), int64(m.seq%2)*slotApart)
	t.mu.Lock()
	t.dirty = true
	t.mu.Unlock()
	return err
}

// sync brings the marks to the disk, where there are new ones.
func (t *tailFile) sync() error {
	t.mu.Lock()
	dirty := t.dirty
	t.dirty = false
	t.mu.Unlock()
	if !dirty {
		return nil
	}
	return t.file.Sync()
}

func (t *tailFile) close() error {
	return errors.Join(t.sync(), t.file.Close())
}
