package fsm

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
)

// Modules stores policy modules on this server, by digest. Storing a module again has
// no effect. An error of PutChunk or Finish halts this server: it could not apply the
// entry.
type Modules interface {
	PutChunk(digest string, offset int64, data []byte) error
	// Finish returns an error unless the chunks add up to the module of that digest.
	Finish(digest string, size int64) error
	Get(digest string) ([]byte, error)
	Delete(digest string) error
}

var errNoModules = errors.New("this server has no store for policy modules")

// A moduleStore keeps the modules on this server in step with the state. A module
// is stored before the entry that refers to it is committed, and deleted after the
// last version that uses it is gone. While a state is pinned, no module is deleted:
// the state may be an older one that still refers to it.
type moduleStore struct {
	Modules // nil: there is no store
	log     *slog.Logger

	mu       sync.Mutex
	pins     int
	deferred []string // digests to be deleted once pins is 0
}

// store stores modules that arrived as uploads. It runs before the commit, so a crash
// in between leaves an unused module, and the replay of the entry stores it again.
func (m *moduleStore) store(uploads []*state.Upload) error {
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

// storeWhole stores a module of a snapshot. An upload is used as the container, so that
// there is one path to the disk.
func (m *moduleStore) storeWhole(digest string, data []byte) error {
	u := &state.Upload{Digest: digest}
	for chunk := range slices.Chunk(data, replication.MaxChunk) {
		u = u.With(0, chunk)
	}
	return m.store([]*state.Upload{u})
}

// delete deletes those of the modules that no policy version of the state uses. A
// module that cannot be deleted is logged: it wastes space only.
func (m *moduleStore) delete(snap *state.Snapshot, digests []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deferred = append(m.deferred, digests...)
	if m.pins > 0 || m.Modules == nil {
		return
	}
	for _, digest := range m.deferred {
		if moduleInUse(&snap.View, digest) {
			continue
		}
		if err := m.Delete(digest); err != nil {
			m.log.Warn("cannot delete an unused policy module", "digest", digest, "err", err)
		}
	}
	m.deferred = nil
}

// PinModules keeps every module until the function that it returns is called. An
// operator's snapshot reads modules long after its state was taken. release must be
// called once.
func (f *FSM) PinModules() (release func()) {
	m := f.modules
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pins++
	return func() {
		m.mu.Lock()
		m.pins--
		m.mu.Unlock()
		m.delete(f.store.Snapshot(), nil)
	}
}

// Module returns a stored module. It returns an error if the server has no store for
// modules, or lacks this one.
func (f *FSM) Module(digest string) ([]byte, error) {
	if f.modules.Modules == nil {
		return nil, errNoModules
	}
	return f.modules.Get(digest)
}

// moduleInUse reports whether a policy version of the state uses a module. The list of
// versions is short.
func moduleInUse(v *state.View, digest string) bool {
	for _, p := range v.PolicyVersions() {
		if p.Digest == digest {
			return true
		}
	}
	return false
}
