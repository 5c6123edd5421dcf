package registry_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/registry"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

func policyHost(t *testing.T, change ...func(*registry.PolicyOptions)) (*registry.PolicyHost, *fakeHost) {
	t.Helper()
	s := &fakeHost{}
	o := registry.PolicyOptions{
		Options: registry.Options{
			Hosts: map[bundle.Kind]registry.Host{bundle.Wasm: s},
			Builtin: func(name string) (policy.Module, []string, bool) {
				return policy.Native("sha256:rules", func() sdk.Policy { return rules.New() }), nil, name == policy.DefaultName
			},
			Names: []string{policy.DefaultName},
		},
	}
	for _, c := range change {
		c(&o)
	}
	h, err := registry.NewPolicyHost(o)
	if err != nil {
		t.Fatal(err)
	}
	return h, s
}

// moduleOf returns a module with the given behavior.
func moduleOf(behavior string) []byte { return []byte("\x00asm\x01\x00\x00\x00" + behavior) }

// contents returns the files of a signed bundle in the form of a client's request.
func contents(t *testing.T, dir string) policy.LoadRequest {
	t.Helper()
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, signature, err := b.Contents()
	if err != nil {
		t.Fatal(err)
	}
	return policy.LoadRequest{Module: b.Code, Manifest: manifest, Signature: signature}
}

func describe(t *testing.T, h *registry.PolicyHost, r policy.LoadRequest) *model.PolicyVersion {
	t.Helper()
	v, err := h.Describe(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDescribe_ReturnsResultingVersion(t *testing.T) {
	h, s := policyHost(t)
	module := moduleOf("calm")
	v := describe(t, h, policy.LoadRequest{Name: "p", Module: module, Config: []byte(` {"knob": 7}`), OnFault: "default"})
	want := bundle.Digest(module)
	if v.Name != "p" || v.Kind != model.PolicyWasm || v.Digest != want || v.Size != int64(len(module)) ||
		string(v.Config) != `{"knob":7}` || v.OnFault != "default" || v.Signer != "" || v.Limits.Fuel != policy.DefaultLimits.Fuel {
		t.Errorf("%+v", v)
	}
	if own := describe(t, h, policy.LoadRequest{Module: module}); own.Name != "calm" || string(own.Config) != `{"knob":1}` || own.ID == v.ID {
		t.Errorf("module without manifest: %+v", own)
	}
	if b := describe(t, h, policy.LoadRequest{Builtin: "default", Name: "mine"}); b.Kind != model.PolicyBuiltin || b.Size != 0 || b.Name != "mine" {
		t.Errorf("built in: %+v", b)
	}
	if n := s.open.Load(); n != 0 {
		t.Errorf("%d modules are still open", n)
	}
}

func TestDescribe_ReportsEveryProblem(t *testing.T) {
	h, s := policyHost(t)
	for _, c := range []struct {
		request policy.LoadRequest
		want    []string
	}{
		{policy.LoadRequest{}, []string{"is required: 0 given"}},
		{
			policy.LoadRequest{
				Name: "No Good", Module: moduleOf("calm"), Builtin: "default", Grants: []string{"all"}, OnFault: "shrug", Config: []byte("3"),
			},
			[]string{"is required: 2 given", `"No Good"`, `"all"`, `"shrug"`, "must be an object"},
		},
		{policy.LoadRequest{Module: moduleOf("calm"), Config: []byte(`{"knob":10,"nob":1}`)}, []string{"knob: invalid value 10", "nob: unknown setting"}},
		{policy.LoadRequest{Module: []byte("#!/bin/sh")}, []string{"not a WebAssembly module"}},
		{policy.LoadRequest{Module: moduleOf("broken")}, []string{"cannot be compiled"}},
		{policy.LoadRequest{Module: append(moduleOf("calm"), make([]byte, policy.MaxModuleSize)...)}, []string{"8 MiB"}},
		{policy.LoadRequest{Builtin: "gone"}, []string{"unknown built-in policy", "default"}},
		{policy.LoadRequest{Executable: "gone"}, []string{"permits none"}},
		{policy.LoadRequest{Module: moduleOf("calm"), Signature: []byte("{}")}, []string{"but not the policy.yaml"}},
		{policy.LoadRequest{Module: moduleOf("calm"), Manifest: []byte("name: [")}, []string{"policy.yaml"}},
	} {
		_, err := h.Describe(t.Context(), c.request)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want %q: %v", want, err)
			}
		}
	}
	if n := s.open.Load(); n != 0 {
		t.Errorf("%d refused modules are still open", n)
	}
}

func TestDescribe_UsesManifestOfRequest(t *testing.T) {
	dir, roots := signed(t)
	h, _ := policyHost(t, func(o *registry.PolicyOptions) { o.RequireSignature, o.Roots = true, roots })
	r := contents(t, dir)
	v := describe(t, h, r)
	if v.Name != "calm" || string(v.Config) != `{"knob":7}` || v.Limits.Fuel != 5000 || v.Limits.Time != 9e9 || v.Signer != bundle.KeyID(roots[0]) {
		t.Errorf("%+v", v)
	}
	for want, change := range map[string]func(*policy.LoadRequest){
		"is not signed":               func(r *policy.LoadRequest) { r.Signature = nil },
		"not signed":                  func(r *policy.LoadRequest) { r.Manifest, r.Signature = nil, nil },
		"does not match its manifest": func(r *policy.LoadRequest) { r.Module = moduleOf("calmer") },
		"was made for another content of policy.yaml": func(r *policy.LoadRequest) { r.Manifest = append([]byte("# changed\n"), r.Manifest...) },
	} {
		altered := r
		change(&altered)
		if _, err := h.Describe(t.Context(), altered); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

func TestOpen_TestsVersionAndEnforcesOptions(t *testing.T) {
	h, s := policyHost(t)
	v := describe(t, h, policy.LoadRequest{Module: moduleOf("calm")})
	opened, err := h.Open(t.Context(), v, moduleOf("calm"))
	if err != nil || opened.ID != v.ID || opened.OnFault != policy.AsConfigured {
		t.Fatal(opened, err)
	}
	opened.AddRef()
	opened.ReleaseRef()
	if _, err := h.Open(t.Context(), v, moduleOf("calmer")); err == nil || !strings.Contains(err.Error(), "the version expects") {
		t.Error("module with another digest was opened:", err)
	}
	for behavior, want := range map[string]string{"nan": "NaN", "traps": "on purpose", "forgetful": "different answers"} {
		bad := describe(t, h, policy.LoadRequest{Module: moduleOf(behavior)})
		if _, err := h.Open(t.Context(), bad, moduleOf(behavior)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", behavior, err)
		}
	}
	strict, _ := policyHost(t, func(o *registry.PolicyOptions) {
		_, o.Roots = signed(t)
		o.RequireSignature = true
	})
	if _, err := strict.Open(t.Context(), v, moduleOf("calm")); err == nil || !strings.Contains(err.Error(), "not signed") {
		t.Error("unsigned version was opened:", err)
	}
	untrusted := *v
	untrusted.Signer = "ed25519:0011223344556677"
	if _, err := strict.Open(t.Context(), &untrusted, moduleOf("calm")); err == nil || !strings.Contains(err.Error(), "not one of") {
		t.Error("version of an untrusted signer was opened:", err)
	}
	builtin := describe(t, strict, policy.LoadRequest{Builtin: "default", Name: "mine"})
	if b, err := strict.Open(t.Context(), builtin, nil); err != nil || b.Name != "mine" || b.ID != builtin.ID {
		t.Error("a built-in policy needs no signature:", err)
	}
	builtin.Digest = "sha256:older"
	if _, err := strict.Open(t.Context(), builtin, nil); err == nil || !strings.Contains(err.Error(), "no built-in policy") {
		t.Error(err)
	}
	if n := s.open.Load(); n != 0 {
		t.Errorf("%d modules are still open", n)
	}
}

func TestPolicyHost_RejectsUnlistedExecutable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(path, []byte("tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	allowed := registry.Executable{Name: "tool", Path: path, SHA256: bundle.Digest([]byte("tool"))}
	h, s := policyHost(t, func(o *registry.PolicyOptions) {
		o.Executables = []registry.Executable{allowed}
		o.Hosts[bundle.Process] = processes{}
	})
	for _, named := range []string{"tool", allowed.SHA256} {
		v := describe(t, h, policy.LoadRequest{Executable: named})
		if v.Kind != model.PolicyProcess || v.Digest != allowed.SHA256 || v.Size != 0 {
			t.Errorf("%+v", v)
		}
		opened, err := h.Open(t.Context(), v, nil)
		if err != nil {
			t.Fatal(err)
		}
		opened.AddRef()
		opened.ReleaseRef()
	}
	v := describe(t, h, policy.LoadRequest{Executable: "tool"})
	v.Digest = bundle.Digest([]byte("other"))
	_, err1 := h.Open(t.Context(), v, nil)
	_, err2 := h.Describe(t.Context(), policy.LoadRequest{Executable: path})
	for _, err := range []error{err1, err2} {
		if err == nil || !strings.Contains(err.Error(), "not one of the 1 that this server permits") {
			t.Error(err)
		}
	}
	if s.open.Load() != 0 {
		t.Error("the host of modules was called")
	}
}

func TestNewPolicyHost_ReportsInvalidOptions(t *testing.T) {
	_, err := registry.NewPolicyHost(registry.PolicyOptions{
		Options: registry.Options{
			RequireSignature: true,
			Builtin:          func(string) (policy.Module, []string, bool) { return nil, nil, false },
			Names:            []string{"gone"},
		},
		Executables: []registry.Executable{{Name: "a", Path: "/a", SHA256: "1"}, {Name: "a", Path: "/b", SHA256: "sha256:2"}},
	})
	for _, want := range []string{`"gone"`, "/a", "/b", "executable name a is not unique", "no key is trusted"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	if errors.Unwrap(err) != nil {
		t.Error("errors.Unwrap hides problems")
	}
}

// processes is a host of executables that accepts everything.
type processes struct{}

func (processes) Load(_ context.Context, b *bundle.Bundle, _ policy.Limits) (registry.Module, error) {
	return &quiet{policy.Native(b.Manifest.Digest, func() sdk.Policy { return &guest{behavior: "tool"} })}, nil
}

type quiet struct{ policy.Module }

func (*quiet) Close() {}
