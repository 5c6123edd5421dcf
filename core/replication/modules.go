package replication

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/state"
)

var errNoModules = errors.New("this server was opened without a place for modules")

// modules is what this server keeps of policy modules, in step with the state.
// A module is put in before the entry that makes it known is committed, and
// taken away after the last version that uses it. While a snapshot is being
// written nothing is taken away, as the snapshot may be of before.
type modules struct {
	Modules
	log *slog.Logger

	mu       sync.Mutex
	readers  int
	deferred []string
}

// add puts in modules that came as uploads.
func (m *modules) add(uploads []*state.Upload) error {
	for _, u := range uploads {
		if m.Modules == nil {
			return fmt.Errorf("module %s: %w", u.Digest, errNoModules)
		}
		offset := int64(0)
		for _, c := range u.Chunks {
			if err := m.PutChunk(u.Digest, offset, c); err != nil {
				return fmt.Errorf("module %s: %w", u.Digest, err)
			}
			offset += int64(len(c))
		}
		if err := m.Finish(u.Digest, u.Size); err != nil {
			return fmt.Errorf("module %s: %w", u.Digest, err)
		}
	}
	return nil
}

// drop takes away modules that no version uses.
func (m *modules) drop(snap *state.Snapshot, digests []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deferred = append(m.deferred, digests...)
	if m.readers > 0 || m.Modules == nil {
		return
	}
	for _, digest := range m.deferred {
		if moduleInUse(&snap.View, digest) {
			continue
		}
		if err := m.Delete(digest); err != nil {
			m.log.Warn("cannot delete a policy module that nothing uses", "digest", digest, "err", err)
		}
	}
	m.deferred = nil
}

// read keeps modules where they are until the end that it returns is called.
func (m *modules) read() (end func(now *state.Snapshot)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readers++
	return func(now *state.Snapshot) {
		m.mu.Lock()
		m.readers--
		m.mu.Unlock()
		m.drop(now, nil)
	}
}

// moduleInUse is whether a version is made of the module.
func moduleInUse(v *state.View, digest string) bool {
	for _, p := range v.PolicyVersions() {
		if p.Digest == digest {
			return true
		}
	}
	return false
}

// keep puts in a module that came in a snapshot.
func (m *modules) keep(digest string, data []byte) error {
	u := &state.Upload{Digest: digest}
	for chunk := range slices.Chunk(data, MaxChunk) {
		u = u.With(0, chunk)
	}
	return m.add([]*state.Upload{u})
}

func (m *modules) get(digest string) ([]byte, error) {
	if m.Modules == nil {
		return nil, errNoModules
	}
	return m.Get(digest)
}
