package registry_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/registry"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// fakeHost loads modules whose content after the magic number names the behavior of the
// policy.
type fakeHost struct {
	mu     sync.Mutex
	limits policy.Limits
	open   atomic.Int64
}

func (s *fakeHost) Load(_ context.Context, b *bundle.Bundle, limits policy.Limits) (registry.Module, error) {
	s.mu.Lock()
	s.limits = limits
	s.mu.Unlock()
	behavior := string(b.Code[8:])
	if behavior == "broken" {
		return nil, errors.New("cannot be compiled")
	}
	s.open.Add(1)
	m := &fakeModule{fakeHost: s, behavior: behavior}
	m.Module = policy.Native(b.Manifest.Digest, func() sdk.Policy { return &guest{behavior: behavior} })
	return m, nil
}

type fakeModule struct {
	policy.Module
	fakeHost *fakeHost
	behavior string
	once     sync.Once
}

func (m *fakeModule) Close() { m.once.Do(func() { m.fakeHost.open.Add(-1) }) }

// guest scores victims with the given behavior.
type guest struct {
	behavior string
	calls    float64
}

func (g *guest) Info() sdk.Info { return sdk.Info{Name: g.behavior, Delta: 10} }

func (g *guest) Settings() []sdk.Setting {
	return []sdk.Setting{{Name: "knob", Kind: sdk.Integer, Default: "1", Limits: sdk.Between(0, 9)}}
}

func (g *guest) Configure(*sdk.Config) error { return nil }

func (g *guest) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	g.calls++
	for i := range out.Score {
		switch g.behavior {
		case "nan":
			out.Score[i] = float64(0) / (out.Score[i] - out.Score[i])
		case "forgetful":
			out.Score[i] = g.calls
		}
	}
	if g.behavior == "traps" {
		panic("on purpose")
	}
	return nil
}

func newRegistry(t testing.TB, change ...func(*registry.Options)) (*registry.Registry, *fakeHost) {
	t.Helper()
	s := &fakeHost{}
	o := registry.Options{
		Hosts: map[bundle.Kind]registry.Host{bundle.Wasm: s},
		Builtin: func(name string) (policy.Module, []string, bool) {
			return policy.Native("sha256:rules", func() sdk.Policy { return rules.New() }), nil, name == policy.DefaultName
		},
	}
	for _, c := range change {
		c(&o)
	}
	r, err := registry.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, s
}

// module writes a module with the given behavior and returns its path.
func module(t testing.TB, name, behavior string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".wasm")
	write(t, path, "\x00asm\x01\x00\x00\x00"+behavior)
	return path
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, r *registry.Registry, spec registry.Spec) *policy.Version {
	t.Helper()
	v, err := r.Load(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// activeID returns the ID of the active version of a policy.
func activeID(r *registry.Registry, name string) string {
	set := r.Active().Pin()
	defer set.Unpin()
	v, err := set.Select(name, "")
	if err != nil {
		return ""
	}
	return v.ID
}
