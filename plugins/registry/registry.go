package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
)

// A Registry holds loaded policies and the active set.
type Registry struct {
	loader *Loader
	log    *slog.Logger

	mu     sync.Mutex
	loaded []*policy.Version // each referenced by the registry
	slots  map[string]*slot  // by policy name
	active *policy.ActiveSet
	closed bool
}

// slot is the active version of one policy name.
type slot struct {
	current, last *policy.Version // target of a rollback; nil: none
}

// New returns a registry in which the built-in default policy is active.
func New(o Options) (*Registry, error) {
	r := &Registry{loader: NewLoader(o), log: o.Log, slots: map[string]*slot{}}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	v, err := r.Load(context.Background(), Spec{Use: policy.DefaultName})
	if err != nil {
		return nil, err
	}
	set, err := policy.NewSet(v)
	if err != nil {
		return nil, err
	}
	r.slots[policy.DefaultName] = &slot{current: v}
	r.active = policy.NewActiveSet(set)
	return r, nil
}

// Active returns the active set.
func (r *Registry) Active() *policy.ActiveSet { return r.active }

// Load loads a policy and tests it. It makes no decisions until it is activated. Loading an
// equal version again returns the first one.
func (r *Registry) Load(ctx context.Context, spec Spec) (*policy.Version, error) {
	v, err := r.loader.Load(ctx, spec)
	if err != nil {
		return nil, err
	}
	v.AddRef()
	if err := SelfTest(v); err != nil {
		v.ReleaseRef()
		return nil, fmt.Errorf("%s failed its self-test: %w", spec.Use, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		v.ReleaseRef()
		return nil, errors.New("registry is closed")
	}
	if i := slices.IndexFunc(r.loaded, func(l *policy.Version) bool { return interchangeable(l, v) }); i >= 0 && spec.Observe == nil {
		v.ReleaseRef()
		return r.loaded[i], nil
	}
	r.loaded = append(r.loaded, v)
	return v, nil
}

// interchangeable reports whether two versions behave identically.
func interchangeable(a, b *policy.Version) bool {
	return a.Name == b.Name && a.ID == b.ID && a.OnFault == b.OnFault && slices.Equal(a.Grants, b.Grants)
}

// Activate makes loaded versions active under their names, in one step. Rollback returns to
// the previously active ones.
func (r *Registry) Activate(versions ...*policy.Version) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := map[string]*slot{}
	for name, s := range r.slots {
		kept := *s
		next[name] = &kept
	}
	for _, v := range versions {
		if !slices.Contains(r.loaded, v) {
			return fmt.Errorf("policy %s %s is not loaded", v.Name, v.ID)
		}
		s := next[v.Name]
		if s == nil {
			next[v.Name] = &slot{current: v}
			continue
		}
		if s.current != v {
			s.last, s.current = s.current, v
		}
	}
	return r.swap(next)
}

// Rollback reactivates the previously active version of a policy, and returns it.
func (r *Registry) Rollback(name string) (*policy.Version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.slots[name]
	if s == nil || s.last == nil {
		return nil, fmt.Errorf("policy %s has no previous version to roll back to", name)
	}
	next := maps.Clone(r.slots)
	next[name] = &slot{current: s.last, last: s.current}
	return s.last, r.swap(next)
}

// swap activates a set of slots.
func (r *Registry) swap(next map[string]*slot) error {
	versions := make([]*policy.Version, 0, len(next))
	for _, s := range next {
		versions = append(versions, s.current)
	}
	set, err := policy.NewSet(versions...)
	if err != nil {
		return err
	}
	r.slots = next
	r.active.Swap(set)
	for _, v := range versions {
		r.log.Debug("policy activated", "policy", v.Name, "version", v.ID, "digest", v.Digest)
	}
	return nil
}

// Unload releases a version that is not active. Evaluations that use it continue with it.
func (r *Registry) Unload(v *policy.Version) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.loaded, v)
	if i < 0 {
		return fmt.Errorf("policy %s %s is not loaded", v.Name, v.ID)
	}
	if s := r.slots[v.Name]; s != nil && s.current == v {
		return fmt.Errorf("policy %s %s is active; activate another version first, or roll it back", v.Name, v.ID)
	} else if s != nil && s.last == v {
		s.last = nil
	}
	r.loaded = slices.Delete(r.loaded, i, i+1)
	v.ReleaseRef()
	return nil
}

// Loaded returns the loaded versions in the order of loading.
func (r *Registry) Loaded() []*policy.Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.loaded)
}

// LoadDir loads every bundle and module in a directory. If any fails, it loads none and
// returns all errors.
func (r *Registry) LoadDir(ctx context.Context, dir string) ([]*policy.Version, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var versions []*policy.Version
	var errs []error
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !isPolicy(path, e) {
			continue
		}
		v, err := r.Load(ctx, Spec{Use: path})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		versions = append(versions, v)
	}
	if len(errs) == 0 {
		return versions, nil
	}
	for _, v := range versions {
		if err := r.Unload(v); err != nil {
			r.log.DebugContext(ctx, "policy remains loaded", "reason", err) // it was active before
		}
	}
	return nil, errors.Join(errs...)
}

// isPolicy reports whether a directory entry is a policy: a directory with a manifest or a
// WebAssembly module. Executables require a manifest, so that no file runs merely because
// it is in the directory.
func isPolicy(path string, e fs.DirEntry) bool {
	if e.IsDir() {
		_, err := os.Stat(filepath.Join(path, bundle.ManifestFile))
		return err == nil
	}
	return filepath.Ext(path) == ".wasm"
}

// Close releases all versions. No policy is active afterwards.
func (r *Registry) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	r.active.Close()
	for _, v := range r.loaded {
		v.ReleaseRef()
	}
	r.loaded, r.slots = nil, nil
}
