package registry_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/registry"
)

func TestSelfTest_RejectsBrokenPolicies(t *testing.T) {
	l, s := newLoader(t)
	for behavior, want := range map[string]string{
		"broken":    "cannot be compiled",
		"nan":       "NaN",
		"traps":     "on purpose",
		"forgetful": "different answers",
	} {
		_, err := tested(t, l, registry.Spec{Use: module(t, behavior, behavior)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", behavior, err)
		}
	}
	if n := s.open.Load(); n != 0 {
		t.Errorf("%d rejected modules are still open", n)
	}
}

// A policy that behaves well when it is loaded, and not later, must not be loaded.
func TestSelfTest_RejectsTimeBombs(t *testing.T) {
	l, _ := newLoader(t)
	for _, behavior := range []string{"late", "waits", "large", "batch"} {
		_, err := tested(t, l, registry.Spec{Use: module(t, behavior, behavior)})
		if err == nil || !strings.Contains(err.Error(), "on purpose") {
			t.Errorf("%s: %v", behavior, err)
		}
	}
}

func TestLoad_ReportsUnknownPolicy(t *testing.T) {
	l, _ := newLoader(t)
	_, err := l.Load(t.Context(), registry.Spec{Use: "gone"})
	if unknown, ok := errors.AsType[*registry.UnknownError](err); !ok || unknown.Policy != "gone" {
		t.Error(err)
	}
	if _, err := l.Load(t.Context(), registry.Spec{Use: "./gone.wasm"}); err == nil || !strings.Contains(err.Error(), "gone.wasm") {
		t.Error(err)
	}
	_, err = l.Load(t.Context(), registry.Spec{Use: module(t, "calm", "calm"), Config: []byte(`{"knob":10,"nob":1}`)})
	if err == nil || !strings.Contains(err.Error(), "knob: invalid value 10") || !strings.Contains(err.Error(), "nob: unknown setting") {
		t.Error(err)
	}
}

// signed writes a signed bundle and returns its directory and its root.
func signed(t *testing.T) (dir string, roots bundle.Roots) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "m.wasm"), "\x00asm\x01\x00\x00\x00calm")
	write(t, filepath.Join(dir, "policy.yaml"), "version: 1\nname: calm\nkind: wasm\nmodule: m.wasm\nabi: {min: \"1.0\"}\nconfig: {knob: 7}\nlimits: {fuel: 5000, time: 9s}\n")
	b, err := bundle.Rebuild(dir)
	if err != nil {
		t.Fatal(err)
	}
	private, public, err := bundle.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "key"), string(private))
	write(t, filepath.Join(dir, "key.pub"), string(public))
	key, err1 := bundle.ReadPrivateKey(filepath.Join(dir, "key"))
	roots, err2 := bundle.ReadRoots(filepath.Join(dir, "key.pub"))
	if err := errors.Join(err1, err2, b.Write(nil), b.Sign(key)); err != nil {
		t.Fatal(err)
	}
	return dir, roots
}

func TestLoad_RequiresSignatureIfConfigured(t *testing.T) {
	dir, roots := signed(t)
	strict := func(o *registry.Options) { o.RequireSignature, o.Roots = true, roots }
	l, _ := newLoader(t, strict)
	load(t, l, registry.Spec{Use: dir})
	if _, err := l.Load(t.Context(), registry.Spec{Use: module(t, "calm", "calm")}); err == nil || !strings.Contains(err.Error(), "is not signed; run `cede policy sign P --key FILE`; policy.roots of each server lists the trusted keys") {
		t.Error(err)
	}
	_, others := signed(t)
	l, _ = newLoader(t, func(o *registry.Options) { o.Roots = others })
	if _, err := l.Load(t.Context(), registry.Spec{Use: dir}); err == nil || !strings.Contains(err.Error(), "not one of the 1 trusted keys; policy.roots of each server lists the trusted keys") {
		t.Error("untrusted signature was accepted:", err)
	}
}

func TestLoad_UsesConfigAndLimitsOfManifest(t *testing.T) {
	dir, _ := signed(t)
	l, s := newLoader(t, func(o *registry.Options) {
		o.Limits = policy.DefaultLimits
		o.MaxLimits = policy.Limits{Time: time.Second}
	})
	if v := load(t, l, registry.Spec{Use: dir}); string(v.Config()) != `{"knob":7}` {
		t.Errorf("configured with %s", v.Config())
	}
	if v := load(t, l, registry.Spec{Use: dir, Config: []byte(`{"knob":2}`)}); string(v.Config()) != `{"knob":2}` {
		t.Errorf("operator's setting was ignored: %s", v.Config())
	}
	want := policy.DefaultLimits
	want.Fuel, want.Time = 5000, time.Second
	if s.limits != want {
		t.Errorf("limits %+v, want %+v", s.limits, want)
	}
	// A controller has the limits of the pool's version, within its own.
	load(t, l, registry.Spec{Use: dir, Limits: policy.Limits{Fuel: 9000, Memory: 1 << 20, Time: time.Hour}})
	want.Fuel, want.Memory = 9000, 1<<20
	if s.limits != want {
		t.Errorf("limits %+v, want %+v", s.limits, want)
	}
}

func TestActiveSet_SwapsAtomicallyUnderLoad(t *testing.T) {
	l, s := newLoader(t)
	base := load(t, l, registry.Spec{Use: policy.DefaultName})
	a := load(t, l, registry.Spec{Name: "p", Use: module(t, "a", "calm")})
	b := load(t, l, registry.Spec{Name: "p", Use: module(t, "b", "calmer")})
	active := policy.NewActiveSet(setOf(t, base, a))
	t.Cleanup(active.Close)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				set := active.Pin()
				v, err := set.Select("p", "")
				if err == nil {
					err = registry.SelfTest(v)
				}
				if err != nil {
					t.Error(err)
				}
				set.Unpin()
			}
		})
	}
	for i := range 100 {
		active.Swap(setOf(t, base, []*policy.Version{a, b}[i%2]))
	}
	close(stop)
	wg.Wait()
	if s.open.Load() != 2 {
		t.Errorf("%d modules are open", s.open.Load())
	}
}
