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

func policyHost(t *testing.T, change ...func(*registry.PolicyOptions)) (*registry.PolicyHost, *shelf) {
	t.Helper()
	s := &shelf{}
	o := registry.PolicyOptions{
		Options: registry.Options{
			Hosts: map[bundle.Kind]registry.Host{bundle.Wasm: s},
			Builtin: func(name string) (policy.Module, []string, bool) {
				return policy.Native("sha256:rules", func() sdk.Policy { return rules.New() }), nil, name == policy.DefaultName
			},
		},
		Names: []string{policy.DefaultName},
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

// moduleOf is a module of the given mood.
func moduleOf(mood string) []byte { return []byte("\x00asm\x01\x00\x00\x00" + mood) }

// contents reads the files of a signed bundle as a client would send them.
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

func TestDescribe_SaysWhatAVersionComesTo(t *testing.T) {
	h, s := policyHost(t)
	module := moduleOf("calm")
	v := describe(t, h, policy.LoadRequest{Name: "p", Module: module, Config: []byte(` {"knob": 7}`), OnFault: "default"})
	want := bundle.Digest(module)
	if v.Name != "p" || v.Kind != model.PolicyWasm || v.Digest != want || v.Size != int64(len(module)) ||
		string(v.Config) != `{"knob":7}` || v.OnFault != "default" || v.Signer != "" || v.Limits.Fuel != policy.DefaultLimits.Fuel {
		t.Errorf("%+v", v)
	}
	if own := describe(t, h, policy.LoadRequest{Module: module}); own.Name != "calm" || string(own.Config) != `{"knob":1}` || own.ID == v.ID {
		t.Errorf("a module alone: %+v", own)
	}
	if b := describe(t, h, policy.LoadRequest{Builtin: "default", Name: "mine"}); b.Kind != model.PolicyBuiltin || b.Size != 0 || b.Name != "mine" {
		t.Errorf("built in: %+v", b)
	}
	if n := s.open.Load(); n != 0 {
		t.Errorf("%d modules are still open", n)
	}
}

func TestDescribe_NamesEveryProblemAtOnce(t *testing.T) {
	h, s := policyHost(t)
	for _, c := range []struct {
		request policy.LoadRequest
		want    []string
	}{
		{policy.LoadRequest{}, []string{"0 of a module"}},
		{
			policy.LoadRequest{
				Name: "No Good", Module: moduleOf("calm"), Builtin: "default", Grants: []string{"all"}, OnFault: "shrug", Config: []byte("3"),
			},
			[]string{"2 of a module", `"No Good"`, `"all"`, `"shrug"`, "want an object"},
		},
		{policy.LoadRequest{Module: moduleOf("calm"), Config: []byte(`{"knob":10,"nob":1}`)}, []string{"knob: invalid value 10", "nob: unknown setting"}},
		{policy.LoadRequest{Module: []byte("#!/bin/sh")}, []string{"no WebAssembly module"}},
		{policy.LoadRequest{Module: moduleOf("broken")}, []string{"cannot be compiled"}},
		{policy.LoadRequest{Module: append(moduleOf("calm"), make([]byte, policy.MaxModuleSize)...)}, []string{"8 MiB"}},
		{policy.LoadRequest{Builtin: "gone"}, []string{"no built-in policy", "default"}},
		{policy.LoadRequest{Executable: "gone"}, []string{"allows none"}},
		{policy.LoadRequest{Module: moduleOf("calm"), Signature: []byte("{}")}, []string{"without the policy.yaml"}},
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

func TestDescribe_ReadsTheManifestThatCameAlong(t *testing.T) {
	dir, roots := signed(t)
	h, _ := policyHost(t, func(o *registry.PolicyOptions) { o.RequireSignature, o.Roots = true, roots })
	r := contents(t, dir)
	v := describe(t, h, r)
	if v.Name != "calm" || string(v.Config) != `{"knob":7}` || v.Limits.Fuel != 5000 || v.Limits.Time != 9e9 || v.Signer != bundle.KeyID(roots[0]) {
		t.Errorf("%+v", v)
	}
	for want, change := range map[string]func(*policy.LoadRequest){
		"is not signed":                     func(r *policy.LoadRequest) { r.Signature = nil },
		"not signed":                        func(r *policy.LoadRequest) { r.Manifest, r.Signature = nil, nil },
		"is not the module of its manifest": func(r *policy.LoadRequest) { r.Module = moduleOf("calmer") },
		"does not hold":                     func(r *policy.LoadRequest) { r.Manifest = append([]byte("# changed\n"), r.Manifest...) },
	} {
		altered := r
		change(&altered)
		if _, err := h.Describe(t.Context(), altered); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

func TestOpen_TestsTheVersionAndKeepsToWhatTheOperatorAllows(t *testing.T) {
	h, s := policyHost(t)
	v := describe(t, h, policy.LoadRequest{Module: moduleOf("calm")})
	opened, err := h.Open(t.Context(), v, moduleOf("calm"))
	if err != nil || opened.ID != v.ID || opened.OnFault != policy.AsConfigured {
		t.Fatal(opened, err)
	}
	opened.AddRef()
	opened.ReleaseRef()
	if _, err := h.Open(t.Context(), v, moduleOf("calmer")); err == nil || !strings.Contains(err.Error(), "the version is of") {
		t.Error("another module was opened:", err)
	}
	for mood, want := range map[string]string{"nan": "NaN", "traps": "on purpose", "forgetful": "two answers"} {
		bad := describe(t, h, policy.LoadRequest{Module: moduleOf(mood)})
		if _, err := h.Open(t.Context(), bad, moduleOf(mood)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", mood, err)
		}
	}
	strict, _ := policyHost(t, func(o *registry.PolicyOptions) {
		_, o.Roots = signed(t)
		o.RequireSignature = true
	})
	if _, err := strict.Open(t.Context(), v, moduleOf("calm")); err == nil || !strings.Contains(err.Error(), "not signed") {
		t.Error("an unsigned version was opened:", err)
	}
	stranger := *v
	stranger.Signer = "ed25519:0011223344556677"
	if _, err := strict.Open(t.Context(), &stranger, moduleOf("calm")); err == nil || !strings.Contains(err.Error(), "not among") {
		t.Error("a stranger's version was opened:", err)
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

func TestPolicyHost_RunsNoExecutableThatIsNotOnTheList(t *testing.T) {
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
		if err == nil || !strings.Contains(err.Error(), "not among the 1 that are allowed") {
			t.Error(err)
		}
	}
	if s.open.Load() != 0 {
		t.Error("the module host was asked")
	}
}

func TestNewPolicyHost_ListsWhatMakesNoSense(t *testing.T) {
	_, err := registry.NewPolicyHost(registry.PolicyOptions{
		Options: registry.Options{
			RequireSignature: true,
			Builtin:          func(string) (policy.Module, []string, bool) { return nil, nil, false },
		},
		Names:       []string{"gone"},
		Executables: []registry.Executable{{Name: "a", Path: "/a", SHA256: "1"}, {Name: "a", Path: "/b", SHA256: "sha256:2"}},
	})
	for _, want := range []string{`"gone"`, "/a", "/b", "two executables are named a", "no key is trusted"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	if errors.Unwrap(err) != nil {
		t.Error("one of several problems hides the others")
	}
}

// processes stands for the host of executables: it runs whatever it is given.
type processes struct{}

func (processes) Load(_ context.Context, b *bundle.Bundle, _ policy.Limits) (registry.Module, error) {
	return &quiet{policy.Native(b.Manifest.Digest, func() sdk.Policy { return &guest{mood: "tool"} })}, nil
}

type quiet struct{ policy.Module }

func (*quiet) Close() {}
