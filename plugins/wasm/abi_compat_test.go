package wasm_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	"github.com/cede-scheduler/cede/plugins/wasm"
	defaults "github.com/cede-scheduler/cede/policies/default"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// Modules built for earlier ABI versions load, promise only features of their version, and
// answer as the same version of the rules does today.
func TestLoad_SupportsOlderABIVersions(t *testing.T) {
	for name, c := range map[string]struct {
		rules    func() sdk.Policy
		bindings bool
	}{
		"default-c-1.0":    {defaults.NewVersion1, false},
		"default-rust-1.2": {defaults.NewVersion1, true},
		"default-c-1.3":    {defaults.New, true},
	} {
		t.Run(name, func(t *testing.T) { compareOlder(t, name, c.rules, c.bindings) })
	}
}

func compareOlder(t *testing.T, name string, rules func() sdk.Policy, bindings bool) {
	code, err := os.ReadFile("../../sdk/abi/testdata/guests/older/" + name + ".wasm")
	check(t, err)
	native := start(t, policy.Native("test", rules), "")
	in := start(t, load(t, host(t, wasm.Options{CacheDir: cacheDir()}), code, policy.Limits{}), "")
	if i := in.Info(); !i.Ascending || i.LeastFirst || i.YoungestFirst || i.Elastic || i.MultiCluster {
		t.Errorf("promises %+v", i)
	}
	if want := native.Hooks(); in.Hooks() != want && (bindings || in.Hooks() != want&^policy.HookPreemptBindings) {
		t.Errorf("hooks %b", in.Hooks())
	}
	r := rand.New(rand.NewPCG(10, 42))
	for i := range soak.Count(200, 200_000) {
		q := hosttest.RandomCase(r)
		want, got := hosttest.CallHooks(t, native, q).Answers, hosttest.CallHooks(t, in, q).Answers
		if !bindings {
			want.Removals, want.Tiers, want.Recheck[4] = nil, got.Tiers, 0
		}
		if diff := cmp.Diff(want, got, hosttest.SameBits); diff != "" {
			t.Fatalf("case %d: current (-) and first version (+) differ:\n%s", i, diff)
		}
	}
}
