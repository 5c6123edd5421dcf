package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/registry"
	"github.com/cede-scheduler/cede/plugins/wasm"
)

func TestLoadPolicy_ChecksVersionWithoutActivating(t *testing.T) {
	c := startServer(t)
	v := c.load("first", func(r *policy.LoadRequest) { r.Module = moduleOf("first", 700<<10) })
	if check := v.Checks["s1"]; !check.OK || check.Time == 0 || v.Size < 700<<10 {
		t.Errorf("%+v", v)
	}
	if c.role().Active != "" || c.activeVersion() != "" {
		t.Error("the version decides before it is activated")
	}
	sent := c.log.sent.Load()
	if sent != 3 {
		t.Errorf("%d chunks sent", sent)
	}
	again := c.load("first", func(r *policy.LoadRequest) { r.Module = moduleOf("first", 700<<10) })
	other := c.load("first", func(r *policy.LoadRequest) {
		r.Module, r.Config = moduleOf("first", 700<<10), []byte(`{"knob":2}`)
	})
	if again.ID != v.ID || again.ModifyIndex != v.ModifyIndex || other.ID == v.ID || c.log.sent.Load() != sent {
		t.Errorf("the module was sent again: %d chunks", c.log.sent.Load())
	}
	_, err := c.tryLoad("first", func(r *policy.LoadRequest) { r.Module, r.Name = moduleOf("first", 700<<10), "q" })
	c.expectError(err, apierror.CodeConflict, "as p", "unload p@")
	changed := func(r *policy.LoadRequest) { r.Module, r.OnFault = moduleOf("first", 700<<10), "default" }
	if better := c.load("first", changed); better.ID != v.ID || better.OnFault != "default" || !better.Checks["s1"].OK || c.log.sent.Load() != sent {
		t.Errorf("loaded again with another fault mode: %+v", better)
	}
	c.activate(v)
	_, err = c.tryLoad("first", func(r *policy.LoadRequest) { r.Module, r.OnFault = moduleOf("first", 700<<10), "deny" })
	c.expectError(err, apierror.CodeConflict, "is active with other grants")
}

func TestLoadPolicy_RejectsInvalidModuleBeforeSending(t *testing.T) {
	c := startServer(t)
	before := c.Snapshot().Index()
	_, err := c.tryLoad("broken")
	c.expectError(err, apierror.CodeInvalid, "cannot be compiled")
	_, err = c.tryLoad("first", func(r *policy.LoadRequest) { r.Config = []byte(`{"knob":10,"nob":1}`) })
	c.expectError(err, apierror.CodeInvalid, "knob: invalid value 10", "nob: unknown setting")
	_, err = c.tryLoad("first", func(r *policy.LoadRequest) { r.Module = moduleOf("first", policy.MaxModuleSize) })
	c.expectError(err, apierror.CodeTooLarge, "8 MiB")
	_, err = c.tryLoad("first", func(r *policy.LoadRequest) { r.Module, r.Executable = nil, "/bin/sh" })
	c.expectError(err, apierror.CodeInvalid, "not permitted")
	if len(c.Snapshot().PolicyVersions()) != 0 || c.log.sent.Load() != 0 || c.Snapshot().Index() != before {
		t.Error("a rejected module was written")
	}
	if n := c.shelf.open.Load(); n != 0 {
		t.Errorf("%d rejected modules still open", n)
	}
}

func TestLoadPolicy_ConcurrentLoads(t *testing.T) {
	c := startServer(t)
	const each = 4
	var wg sync.WaitGroup
	errs := make(chan error, 3*each)
	for _, mood := range []string{"first", "last", "third"} {
		for range each {
			wg.Go(func() {
				v, err := c.tryLoad(mood, func(r *policy.LoadRequest) { r.Module = moduleOf(mood, 300<<10) })
				if err == nil && !v.Checks["s1"].OK {
					err = errors.New(v.Checks["s1"].Error)
				}
				errs <- err
			})
		}
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if n := len(c.Snapshot().PolicyVersions()); n != 3 || c.log.sent.Load() != 6 {
		t.Errorf("%d versions, %d chunks", n, c.log.sent.Load())
	}
}

func TestLoadPolicy_ResumesAfterLostChunk(t *testing.T) {
	c := startServer(t)
	chunks, versions := 0, 0
	c.log.fails = func(cmd replication.Command) error {
		lost := false
		switch cmd.(type) {
		case *replication.PutChunk:
			chunks++
			lost = chunks == 2
		case *replication.LoadPolicy:
			versions++
			lost = versions == 1
		}
		if lost {
			return replication.ErrUnknownOutcome
		}
		return nil
	}
	large := func(r *policy.LoadRequest) { r.Module = moduleOf("first", 700<<10) }
	_, err := c.tryLoad("first", large)
	c.expectError(err, apierror.CodeUnavailable, "was not loaded", "not confirmed")
	if len(c.Snapshot().PolicyVersions()) != 0 {
		t.Error("an incomplete module has a version")
	}
	_, err = c.tryLoad("first", large)
	c.expectError(err, apierror.CodeUnknownOutcome, "not confirmed")
	v := c.load("first", large)
	if !v.Checks["s1"].OK || c.log.sent.Load() != 3 {
		t.Errorf("%+v after %d chunks", v.Checks, c.log.sent.Load())
	}
}

func TestLoadPolicy_RejectsModuleWithWrongDigest(t *testing.T) {
	c := startServer(t)
	v := c.load("first")
	apply := func(cmd replication.Command) *replication.Refusal {
		result, err := c.log.Apply(t.Context(), &replication.Entry{Time: 1, Command: cmd})
		if err != nil {
			t.Fatal(err)
		}
		return result.Err
	}
	wrong := bundle.Digest([]byte("something else"))
	forged := *v
	forged.ID, forged.Digest, forged.Checks = "sha256:"+strings.Repeat("0", 64), wrong, nil
	_ = apply(&replication.PutChunk{Digest: wrong, Data: moduleOf("last", 0)})
	if refusal := apply(&replication.LoadPolicy{Version: &forged}); refusal == nil {
		t.Error("a module with the wrong digest was accepted")
	}
	c.member.Modules.Replace(v.Digest, moduleOf("last", 0)) // the disk corrupts the module
	rotten := c.load("first", func(r *policy.LoadRequest) { r.Config = []byte(`{"knob":2}`) })
	if check := rotten.Checks["s1"]; !strings.Contains(check.Error, "damaged") {
		t.Errorf("%+v", check)
	}
	_, err := c.ActivatePolicy(t.Context(), "p", rotten.ID)
	c.expectError(err, apierror.CodeConflict, "damaged")
	c.member.Modules.Replace(v.Digest, moduleOf("first", 0)) // and is repaired
	if mended := c.load("first", func(r *policy.LoadRequest) { r.Config = []byte(`{"knob":2}`) }); !mended.Checks["s1"].OK {
		t.Errorf("checked again: %+v", mended.Checks)
	}
}

func TestLoadPolicy_RequiresSignatureIfConfigured(t *testing.T) {
	_, public, err := bundle.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key.pub")
	if err := os.WriteFile(key, public, 0o600); err != nil {
		t.Fatal(err)
	}
	roots, err := bundle.ReadRoots(key)
	if err != nil {
		t.Fatal(err)
	}
	c := startServer(t)
	v := c.load("first")
	c.activate(v)
	c.stop()
	c.start(func(_ *server.Config, o *registry.PolicyOptions) { o.RequireSignature, o.Roots = true, roots })
	c.waitFor("the unsigned version is refused", func() bool { return strings.Contains(c.ready(), "not signed") })
	c.waitEstablished()
	_, err = c.tryLoad("last")
	c.expectError(err, apierror.CodeInvalid, "not signed")
}

// Modules that return wrong results, loop, trap or write out of bounds do not affect the
// server.
func TestLoadPolicy_SurvivesHostileModules(t *testing.T) {
	host, err := wasm.NewHost(wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	c := startServer(t, func(_ *server.Config, o *registry.PolicyOptions) {
		o.Hosts[bundle.Wasm] = wasmHost{host}
		o.Limits = policy.Limits{Fuel: 1_000_000, FuelPerRow: 1000}
	})
	files, err := filepath.Glob("../../plugins/wasm/testdata/hostile/*.wasm")
	if err != nil || len(files) < 50 {
		t.Fatal(len(files), err)
	}
	refused := 0
	for i, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, err := c.LoadPolicy(t.Context(), policy.LoadRequest{Name: fmt.Sprintf("h%d", i), Module: code})
		if err != nil {
			refused++
			if code := apierror.CodeOf(err); code != apierror.CodeInvalid {
				t.Errorf("%s: %v", file, err)
			}
			continue
		}
		if !v.Checks["s1"].OK {
			refused++
			_, err := c.ActivatePolicy(t.Context(), v.Name, v.ID)
			c.expectError(err, apierror.CodeConflict, "rejected it")
		}
	}
	if refused < len(files)/2 {
		t.Errorf("%d of %d modules were refused", refused, len(files))
	}
	good, err := os.ReadFile("../../sdk/abi/testdata/guests/decay-c.wasm")
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.LoadPolicy(t.Context(), policy.LoadRequest{Name: "p", Module: good})
	if err != nil || !v.Checks["s1"].OK {
		t.Fatal("loading fails after the hostile modules:", v, err)
	}
	c.activate(v)
	c.fillNodes(1)
	c.setClusterPolicy()
	c.register(preemptorJob("j"))
	c.waitFor("it decides", func() bool { return c.running("j") == 1 })
	c.waitFor("the fuel is recorded", func() bool {
		st, err := c.PolicyStatus(t.Context(), "p")
		return err == nil && len(st.Decisions) > 0 && st.Decisions[0].Uses[0].Fuel > 0
	})
}

type wasmHost struct{ *wasm.Host }

func (h wasmHost) Load(ctx context.Context, b *bundle.Bundle, limits policy.Limits) (registry.Module, error) {
	m, err := h.Host.Load(ctx, b.Code, limits)
	if err != nil {
		return nil, err
	}
	return m, nil
}
