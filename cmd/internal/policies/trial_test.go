package policies_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/policies"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/plugins/wasm/compiler"
	"github.com/cede-scheduler/cede/plugins/wasm/wasmtest"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func opened(t *testing.T, use string) *policies.Policy {
	t.Helper()
	p, err := resolver(t).Open(context.Background(), policies.Request{PolicySpec: sim.PolicySpec{Use: use}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A trap ends an instance, but not the test: the next case, which may be the smaller
// one, runs in another instance.
func TestTrial_ContinuesAfterTrap(t *testing.T) {
	trial := policies.NewTrial(opened(t, "../../../plugins/wasm/testdata/hostile/trap_score.wasm"))
	defer trial.Close()
	s, err := trial.Subject()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err := s.Decide(policytest.MustParse(t, "preemptor 50 cpu=1\nnode n cpu=0\n  a 10 cpu=1\n"))
		fault, ok := errors.AsType[*policy.Error](err)
		if !ok || fault.Fault != policy.FaultGuest || fault.Hook != "ScoreVictims" {
			t.Errorf("got %v, want the trap", err)
		}
	}
	if trial.Usage.Calls != 3 || trial.Usage.Memory == 0 {
		t.Errorf("used %+v", trial.Usage)
	}
}

func TestTrial_DecidesLikeNativePolicy(t *testing.T) {
	const guests = "../../../sdk/abi/testdata/guests/"
	c := policytest.MustParse(t, "preemptor 50 cpu=9\nnode n cpu=0\n  a 10 cpu=5\n  b 20 cpu=4\n  c 20 cpu=9\n")
	var want string
	for _, use := range []string{"default", guests + "default-c.wasm", guests + "default-rust.wasm"} {
		trial := policies.NewTrial(opened(t, use))
		defer trial.Close()
		s, err := trial.Subject()
		if err != nil {
			t.Fatal(err)
		}
		d, err := s.Decide(c)
		if err != nil {
			t.Fatal(err)
		}
		got := d.Lines(c)[0]
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%s: %s, want %s", use, got, want)
		}
		if metered := trial.Usage.Fuel > 0; metered != (use != "default") || trial.Usage.Share() > 0.01 {
			t.Errorf("%s: used %+v", use, trial.Usage)
		}
	}
}

// If the home directory is not writable, policies are loaded without the cache.
func TestOpen_WithoutCacheDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := policies.New(policies.Options{CacheDir: filepath.Join(file, "cache")})
	p, err := l.Open(context.Background(), policies.Request{PolicySpec: sim.PolicySpec{Use: "../../../sdk/abi/testdata/guests/decay-c.wasm"}})
	if err != nil {
		t.Fatal(err)
	}
	p.AddRef()
	p.ReleaseRef()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A module that takes more than the budget to compile is an error, with the cache and without.
func TestOpen_CompilesWithinBudget(t *testing.T) {
	bomb := filepath.Join(t.TempDir(), "bomb.wasm")
	if err := os.WriteFile(bomb, wasmtest.Bombs["indirect_calls"](), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cache := range []string{"", filepath.Join(t.TempDir(), "cache")} {
		l := policies.New(policies.Options{CacheDir: cache})
		open := func(use string) error {
			_, err := l.Open(t.Context(), policies.Request{PolicySpec: sim.PolicySpec{Use: use}})
			return err
		}
		before := wasmtest.ProcessTime(t)
		if err := open("../../../sdk/abi/testdata/guests/decay-c.wasm"); err != nil {
			t.Fatal(err)
		}
		if wasmtest.ProcessTime(t) == before {
			t.Errorf("cache %q: no process compiled the module", cache)
		}
		if soak.Full() && !soak.Race { // it takes the whole budget, whose memory the race detector exceeds
			if err := open(bomb); !errors.Is(err, compiler.ErrBudget) {
				t.Errorf("cache %q: got %v", cache, err)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestBench_MeasuresEveryHookOnEveryConstruction(t *testing.T) {
	found := map[string]int{}
	share := 0.0
	err := policies.Bench(opened(t, "default"), clock.Real{}, time.Microsecond, 2, policies.BenchCallbacks{
		Measured: func(m policies.Measurement) {
			found[m.Hook+" "+m.Construction]++
			if m.Calls < 1 || m.Candidates < 1 || m.PerCandidate() < 0 {
				t.Errorf("measured %+v", m)
			}
		},
		Progress: func(s float64) {
			if s < share || s > 1 {
				t.Errorf("progress %v after %v", s, share)
			}
			share = s
		},
	})
	if share < 1 {
		t.Errorf("progress ends at %v", share)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 10 || found["SelectVictims candidates=200"] != 2 || found["ScoreOptions nodes=400"] != 2 {
		t.Errorf("measured %v", found)
	}
}
