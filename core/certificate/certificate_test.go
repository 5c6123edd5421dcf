package certificate_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/certificate"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/wasm"
	defaults "github.com/cede-scheduler/cede/policies/default"
	"github.com/cede-scheduler/cede/policies/nomad"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A host opens the policies of a test by digest, or modules.
type host struct {
	wasm    *wasm.Host
	natives map[string]policy.Module
}

func (h *host) Open(ctx context.Context, v *model.PolicyVersion, module []byte) (*policy.Version, error) {
	m := h.natives[v.Digest]
	if v.Kind == model.PolicyWasm {
		loaded, err := h.wasm.Load(ctx, module, policy.Limits{})
		if err != nil {
			return nil, err
		}
		m = loaded
	}
	if m == nil {
		return nil, fmt.Errorf("no built-in policy with digest %s", v.Digest)
	}
	return policy.NewVersion(policy.Source{Name: v.Name, Module: m, Config: v.Config, Grants: v.Grants})
}

func newHost(t *testing.T) *host {
	t.Helper()
	w, err := wasm.NewHost(wasm.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	h := &host{wasm: w, natives: map[string]policy.Module{}}
	for _, m := range []policy.Module{policy.Native("default", defaults.New), policy.Native("nomad", func() sdk.Policy { return nomad.New() })} {
		h.natives[m.Digest()] = m
	}
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// policies returns policies in Go and as modules of three other languages.
func policies(t *testing.T, h *host) []certificate.Policy {
	t.Helper()
	var list []certificate.Policy
	add := func(p certificate.Policy) {
		v, err := h.Open(t.Context(), &model.PolicyVersion{Name: p.Name, Digest: p.Digest, Kind: p.Kind}, p.Module)
		must(t, err)
		v.AddRef()
		p.Version, p.Config, p.Digest = v.ID, v.Config(), v.Digest
		v.ReleaseRef()
		list = append(list, p)
	}
	for _, name := range []string{"default", "nomad"} {
		add(certificate.Policy{Name: name, Digest: name, Kind: model.PolicyBuiltin})
	}
	for _, name := range []string{"decay-c", "decay-rust", "default-assemblyscript", "default-rust"} {
		code, err := os.ReadFile(filepath.Join("../../sdk/abi/testdata/guests", name+".wasm"))
		must(t, err)
		add(certificate.Policy{Name: name, Kind: model.PolicyWasm, Module: code})
	}
	return list
}

// recordCalls calls every hook of a policy with random input, and returns the document.
func recordCalls(t *testing.T, h *host, p *certificate.Policy, r *rand.Rand) *certificate.Document {
	t.Helper()
	var log certificate.Log
	v, err := h.Open(t.Context(), &model.PolicyVersion{Name: p.Name, Digest: p.Digest, Kind: p.Kind, Config: p.Config}, p.Module)
	must(t, err)
	v.AddRef()
	defer v.ReleaseRef()
	c, err := v.Copy(log.Record)
	must(t, err)
	c.AddRef()
	defer c.ReleaseRef()
	in, err := c.Acquire()
	must(t, err)
	defer c.Release(in)
	callHooks(t, in, r)
	versions, calls, failed := log.Stop()
	must(t, failed)
	if !slices.Equal(versions, []string{p.Version}) {
		t.Fatalf("versions %v, want %s", versions, p.Version)
	}
	return &certificate.Document{
		Version: certificate.Version, Release: "test", ServerID: "s1", StateIndex: 7, ABI: certificate.ABIVersion,
		Decision: json.RawMessage(`{"EvalID":"e"}`), Policies: []certificate.Policy{*p}, Calls: calls,
	}
}

func callHooks(t *testing.T, in policy.Instance, r *rand.Rand) {
	t.Helper()
	c := policytest.RandomCandidates(r, 1+r.IntN(6), 1+r.IntN(6))
	rows := c.Rows.Len()
	if in.Hooks().Has(policy.HookDelta) {
		gap := make([]int32, rows)
		for i := range gap {
			gap[i] = c.Preemptor.Delta
		}
		must(t, in.PriorityDelta(c, gap, new(sdk.Recheck)))
	}
	if in.Hooks().Has(policy.HookScoreVictims) {
		must(t, in.ScoreVictims(c, &sdk.VictimScores{Tier: make([]int64, rows), Score: make([]float64, rows)}))
	}
	if in.Hooks().Has(policy.HookSelectVictims) {
		var out sdk.Selection
		out.Reset()
		must(t, in.SelectVictims(c, &out))
	}
	if in.Hooks().Has(policy.HookScoreOptions) {
		o := policytest.RandomOptions(r, 1+r.IntN(6), 1+r.IntN(4))
		must(t, in.ScoreOptions(o, policytest.NewScores(o.Len())))
	}
}

// Calls that were recorded are made again with the same answers, from the file alone: in Go,
// and as modules of other languages. Another answer, another configuration and another
// module are refused.
func TestVerify_MakesCallsAgain(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	_, key, err := ed25519.GenerateKey(nil)
	must(t, err)
	r := rand.New(rand.NewPCG(5, 5))
	for _, p := range policies(t, h) {
		for range soak.Count(5, 200) {
			file, err := certificate.Write(recordCalls(t, h, &p, r), key)
			must(t, err)
			d, signer, err := certificate.Read(file)
			must(t, err)
			if !signer.Equal(key.Public()) || len(d.Calls) == 0 {
				t.Fatalf("signed by %v, %d calls", signer, len(d.Calls))
			}
			if err := certificate.Verify(t.Context(), d, newHostLike(h)); err != nil {
				t.Fatalf("%s: %v", p.Name, err)
			}
			at := &d.Calls[r.IntN(len(d.Calls))]
			at.Answer[r.IntN(len(at.Answer))] ^= 1 << r.IntN(8)
			if err := certificate.Verify(t.Context(), d, h); err == nil || !strings.Contains(err.Error(), "another answer") {
				t.Fatalf("%s: a changed answer: %v", p.Name, err)
			}
		}
	}
}

// A log that grows over the limit is discarded.
func TestLog_IsLimited(t *testing.T) {
	t.Parallel()
	v, err := newHost(t).Open(t.Context(), &model.PolicyVersion{Name: "nomad", Digest: "nomad", Kind: model.PolicyBuiltin}, nil)
	must(t, err)
	v.AddRef()
	defer v.ReleaseRef()
	var log certificate.Log
	recorded, err := v.Copy(log.Record)
	must(t, err)
	recorded.AddRef()
	defer recorded.ReleaseRef()
	in, err := recorded.Acquire()
	must(t, err)
	defer recorded.Release(in)
	c := policytest.RandomCandidates(rand.New(rand.NewPCG(6, 6)), 1000, 100)
	var out sdk.Selection
	for range certificate.MaxCalls/(16*c.Rows.Len()) + 1 { // a row has more than 16 bytes in a frame
		out.Reset()
		must(t, in.SelectVictims(c, &out))
	}
	if versions, calls, err := log.Stop(); !errors.Is(err, certificate.ErrTooLarge) || !strings.Contains(err.Error(), "128 MiB") || len(versions)+len(calls) != 0 {
		t.Errorf("got %d versions, %d calls and %v, want none and %v", len(versions), len(calls), err, certificate.ErrTooLarge)
	}
}

// newHostLike returns a host with its own instances.
func newHostLike(h *host) *host { return &host{wasm: h.wasm, natives: h.natives} }

// The document of a policy of another release, or without calls, is refused.
func TestVerify_RefusesOtherPolicies(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	p := policies(t, h)[0]
	d := recordCalls(t, h, &p, rand.New(rand.NewPCG(1, 1)))
	for what, change := range map[string]func(*certificate.Document){
		"no built-in policy with digest": func(d *certificate.Document) { d.Policies[0].Digest = "of-another-release" },
		"the certificate states":         func(d *certificate.Document) { d.Policies[0].Version = "sha256:00" },
		"without a call":                 func(d *certificate.Document) { d.Calls = nil },
		"call 0 is of policy 3 of 1":     func(d *certificate.Document) { d.Calls[0].Policy = 3 },
		"does not implement operation 1": func(d *certificate.Document) { d.Calls[0].Frame = withOp(d.Calls[0].Frame, 1) },
		"too short":                      func(d *certificate.Document) { d.Calls[0].Frame = d.Calls[0].Frame[:20] },
	} {
		changed := *d
		changed.Policies, changed.Calls = slices.Clone(d.Policies), slices.Clone(d.Calls)
		change(&changed)
		if err := certificate.Verify(t.Context(), &changed, h); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
}

func withOp(frame []byte, op byte) []byte {
	frame = slices.Clone(frame)
	frame[16] = op
	return frame
}

// Frames of an earlier minor version of the ABI, as an older release has written them, give
// the same answers. Those of another major version are refused.
func TestVerify_ReadsFramesOfTheSameMajorVersion(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, p := range policies(t, h) {
		d := recordCalls(t, h, &p, rand.New(rand.NewPCG(3, 3)))
		for i := range d.Calls {
			d.Calls[i].Frame[6] = 0
		}
		if err := certificate.Verify(t.Context(), d, h); err != nil {
			t.Errorf("%s: minor version 0: %v", p.Name, err)
		}
		d.Calls[0].Frame[4]++
		if err := certificate.Verify(t.Context(), d, h); err == nil {
			t.Errorf("%s: the next major version was accepted", p.Name)
		}
	}
}

// No byte of a file can be changed, removed or added.
func TestRead_RefusesEveryChangedByte(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	p := policies(t, h)[0]
	_, key, err := ed25519.GenerateKey(nil)
	must(t, err)
	file, err := certificate.Write(recordCalls(t, h, &p, rand.New(rand.NewPCG(2, 2))), key)
	must(t, err)
	refused := func(b []byte) bool {
		_, _, err := certificate.Read(b)
		return errors.Is(err, certificate.ErrNotCertificate) || errors.Is(err, certificate.ErrSignature)
	}
	for at := range file {
		for _, bit := range []byte{1, 0x80} {
			file[at] ^= bit
			if !refused(file) {
				t.Fatalf("byte %d of %d can be changed", at, len(file))
			}
			file[at] ^= bit
		}
		if !refused(file[:at]) {
			t.Fatalf("the first %d bytes are accepted", at)
		}
	}
	if !refused(append(slices.Clone(file), 0)) || !refused(append([]byte{0}, file...)) {
		t.Error("a byte can be added")
	}
	if _, _, err := certificate.Read(file); err != nil {
		t.Errorf("the unchanged file: %v", err)
	}
}
