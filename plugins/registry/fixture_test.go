package registry_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	if triggers := map[string]bool{
		"traps": true,
		"late":  in.Now > time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano(),
		"waits": in.Preemptor.Waiting > 24*3600e9,
		"large": in.Rows.Len() > 30,
		"batch": in.Preemptor.JobType == "batch",
	}; triggers[g.behavior] {
		panic("on purpose")
	}
	return nil
}

func newLoader(t testing.TB, change ...func(*registry.Options)) (*registry.Loader, *fakeHost) {
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
	return registry.NewLoader(o), s
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

// load returns a version that passed its self-test.
func load(t testing.TB, l *registry.Loader, spec registry.Spec) *policy.Version {
	t.Helper()
	v, err := tested(t, l, spec)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// tested loads a version and tests it. The version is released at the end of the test,
// or at once if it fails.
func tested(t testing.TB, l *registry.Loader, spec registry.Spec) (*policy.Version, error) {
	t.Helper()
	v, err := l.Load(t.Context(), spec)
	if err != nil {
		return nil, err
	}
	v.AddRef()
	if err := registry.SelfTest(v); err != nil {
		v.ReleaseRef()
		return nil, err
	}
	t.Cleanup(v.ReleaseRef)
	return v, nil
}

func setOf(t testing.TB, versions ...*policy.Version) *policy.Set {
	t.Helper()
	set, err := policy.NewSet(versions...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}
