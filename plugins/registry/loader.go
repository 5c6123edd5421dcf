package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
)

// Module is a module that a host has loaded. Close lets go of it; instances
// that are out stay usable.
type Module interface {
	policy.Module
	Close()
}

// Host loads modules of one kind.
type Host interface {
	Load(ctx context.Context, b *bundle.Bundle, limits policy.Limits) (Module, error)
}

// Builtin finds a policy that is linked in, and what it is granted.
type Builtin func(name string) (m policy.Module, grants []string, ok bool)

// Options are what a Registry is made of.
type Options struct {
	Hosts   map[bundle.Kind]Host
	Builtin Builtin
	Roots   bundle.Roots
	// RequireSignature refuses bundles that no root has signed. Built-ins need none.
	RequireSignature bool
	// Limits are those of calls where a bundle sets none; the bundle's own count
	// only up to Most.
	Limits, MaxLimits policy.Limits
	Log               *slog.Logger
}

// Spec says which policy to load, and how the operator wants it run.
type Spec struct {
	Name    string         // empty: the policy's own
	Use     string         // a built-in's name, a module, or a bundle's folder
	Bundle  *bundle.Bundle // what Use names, where it was read already; nil: it is read
	Config  []byte         // JSON object
	Grants  []string
	OnFault policy.OnFault
	Observe func(policy.Call)
}

// Loader makes versions of what operators name. It keeps none.
type Loader struct{ o Options }

// NewLoader makes a loader.
func NewLoader(o Options) *Loader { return &Loader{o} }

// Load makes a version of what the spec names. Whoever asks holds it in a set or
// with Hold; when everybody has dropped it, its module is closed. It is not
// tested yet: a simulation shows what a policy does wrong, and harms nobody.
func (l *Loader) Load(ctx context.Context, spec Spec) (*policy.Version, error) {
	src := policy.Source{
		Name: spec.Name, Config: spec.Config, Grants: spec.Grants, OnFault: spec.OnFault, Observe: spec.Observe,
	}
	if m, grants, ok := l.o.Builtin(spec.Use); ok && spec.Bundle == nil {
		src.Module, src.Grants = m, union(grants, spec.Grants)
		if src.Name == "" {
			src.Name = spec.Use
		}
		return policy.NewVersion(src)
	}
	b, err := spec.bundle()
	if err != nil {
		return nil, err
	}
	if src.Name == "" {
		src.Name = b.Manifest.Name
	}
	m, err := l.module(ctx, b)
	if err != nil {
		return nil, err
	}
	src.Module, src.OnClosed = m, m.Close
	if src.Config, err = mergeConfig(b, spec.Config); err != nil {
		m.Close()
		return nil, err
	}
	v, err := policy.NewVersion(src)
	if err != nil {
		m.Close()
		return nil, err
	}
	if err := checkManifest(b, v, m); err != nil {
		v.AddRef()
		v.ReleaseRef()
		return nil, err
	}
	return v, nil
}

// checkManifest compares a version with its manifest.
func checkManifest(b *bundle.Bundle, v *policy.Version, m Module) error {
	if !b.HasManifest() {
		return nil
	}
	if err := b.Manifest.CheckModule(v.Hooks(), m.Settings()); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(b.Dir, bundle.ManifestFile), err)
	}
	return nil
}

// bundle is what the spec names, on disk.
func (s *Spec) bundle() (*bundle.Bundle, error) {
	if s.Bundle != nil {
		return s.Bundle, nil
	}
	b, err := bundle.Open(s.Use)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(s.Use, `/\`) && filepath.Ext(s.Use) == "" {
		return nil, &UnknownError{s.Use} // it looks like a name
	}
	return b, err
}

// UnknownError is a policy of which there is neither a built-in nor a file.
type UnknownError struct{ Policy string }

func (e *UnknownError) Error() string { return fmt.Sprintf("there is no policy named %q", e.Policy) }

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func (l *Loader) module(ctx context.Context, b *bundle.Bundle) (Module, error) {
	if l.o.RequireSignature || b.Signed() && len(l.o.Roots) > 0 {
		if _, err := l.o.Roots.Verify(b); err != nil {
			return nil, err
		}
	}
	limits, err := b.Manifest.Limits.Parse()
	if err != nil {
		return nil, err
	}
	host := l.o.Hosts[b.Manifest.Kind]
	if host == nil {
		return nil, fmt.Errorf("%s is a policy of kind %s, which is not run here", b.Path, b.Manifest.Kind)
	}
	m, err := host.Load(ctx, b, limits.WithDefaults(l.o.Limits).CappedAt(l.o.MaxLimits))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Path, err)
	}
	return m, nil
}
