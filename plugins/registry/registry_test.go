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

func TestLoad_DoesNotActivate(t *testing.T) {
	r, _ := newRegistry(t)
	v := load(t, r, registry.Spec{Use: module(t, "calm", "calm")})
	if activeID(r, "calm") != "" {
		t.Error("active before Activate")
	}
	if err := r.Activate(v); err != nil || activeID(r, "calm") != v.ID {
		t.Error("not active", err)
	}
	if again := load(t, r, registry.Spec{Use: module(t, "calm", "calm")}); again != v {
		t.Error("equal version was loaded twice")
	}
}

func TestLoad_RejectsFailedSelfTest(t *testing.T) {
	r, s := newRegistry(t)
	for behavior, want := range map[string]string{
		"broken":    "cannot be compiled",
		"nan":       "NaN",
		"traps":     "on purpose",
		"forgetful": "different answers",
	} {
		_, err := r.Load(t.Context(), registry.Spec{Use: module(t, behavior, behavior)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", behavior, err)
		}
	}
	if n := s.open.Load(); n != 0 {
		t.Errorf("%d rejected modules are still open", n)
	}
}

func TestLoad_ReportsUnknownPolicy(t *testing.T) {
	r, _ := newRegistry(t)
	_, err := r.Load(t.Context(), registry.Spec{Use: "gone"})
	if unknown, ok := errors.AsType[*registry.UnknownError](err); !ok || unknown.Policy != "gone" {
		t.Error(err)
	}
	if _, err := r.Load(t.Context(), registry.Spec{Use: "./gone.wasm"}); err == nil || !strings.Contains(err.Error(), "gone.wasm") {
		t.Error(err)
	}
	_, err = r.Load(t.Context(), registry.Spec{Use: module(t, "calm", "calm"), Config: []byte(`{"knob":10,"nob":1}`)})
	if err == nil || !strings.Contains(err.Error(), "knob: invalid value 10") || !strings.Contains(err.Error(), "nob: unknown setting") {
		t.Error(err)
	}
}

func TestRollback_ReactivatesPreviousVersion(t *testing.T) {
	r, _ := newRegistry(t)
	one := load(t, r, registry.Spec{Name: "p", Use: module(t, "a", "calm")})
	two := load(t, r, registry.Spec{Name: "p", Use: module(t, "b", "calmer")})
	if _, err := r.Rollback("p"); err == nil {
		t.Error("rolled back without a previous version")
	}
	for _, v := range []*policy.Version{one, two} {
		if err := r.Activate(v); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := r.Rollback("p"); err != nil || v != one || activeID(r, "p") != one.ID {
		t.Error("not rolled back", err)
	}
	if v, err := r.Rollback("p"); err != nil || v != two {
		t.Error("rollback cannot be reverted", err)
	}
}

func TestUnload_ClosesModuleAfterLastUse(t *testing.T) {
	r, s := newRegistry(t)
	v := load(t, r, registry.Spec{Name: "p", Use: module(t, "a", "calm")})
	if err := r.Activate(v); err != nil {
		t.Fatal(err)
	}
	if err := r.Unload(v); err == nil || !strings.Contains(err.Error(), "is active") {
		t.Error("active version was unloaded:", err)
	}
	pinned := r.Active().Pin()
	next := load(t, r, registry.Spec{Name: "p", Use: module(t, "b", "calmer")})
	if err := errors.Join(r.Activate(next), r.Unload(v)); err != nil {
		t.Fatal(err)
	}
	if s.open.Load() != 2 {
		t.Error("closed during an evaluation")
	}
	pinned.Unpin()
	if s.open.Load() != 1 {
		t.Errorf("%d modules are open, want the active one", s.open.Load())
	}
	if _, err := r.Rollback("p"); err == nil {
		t.Error("rolled back to an unloaded version")
	}
	r.Close()
	if s.open.Load() != 0 {
		t.Error("module is open after Close")
	}
}

func TestLoadDir_LoadsAllOrNone(t *testing.T) {
	r, s := newRegistry(t)
	dir := t.TempDir()
	put := func(name, behavior string) { write(t, filepath.Join(dir, name), "\x00asm\x01\x00\x00\x00"+behavior) }
	put("a.wasm", "calm")
	put("b.wasm", "calmer")
	put("readme.txt", "no policy")
	versions, err := r.LoadDir(t.Context(), dir)
	if err != nil || len(versions) != 2 || len(r.Loaded()) != 3 {
		t.Fatalf("%d versions, %d loaded, %v", len(versions), len(r.Loaded()), err)
	}
	for _, v := range versions {
		if err := r.Unload(v); err != nil {
			t.Fatal(err)
		}
	}
	put("c.wasm", "nan")
	put("d.wasm", "traps")
	_, err = r.LoadDir(t.Context(), dir)
	if err == nil || !strings.Contains(err.Error(), "c.wasm") || !strings.Contains(err.Error(), "d.wasm") {
		t.Error(err)
	}
	if len(r.Loaded()) != 1 || s.open.Load() != 0 {
		t.Errorf("%d loaded, %d open", len(r.Loaded()), s.open.Load())
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
	if err := errors.Join(err1, err2, b.Write(), b.Sign(key)); err != nil {
		t.Fatal(err)
	}
	return dir, roots
}

func TestLoad_RequiresSignatureIfConfigured(t *testing.T) {
	dir, roots := signed(t)
	strict := func(o *registry.Options) { o.RequireSignature, o.Roots = true, roots }
	r, _ := newRegistry(t, strict)
	load(t, r, registry.Spec{Use: dir})
	if _, err := r.Load(t.Context(), registry.Spec{Use: module(t, "calm", "calm")}); err == nil || !strings.Contains(err.Error(), "not signed") {
		t.Error(err)
	}
	_, others := signed(t)
	r, _ = newRegistry(t, func(o *registry.Options) { o.Roots = others })
	if _, err := r.Load(t.Context(), registry.Spec{Use: dir}); err == nil || !strings.Contains(err.Error(), "not one of") {
		t.Error("untrusted signature was accepted:", err)
	}
}

func TestLoad_UsesConfigAndLimitsOfManifest(t *testing.T) {
	dir, _ := signed(t)
	r, s := newRegistry(t, func(o *registry.Options) {
		o.Limits = policy.DefaultLimits
		o.MaxLimits = policy.Limits{Time: time.Second}
	})
	if v := load(t, r, registry.Spec{Use: dir}); string(v.Config()) != `{"knob":7}` {
		t.Errorf("configured with %s", v.Config())
	}
	if v := load(t, r, registry.Spec{Use: dir, Config: []byte(`{"knob":2}`)}); string(v.Config()) != `{"knob":2}` {
		t.Errorf("operator's setting was ignored: %s", v.Config())
	}
	want := policy.DefaultLimits
	want.Fuel, want.Time = 5000, time.Second
	if s.limits != want {
		t.Errorf("limits %+v, want %+v", s.limits, want)
	}
}

func TestActivate_IsAtomicUnderLoad(t *testing.T) {
	r, s := newRegistry(t)
	a := load(t, r, registry.Spec{Name: "p", Use: module(t, "a", "calm")})
	b := load(t, r, registry.Spec{Name: "p", Use: module(t, "b", "calmer")})
	if err := r.Activate(a); err != nil {
		t.Fatal(err)
	}
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
				set := r.Active().Pin()
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
		next := []*policy.Version{a, b}[i%2]
		if err := r.Activate(next); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	if s.open.Load() != 2 {
		t.Errorf("%d modules are open", s.open.Load())
	}
}
