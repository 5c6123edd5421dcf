package wasm_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	"github.com/cede-scheduler/cede/plugins/wasm"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func TestModule_IsReleasedWithLastInstance(t *testing.T) {
	m := load(t, host(t, wasm.Options{}), hostileGuest(t, "memory_mover"), policy.Limits{})
	config := configuration(t, m, "")
	a, err := m.Start(config)
	check(t, err)
	b, err := m.Start(config)
	check(t, err)
	m.Close()
	m.Close()
	if _, err := m.Start(config); err == nil || !strings.Contains(err.Error(), "hostile: load: module was closed (load it again)") {
		t.Errorf("closed module started: %v", err)
	}
	a.Close()
	a.Close()
	if n, freed := wasm.Live(m); n != 1 || freed {
		t.Errorf("%d instances, freed is %t", n, freed)
	}
	var out sdk.Selection
	out.Reset()
	if err := b.SelectVictims(hosttest.UniformCandidates(2, 3), &out); err != nil || out.Len() != 2 {
		t.Errorf("last instance stopped working: %v", err)
	}
	b.Close()
	if n, freed := wasm.Live(m); n != 0 || !freed {
		t.Errorf("%d instances, freed is %t", n, freed)
	}
	if err := b.SelectVictims(hosttest.UniformCandidates(2, 3), &out); err == nil || !strings.Contains(err.Error(), "instance was closed") {
		t.Errorf("closed instance returned an answer: %v", err)
	}
}

func TestLoad_ReturnsSeparateModules(t *testing.T) {
	h := host(t, wasm.Options{})
	code := hostileGuest(t, "memory_mover")
	a, b := load(t, h, code, policy.Limits{}), load(t, h, code, policy.Limits{Memory: 8 << 20})
	if a.Digest() != b.Digest() || !strings.HasPrefix(a.Digest(), "sha256:") || len(a.Digest()) != len("sha256:")+64 {
		t.Errorf("digests %s and %s", a.Digest(), b.Digest())
	}
	a.Close()
	in := start(t, b, "")
	var out sdk.Selection
	out.Reset()
	check(t, in.SelectVictims(hosttest.UniformCandidates(2, 3), &out))
}

// The memory of a module never shrinks, so an instance that holds much is discarded after
// the call, whose answer is valid.
func TestInstance_WithMuchMemoryIsDiscarded(t *testing.T) {
	m := load(t, host(t, wasm.Options{}), hostileGuest(t, "memory_keeper"), policy.Limits{})
	v, err := policy.NewVersion(policy.Source{Name: "hostile", Module: m})
	check(t, err)
	v.AddRef()
	in, err := v.Acquire()
	check(t, err)
	var out sdk.Selection
	out.Reset()
	if err := in.SelectVictims(hosttest.UniformCandidates(2, 3), &out); err != nil || out.Len() != 2 || in.Alive() {
		t.Errorf("%v, %d options, alive %t", err, out.Len(), in.Alive())
	}
	v.Release(in)
	if n, _ := wasm.Live(m); n != 0 {
		t.Errorf("%d instances remain", n)
	}
	v.ReleaseRef()
}

func TestInstance_CallsDoNotAllocate(t *testing.T) {
	in := start(t, load(t, host(t, wasm.Options{}), hostileGuest(t, "scribble"), policy.Limits{}), "")
	q := hosttest.UniformCandidates(8, 8)
	var out sdk.Selection
	if n := testing.AllocsPerRun(100, func() {
		out.Reset()
		if err := in.SelectVictims(q, &out); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestInstance_ReportsMissingHook(t *testing.T) {
	in := start(t, load(t, host(t, wasm.Options{}), hostileGuest(t, "scribble"), policy.Limits{}), "")
	for want, err := range map[string]error{
		"the policy does not implement PriorityDelta": in.PriorityDelta(hosttest.UniformCandidates(1, 1), make([]int32, 1), &sdk.Recheck{}),
		"the policy does not implement ScoreVictims":  in.ScoreVictims(hosttest.UniformCandidates(1, 1), &sdk.VictimScores{}),
		"the policy does not implement ScoreOptions":  in.ScoreOptions(&sdk.Options{}, &sdk.OptionScores{}),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

func TestLoad_ChecksSizeFirst(t *testing.T) {
	h := host(t, wasm.Options{})
	code := make([]byte, 200<<20)
	copy(code, "\x00asm\x01\x00\x00\x00")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := h.Load(t.Context(), code, policy.Limits{})
	runtime.ReadMemStats(&after)
	fault := new(policy.Error)
	if !errors.As(err, &fault) || fault.Fault != policy.FaultLimit ||
		!strings.Contains(err.Error(), "policy module: load: module has 200 MiB: must be at most 8 MiB (strip names") {
		t.Errorf("got %v", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

func TestLoad_RejectsTruncatedModules(t *testing.T) {
	h := host(t, wasm.Options{})
	code := hostileGuest(t, "scribble")
	for n := range code {
		m, err := h.Load(t.Context(), code[:n], policy.Limits{})
		fault := new(policy.Error)
		if !errors.As(err, &fault) || fault.Fault != policy.FaultABI || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d bytes: %v, %v", n, m, err)
		}
	}
}

func TestLoad_RejectsOtherFiles(t *testing.T) {
	h := host(t, wasm.Options{})
	for code, want := range map[string]string{
		"":                           "malformed module: not a WebAssembly module",
		"#!/bin/sh\n":                "malformed module: not a WebAssembly module",
		"\x00asm\x0d\x00\x01\x00abc": "a WebAssembly component",
	} {
		if _, err := h.Load(t.Context(), []byte(code), policy.Limits{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", code, err, want)
		}
	}
}

func TestNewHost_RequiresPrivateCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	code := hostileGuest(t, "scribble")
	for range 2 {
		load(t, host(t, wasm.Options{CacheDir: dir}), code, policy.Limits{})
	}
	entries, err := filepath.Glob(dir + "/wazero-*/*")
	if err != nil || len(entries) != 1 {
		t.Fatalf("cache holds %q, %v", entries, err)
	}
	// Files that cannot be replaced are reported.
	check(t, os.Remove(entries[0]))
	check(t, os.MkdirAll(filepath.Join(entries[0], "folder"), 0o700))
	_, err = host(t, wasm.Options{CacheDir: dir}).Load(t.Context(), code, policy.Limits{})
	if err == nil || !strings.Contains(err.Error(), "cache of compiled policies is damaged") || !strings.Contains(err.Error(), "remove the files in "+dir) {
		t.Errorf("cache that cannot be repaired: %v", err)
	}
	check(t, os.Chmod(dir, 0o777))
	if _, err := wasm.NewHost(wasm.Options{CacheDir: dir}); err == nil || !strings.Contains(err.Error(), "run chmod go-w "+dir) {
		t.Errorf("cache that other users can write to: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o600))
	if _, err := wasm.NewHost(wasm.Options{CacheDir: file}); err == nil {
		t.Error("file was accepted as a directory")
	}
}

// A damaged file of the cache is named in the log and replaced. The engine alone would jump
// to any address that a damaged table of functions contains.
func TestLoad_ReplacesDamagedCode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	decide := func() string {
		var logged bytes.Buffer
		h := host(t, wasm.Options{CacheDir: dir, Log: slog.New(slog.NewTextHandler(&logged, nil))})
		var out sdk.Selection
		out.Reset()
		if err := start(t, load(t, h, hostileGuest(t, "memory_mover"), policy.Limits{}), "").SelectVictims(hosttest.UniformCandidates(1, 3), &out); err != nil || out.Len() != 1 {
			t.Errorf("%d options, %v", out.Len(), err)
		}
		return logged.String()
	}
	if log := decide() + decide(); log != "" {
		t.Errorf("undamaged: %s", log)
	}
	files, err := filepath.Glob(dir + "/*/*")
	if err != nil || len(files) != 2 {
		t.Fatalf("the cache holds %q, %v; want the code and its record", files, err)
	}
	for _, file := range files {
		whole, err := os.ReadFile(file)
		check(t, err)
		damages := map[string][]byte{"truncated to 0": {}, "truncated to half": whole[:len(whole)/2], "zeroed": make([]byte, len(whole)), "rubbish": []byte("rubbish")}
		for _, at := range []int{0, 7, 16, 20, 30, 44, len(whole) / 2, len(whole) - 1} { // header, table of functions, code, tables after it
			flipped := slices.Clone(whole)
			flipped[at] ^= 4
			damages[fmt.Sprint("bit flipped at ", at)] = flipped
		}
		for damage, content := range damages {
			check(t, os.WriteFile(file, content, 0o600))
			if log := decide(); !strings.Contains(log, "damaged") || !strings.Contains(log, filepath.Base(file)) && strings.Contains(file, "wazero") {
				t.Errorf("%s, %s: log %q", file, damage, log)
			}
			if anew, err := os.ReadFile(file); err != nil || !bytes.Equal(anew, whole) {
				t.Fatalf("%s, %s: not replaced (%v)", file, damage, err)
			}
		}
		check(t, os.Remove(file))
		decide()
		if anew, err := os.ReadFile(file); err != nil || !bytes.Equal(anew, whole) {
			t.Errorf("%s, removed: not replaced (%v)", file, err)
		}
	}
	if left, err := filepath.Glob(dir + "/new-*"); err != nil || len(left) > 0 {
		t.Errorf("%q remain, %v", left, err)
	}
}

// Sets are swapped while searches run. No call fails, and no instance remains.
func TestModule_CanBeSwappedUnderLoad(t *testing.T) {
	h := host(t, wasm.Options{})
	codes := [][]byte{hostileGuest(t, "scribble"), hostileGuest(t, "memory_mover")}
	rules := coretest.Policies().Default()
	y := newYard(t, "")
	var modules []*wasm.Module
	next := func(i int) *policy.Set {
		m, err := h.Load(t.Context(), codes[i%2], policy.Limits{})
		check(t, err)
		modules = append(modules, m)
		v, err := policy.NewVersion(policy.Source{Name: "hostile", Module: m, OnClosed: m.Close})
		check(t, err)
		set, err := policy.NewSet(rules, v)
		check(t, err)
		return set
	}
	active := policy.NewActiveSet(next(0))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				set := active.Pin()
				v, err := set.Select("hostile", "")
				if err != nil {
					t.Error(err)
				} else if found, err := y.find(v, rules); err != nil || len(found) != 2 {
					t.Errorf("found %q, %v", found, err)
				}
				set.Unpin()
			}
		})
	}
	for i := range soak.Count(30, 1000) {
		active.Swap(next(i + 1))
	}
	close(done)
	wg.Wait()
	active.Swap(coretest.Policies())
	for i, m := range modules {
		if n, freed := wasm.Live(m); n != 0 || !freed {
			t.Fatalf("module %d: %d instances remain, freed is %t", i, n, freed)
		}
	}
}

// Faults leak nothing, however often they occur.
func TestHostile_LeaksNothing(t *testing.T) {
	h := host(t, wasm.Options{})
	names := []string{"trap_select", "exit", "trap_last_words", "status_17", "scribble_all", "pick_twice", "memory_keeper", "alloc_odd", "start_trap", "configure_trap"}
	if soak.Full() {
		names = slices.Sorted(maps.Keys(hostile))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { repeatHostile(t, h, name) })
	}
}

// repeatHostile loads and calls a guest repeatedly.
func repeatHostile(t *testing.T, h *wasm.Host, name string) {
	rules := coretest.Policies().Default()
	y := newYard(t, "")
	code := hostileGuest(t, name)
	least := hostile[name].limits.WithDefaults(limits)
	least.Fuel, least.FuelPerRow = min(least.Fuel, 50_000), min(least.FuelPerRow, 100) // guests that spin should end soon
	round := func() {
		m, err := h.Load(t.Context(), code, least)
		if err != nil {
			return
		}
		defer m.Close()
		v, err := policy.NewVersion(policy.Source{Name: "hostile", Module: m})
		if err != nil {
			return
		}
		v.AddRef()
		for range 10 {
			_, _ = y.find(v, rules)
		}
		v.ReleaseRef()
		if n, _ := wasm.Live(m); n != 0 {
			t.Fatalf("%d instances remain", n)
		}
	}
	for range 3 {
		round()
	}
	before := heap()
	rounds := soak.Count(20, 1000) // of ten searches each
	for range rounds {
		round()
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("%d bytes more after %d rounds", grown, rounds)
	}
}

// heap returns the live heap in bytes.
func heap() int64 {
	var m runtime.MemStats
	for range 3 { // objects with finalizers are freed in a later round
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
