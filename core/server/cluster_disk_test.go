package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/replication/fsm"
)

// errDisk is returned for a failed write: nothing was written.
var errDisk = errors.New("disk error")

// A simDisk is the in-memory disk of a server. After a crash, the next run of the server
// starts with what was written before it; later writes of the old run are discarded. Writes
// may be slow, hang or fail. Like the real log, it deletes its end only if the replacement
// can be written: Raft assumes that a deleted end was replaced, and panics when it applies
// it.
type simDisk struct {
	c *simCluster

	mu      sync.Mutex
	first   uint64
	last    uint64
	commit  uint64
	logs    map[uint64]*raft.Log
	words   map[string][]byte
	numbers map[string]uint64
	snaps   []*simSnapshot // the newest last
	modules map[string][]byte
	cluster string // cluster ID

	fault time.Time     // when a fault of the disk last started or ended
	slow  time.Duration // maximum duration of a write
	fails int           // number of writes that will fail
	cut   bool          // the end was deleted, and not yet replaced
	hangs chan struct{} // closed when writes continue; nil: they do not hang
}

var (
	_ raft.LogStore               = (*simDisk)(nil)
	_ raft.CommitTrackingLogStore = (*simDisk)(nil)
	_ raft.MonotonicLogStore      = (*simDisk)(nil)
	_ raft.StableStore            = (*simDisk)(nil)
	_ raft.SnapshotStore          = (*simDisk)(nil)
	_ fsm.Modules                 = simModules{}
)

func newSimDisk(c *simCluster) *simDisk {
	return &simDisk{
		c: c, logs: map[uint64]*raft.Log{}, words: map[string][]byte{}, numbers: map[string]uint64{}, modules: map[string][]byte{},
	}
}

// copyAfterCrash returns the disk that a server finds after a crash at this moment.
func (d *simDisk) copyAfterCrash() *simDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := newSimDisk(d.c)
	next.first, next.last, next.commit = d.first, d.last, d.commit
	maps.Copy(next.logs, d.logs)
	maps.Copy(next.words, d.words)
	maps.Copy(next.numbers, d.numbers)
	maps.Copy(next.modules, d.modules)
	next.snaps = slices.Clone(d.snaps)
	next.cluster = d.cluster
	return next
}

// clusterID returns the stored ID of the cluster.
func (d *simDisk) clusterID() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cluster
}

func (d *simDisk) storeClusterID(id string) error {
	d.pause()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cluster = id
	return nil
}

// hang makes writes wait until it is called with false.
func (d *simDisk) hang(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = time.Now()
	switch {
	case on && d.hangs == nil:
		d.hangs = make(chan struct{})
	case !on && d.hangs != nil:
		close(d.hangs)
		d.hangs = nil
	}
}

// slowDown makes every write take up to the given duration.
func (d *simDisk) slowDown(slow time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow, d.fault = slow, time.Now()
}

// failNext makes the next n writes of the log fail.
func (d *simDisk) failNext(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails, d.fault = n, time.Now()
}

// healthySince reports whether the disk had no fault since then.
func (d *simDisk) healthySince(at time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.slow == 0 && d.hangs == nil && d.fails == 0 && d.fault.Before(at)
}

// pause waits for the duration of a write.
func (d *simDisk) pause() {
	d.mu.Lock()
	slow, hangs := d.slow, d.hangs
	d.mu.Unlock()
	if slow > 0 {
		time.Sleep(d.c.net.randomDuration(slow))
	}
	if hangs != nil {
		<-hangs
	}
}

// FirstIndex implements raft.LogStore.
func (d *simDisk) FirstIndex() (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.first, nil
}

// LastIndex implements raft.LogStore.
func (d *simDisk) LastIndex() (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last, nil
}

// GetLog implements raft.LogStore.
func (d *simDisk) GetLog(index uint64, into *raft.Log) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.logs[index]
	if !ok {
		return raft.ErrLogNotFound
	}
	*into = *l
	return nil
}

// IsMonotonic implements raft.MonotonicLogStore: like the real log, it has no gaps.
func (d *simDisk) IsMonotonic() bool { return true }

// StoreLog implements raft.LogStore.
func (d *simDisk) StoreLog(l *raft.Log) error { return d.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (d *simDisk) StoreLogs(list []*raft.Log) error {
	d.pause()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails > 0 && !d.cut {
		d.fails--
		return errDisk
	}
	d.cut = false
	for _, l := range list {
		if d.last != 0 && l.Index != d.last+1 {
			return fmt.Errorf("got entry %d, want %d", l.Index, d.last+1)
		}
		own := *l
		d.logs[l.Index] = &own
		if d.first == 0 {
			d.first = l.Index
		}
		d.last = l.Index
	}
	return nil
}

// DeleteRange implements raft.LogStore.
func (d *simDisk) DeleteRange(from, to uint64) error {
	d.pause()
	d.mu.Lock()
	defer d.mu.Unlock()
	from, to = max(from, d.first), min(to, d.last)
	if d.last == 0 || from > to {
		return nil
	}
	end := to == d.last
	if from > d.first && !end {
		return fmt.Errorf("deletion of entries %d to %d, but the log has %d to %d", from, to, d.first, d.last)
	}
	if end && d.fails > 0 {
		d.fails--
		return errDisk
	}
	for i := from; i <= to; i++ {
		delete(d.logs, i)
	}
	d.cut = d.cut || end
	if from == d.first {
		d.first = to + 1
	} else {
		d.last = from - 1
	}
	if d.first > d.last {
		d.first, d.last = 0, 0
	}
	return nil
}

// StageCommitIndex implements raft.CommitTrackingLogStore.
func (d *simDisk) StageCommitIndex(index uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.commit = max(d.commit, index)
	return nil
}

// GetCommitIndex implements raft.CommitTrackingLogStore.
func (d *simDisk) GetCommitIndex() (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return min(d.commit, d.last), nil
}

// errNoKey has the text by which Raft recognises a key that was never written.
var errNoKey = errors.New("not found")

// Set implements raft.StableStore.
func (d *simDisk) Set(key, value []byte) error {
	d.pause()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.words[string(key)] = slices.Clone(value)
	return nil
}

// Get implements raft.StableStore.
func (d *simDisk) Get(key []byte) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, ok := d.words[string(key)]; ok {
		return v, nil
	}
	return nil, errNoKey
}

// SetUint64 implements raft.StableStore.
func (d *simDisk) SetUint64(key []byte, value uint64) error {
	d.pause()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.numbers[string(key)] = value
	return nil
}

// GetUint64 implements raft.StableStore.
func (d *simDisk) GetUint64(key []byte) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, ok := d.numbers[string(key)]; ok {
		return v, nil
	}
	return 0, errNoKey
}

// A simSnapshot is a snapshot; it becomes visible when it is closed.
type simSnapshot struct {
	d    *simDisk
	meta raft.SnapshotMeta
	data bytes.Buffer
}

// Create implements raft.SnapshotStore.
func (d *simDisk) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	return &simSnapshot{d: d, meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d-%d", term, index, d.c.net.randomDuration(1<<40)), Index: index, Term: term,
		Configuration: c, ConfigurationIndex: at,
	}}, nil
}

// List implements raft.SnapshotStore.
func (d *simDisk) List() ([]*raft.SnapshotMeta, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*raft.SnapshotMeta
	for _, s := range slices.Backward(d.snaps) {
		meta := s.meta
		list = append(list, &meta)
	}
	return list, nil
}

// Open implements raft.SnapshotStore.
func (d *simDisk) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.snaps {
		if s.meta.ID == id {
			meta := s.meta
			return &meta, io.NopCloser(bytes.NewReader(s.data.Bytes())), nil
		}
	}
	return nil, nil, os.ErrNotExist
}

func (s *simSnapshot) ID() string { return s.meta.ID }

func (s *simSnapshot) Cancel() error { return nil }

func (s *simSnapshot) Write(p []byte) (int, error) { return s.data.Write(p) }

func (s *simSnapshot) Close() error {
	s.d.pause()
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.meta.Size = int64(s.data.Len())
	s.d.snaps = append(s.d.snaps, s)
	slices.SortStableFunc(s.d.snaps, func(a, b *simSnapshot) int { return int(a.meta.Index) - int(b.meta.Index) })
	if n := len(s.d.snaps); n > 2 {
		s.d.snaps = slices.Clone(s.d.snaps[n-2:])
	}
	return nil
}

// simModules stores policy modules on a disk.
type simModules struct{ *simDisk }

func (m simModules) PutChunk(digest string, offset int64, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.modules[digest]
	if offset > int64(len(have)) {
		return fmt.Errorf("chunk at offset %d of %s, but %d bytes are stored", offset, digest, len(have))
	}
	m.modules[digest] = slices.Concat(have[:offset], data)
	return nil
}

func (m simModules) Finish(digest string, size int64) error {
	data, err := m.Get(digest)
	if sum := sha256.Sum256(data); err != nil || int64(len(data)) != size || digest != "sha256:"+hex.EncodeToString(sum[:]) {
		return fmt.Errorf("module %s is incomplete", digest)
	}
	return nil
}

func (m simModules) Get(digest string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if data, ok := m.modules[digest]; ok {
		return data, nil
	}
	return nil, os.ErrNotExist
}

func (m simModules) Delete(digest string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.modules, digest)
	return nil
}
