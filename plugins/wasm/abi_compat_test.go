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
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A module built for the first ABI version loads, promises only features of that version,
// and answers as the same rules do today.
func TestLoad_SupportsFirstABIVersion(t *testing.T) {
	code, err := os.ReadFile("../../sdk/abi/testdata/guests/older/default-c-1.0.wasm")
	check(t, err)
	native := start(t, policy.Native("test", defaults.New), "")
	in := start(t, load(t, host(t, wasm.Options{CacheDir: cacheDir()}), code, policy.Limits{}), "")
	if i := in.Info(); !i.Ascending || i.LeastFirst || i.YoungestFirst || i.Elastic || i.MultiCluster {
		t.Errorf("promises %+v", i)
	}
	if in.Hooks() != native.Hooks()&^policy.HookPreemptBindings {
		t.Errorf("hooks %b", in.Hooks())
	}
	r := rand.New(rand.NewPCG(10, 42))
	for i := range soak.Count(200, 200_000) {
		q := hosttest.RandomCase(r)
		want, got := hosttest.CallHooks(t, native, q).Answers, hosttest.CallHooks(t, in, q).Answers
		want.Removals, want.Tiers, want.Recheck[4] = nil, got.Tiers, 0 // the first version has no bindings
		if diff := cmp.Diff(want, got, hosttest.SameBits); diff != "" {
			t.Fatalf("case %d: current (-) and first version (+) differ:\n%s", i, diff)
		}
	}
}
