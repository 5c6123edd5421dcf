package wasm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	"github.com/cede-scheduler/cede/plugins/wasm"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// The same source answers identically to the bit, natively and as a module on both engines,
// and both engines count the same ticks.
func TestShipped_AnswerIdenticallyAsModule(t *testing.T) {
	for _, p := range hosttest.ShippedPolicies() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			code := goGuest(t, p.Name)
			compiled := load(t, host(t, wasm.Options{CacheDir: cacheDir()}), code, policy.Limits{})
			interpreted := load(t, host(t, wasm.Options{Interpreter: true}), code, policy.Limits{})
			for n, config := range p.Configs {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					answerIdentically(t, rand.New(rand.NewPCG(uint64(n), 42)), config, p.Native, compiled, interpreted)
				})
			}
		})
	}
}

// answerIdentically compares the forms of a policy with a configuration.
func answerIdentically(t *testing.T, r *rand.Rand, config string, forms ...policy.Module) {
	native, compiled, interpreted := start(t, forms[0], config), start(t, forms[1], config), start(t, forms[2], config)
	if diff := cmp.Diff(native.Info(), compiled.Info()); diff != "" || native.Hooks() != compiled.Hooks() {
		t.Fatalf("%s %b %b", diff, native.Hooks(), compiled.Hooks())
	}
	for i := range soak.Count(200, 200_000) {
		q := hosttest.RandomCase(r)
		want, got := hosttest.CallHooks(t, native, q), hosttest.CallHooks(t, compiled, q)
		if diff := cmp.Diff(want.Answers, got.Answers, hosttest.SameBits); diff != "" {
			t.Fatalf("case %d: native (-) and module (+) differ:\n%s", i, diff)
		}
		if i >= soak.Count(50, 5000) { // the interpreter is slow
			continue
		}
		if diff := cmp.Diff(got, hosttest.CallHooks(t, interpreted, q), hosttest.SameBits); diff != "" {
			t.Fatalf("case %d: compiled (-) and interpreted (+) differ:\n%s", i, diff)
		}
	}
}
