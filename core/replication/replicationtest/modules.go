package replicationtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"sync"

	"github.com/cede-scheduler/cede/core/model"
)

// Modules is an fsm.Modules in memory. It is safe for concurrent use.
type Modules struct {
	mu     sync.Mutex
	chunks map[string][]byte
	whole  map[string][]byte
	err    error
}

// NewModules returns an empty store.
func NewModules() *Modules {
	return &Modules{chunks: map[string][]byte{}, whole: map[string][]byte{}}
}

// Fail makes every PutChunk return an error. nil ends the failure.
func (m *Modules) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// Len returns the number of complete modules.
func (m *Modules) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.whole)
}

// PutChunk implements fsm.Modules.
func (m *Modules) PutChunk(digest string, offset int64, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if int64(len(m.chunks[digest])) == offset {
		m.chunks[digest] = append(m.chunks[digest], data...)
	}
	return nil
}

// Finish implements fsm.Modules.
func (m *Modules) Finish(digest string, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	data := m.chunks[digest]
	if int64(len(data)) != size || Digest(data) != digest {
		return fmt.Errorf("module %s has %d bytes, want %d, or its content differs", digest, len(data), size)
	}
	m.whole[digest] = data
	return nil
}

// Replace replaces the content of a complete module, as a damaged disk does.
func (m *Modules) Replace(digest string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.whole[digest] = data
}

// Get implements fsm.Modules.
func (m *Modules) Get(digest string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if data, ok := m.whole[digest]; ok {
		return data, nil
	}
	return nil, fmt.Errorf("module %s: %w", digest, fs.ErrNotExist)
}

// Delete implements fsm.Modules.
func (m *Modules) Delete(digest string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.whole, digest)
	delete(m.chunks, digest)
	return nil
}

// Digest returns the digest of a module.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// PolicyVersion returns a version of policy p with a module.
func PolicyVersion(module []byte, id string) *model.PolicyVersion {
	return &model.PolicyVersion{
		ID: "sha256:" + id, Name: "p", Kind: model.PolicyWasm, Digest: Digest(module), Size: int64(len(module)),
	}
}
