package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
)

// A Module is a module loaded by a host. Close releases it; existing instances remain
// usable.
type Module interface {
	policy.Module
	Close()
}

// A Host loads modules of one kind.
type Host interface {
	Load(ctx context.Context, b *bundle.Bundle, limits policy.Limits) (Module, error)
}

// Builtin returns a built-in policy and its grants.
type Builtin func(name string) (m policy.Module, grants []string, ok bool)

// Options configure a Loader.
type Options struct {
	Hosts   map[bundle.Kind]Host
	Builtin Builtin
	Names   []string // of the built-in policies; Builtin returns them
	Older   []string // of earlier versions of their rules, which Builtin returns, too
	Roots   bundle.Roots
	// RequireSignature rejects bundles that no root has signed. Built-in policies are
	// exempt.
	RequireSignature bool
	// Limits bound calls if the bundle sets no limits. Limits of a bundle are capped at
	// MaxLimits.
	Limits, MaxLimits policy.Limits
}

// verify returns the ID of the key that signed a bundle. Its error names the setting that lists
// the trusted keys.
func (o *Options) verify(b *bundle.Bundle) (keyID string, err error) {
	if keyID, err = o.Roots.Verify(b); err != nil {
		return "", fmt.Errorf("%w; policy.roots of each server lists the trusted keys", err)
	}
	return keyID, nil
}

// A Spec selects a policy and how to run it.
type Spec struct {
	Name    string         // default: the name in the bundle
	Use     string         // name of a built-in policy, path of a module, or directory of a bundle
	Bundle  *bundle.Bundle // content of Use if it has been read; default: read it
	Config  []byte         // JSON object
	Grants  []string
	OnFault policy.OnFault
	Limits  policy.Limits // of a call; zero fields select those of the bundle
	Observe func(policy.Call)
}

// A Loader creates policy versions. It does not retain them.
type Loader struct{ o Options }

// NewLoader returns a loader.
func NewLoader(o Options) *Loader { return &Loader{o} }

// builtin returns the built-in policy with the given digest, or nil.
func (o *Options) builtin(digest string) policy.Module {
	for _, name := range slices.Concat(o.Names, o.Older) {
		if m, _, _ := o.Builtin(name); m.Digest() == digest {
			return m
		}
	}
	return nil
}

// load has the host of its kind load a bundle. Limits that the bundle does not set are those
// of the options.
func (o *Options) load(ctx context.Context, b *bundle.Bundle, limits policy.Limits) (Module, error) {
	if b.Manifest.Kind == bundle.Composition {
		return o.loadComposition(ctx, b)
	}
	host := o.Hosts[b.Manifest.Kind]
	if host == nil {
		return nil, fmt.Errorf("policies of kind %s are not run by this process", b.Manifest.Kind)
	}
	return host.Load(ctx, b, o.bounded(limits))
}

// bounded returns the limits of calls of a policy that sets some itself.
func (o *Options) bounded(own policy.Limits) policy.Limits {
	return own.WithDefaults(o.Limits).WithDefaults(policy.DefaultLimits).CappedAt(o.MaxLimits).Bounded()
}

// Load creates a version of the selected policy. The caller adds a reference, directly or
// by a set; once all references are released, the module is closed. Load does not test the
// version: a simulation shows faults of a policy without harm.
func (l *Loader) Load(ctx context.Context, spec Spec) (*policy.Version, error) {
	src := policy.Source{
		Name: spec.Name, Config: spec.Config, Grants: spec.Grants, OnFault: spec.OnFault, Observe: spec.Observe,
	}
	if m, grants, ok := l.o.Builtin(spec.Use); ok && spec.Bundle == nil {
		src.Module, src.Grants = m, union(grants, spec.Grants)
		src.Name = cmp.Or(src.Name, spec.Use)
		return policy.NewVersion(src)
	}
	b, err := spec.bundle()
	if err != nil {
		return nil, err
	}
	src.Name = cmp.Or(src.Name, b.Manifest.Name)
	m, err := l.module(ctx, b, spec.Limits)
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

// checkManifest returns an error if the version contradicts its manifest.
func checkManifest(b *bundle.Bundle, v *policy.Version, m Module) error {
	if !b.HasManifest() {
		return nil
	}
	if err := b.Manifest.CheckModule(v.Hooks(), m.Settings()); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(b.Dir, bundle.ManifestFile), err)
	}
	return nil
}

// bundle reads the selected bundle.
func (s *Spec) bundle() (*bundle.Bundle, error) {
	if s.Bundle != nil {
		return s.Bundle, nil
	}
	b, err := bundle.Open(s.Use)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(s.Use, `/\`) && filepath.Ext(s.Use) == "" {
		return nil, &UnknownError{s.Use} // it is not a path
	}
	return b, err
}

// An UnknownError means that a policy is neither built in nor a file.
type UnknownError struct{ Policy string }

func (e *UnknownError) Error() string { return fmt.Sprintf("unknown policy %q", e.Policy) }

// union returns the elements of a and b, sorted, each once.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// module verifies the signature of a bundle and has the host of its kind load it. Fields of
// own replace the limits of the bundle.
func (l *Loader) module(ctx context.Context, b *bundle.Bundle, own policy.Limits) (Module, error) {
	if l.o.RequireSignature || b.Signed() && len(l.o.Roots) > 0 {
		if _, err := l.o.verify(b); err != nil {
			return nil, err
		}
	}
	limits, err := b.Manifest.Limits.Parse()
	if err != nil {
		return nil, err
	}
	m, err := l.o.load(ctx, b, own.WithDefaults(limits))
	if err != nil {
		return nil, prefixed(b.Named(), err)
	}
	return m, nil
}
