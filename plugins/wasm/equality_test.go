package wasm_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	"github.com/cede-scheduler/cede/plugins/wasm"
	"github.com/cede-scheduler/cede/policies/aging"
	defaults "github.com/cede-scheduler/cede/policies/default"
	fairshare "github.com/cede-scheduler/cede/policies/fair-share"
	"github.com/cede-scheduler/cede/policies/karmada"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	"github.com/cede-scheduler/cede/policies/nomad"
	"github.com/cede-scheduler/cede/policies/optimal"
	"github.com/cede-scheduler/cede/policies/protect"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// shipped maps the directory of each shipped policy to its native form and to
// configurations that exercise it.
var shipped = map[string]struct {
	native  func() sdk.Policy
	configs []string
}{
	"default":     {native: defaults.New},
	"nomad":       {native: func() sdk.Policy { return nomad.New() }},
	"least-waste": {native: func() sdk.Policy { return leastwaste.New() }},
	"optimal":     {native: func() sdk.Policy { return optimal.New() }},
	"kubernetes": {
		native:  func() sdk.Policy { return kubernetes.New() },
		configs: []string{`{"minCandidateNodesPercentage":40,"minCandidateNodesAbsolute":1}`},
	},
	"karmada": {
		native:  func() sdk.Policy { return karmada.New() },
		configs: []string{`{"victims":"fewest","clusters":"priority"}`},
	},
	"fair-share": {
		native:  func() sdk.Policy { return fairshare.New() },
		configs: []string{`{"onlyAbove":true}`},
	},
	"aging": {
		native:  func() sdk.Policy { return aging.New() },
		configs: []string{`{"halfLife":"1h","settle":"1m"}`},
	},
	"protect": {
		native: func() sdk.Policy { return protect.New() },
		configs: []string{
			`{"minRuntime":"1h","secondsByNamespace":{"b":5000},"secondsByLabel":{"tier:gold":9000.5},"override":60,"maxEvictions":2}`,
		},
	},
}

func TestShipped_CoversEveryPolicy(t *testing.T) {
	mains, err := filepath.Glob("../../policies/*/guest/main.go")
	if err != nil || len(mains) == 0 {
		t.Fatal(err)
	}
	for _, main := range mains {
		if name := filepath.Base(filepath.Dir(filepath.Dir(main))); shipped[name].native == nil {
			t.Errorf("policies/%s is not compared with its module: add it to shipped in equality_test.go", name)
		}
	}
	folders, err := os.ReadDir("../../policies")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if _, err := os.Stat("../../policies/" + f.Name() + "/guest/main.go"); err != nil {
			t.Errorf("policies/%s has no guest/main.go", f.Name())
		}
	}
}

// The same source answers identically to the bit, natively and as a module on both engines,
// and both engines count the same ticks.
func TestShipped_AnswerIdenticallyAsModule(t *testing.T) {
	for name, p := range shipped {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code := goGuest(t, name)
			compiled := load(t, host(t, wasm.Options{CacheDir: cacheDir()}), code, policy.Limits{})
			interpreted := load(t, host(t, wasm.Options{Interpreter: true}), code, policy.Limits{})
			for n, config := range append([]string{""}, p.configs...) {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					answerIdentically(t, rand.New(rand.NewPCG(uint64(n), 42)), config, policy.Native("test", p.native), compiled, interpreted)
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
