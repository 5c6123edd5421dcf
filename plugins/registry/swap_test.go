package registry_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/registry"
	"github.com/cede-scheduler/cede/plugins/wasm"
	"github.com/cede-scheduler/cede/plugins/wasm/compiler"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

const guests = "../../sdk/abi/testdata/guests"

// wasmLoader returns a loader with the real Wasm host.
func wasmLoader(t *testing.T) *registry.Loader {
	t.Helper()
	// Under the race detector, a Go guest takes many times as long to compile.
	host, err := wasm.NewHost(wasm.Options{Budget: compiler.Budget{CPU: 10 * time.Minute, Time: 10 * time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	l, _ := newLoader(t, func(o *registry.Options) {
		o.Hosts = map[bundle.Kind]registry.Host{bundle.Wasm: wasmHost{host}}
	})
	return l
}

type wasmHost struct{ *wasm.Host }

func (h wasmHost) Load(ctx context.Context, b *bundle.Bundle, limits policy.Limits) (registry.Module, error) {
	m, err := h.Host.Load(ctx, b.Code, limits)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// goGuest builds the module of a shipped policy.
func goGuest(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", path, "../../policies/"+name+"/guest")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// contended returns a cluster on which policies choose different victims.
func contended() (*state.Snapshot, *model.Evaluation) {
	store := state.New()
	txn := store.Begin(1)
	txn.ConfigWriter().Set(&model.SchedulerConfig{Preemption: [model.EvalTypes]bool{true, true, true, true}, Policy: "p"})
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	for n := range 4 {
		node := coretest.Node(fmt.Sprint("n", n), 100, 100, 0)
		check(txn.NodeWriter().Upsert(node))
		for k := range 6 {
			id := fmt.Sprintf("a%d-%d", n, k)
			j := coretest.Job(id).Priority(int32(10+5*((n+k)%4))).Ask(int64(10+(7*k+3*n)%12), int64(8+(5*k+n)%16), 0).Obj()
			check(txn.JobWriter().Upsert(j))
			a := coretest.Running(id, j, 0, 0, node.ID)
			a.StartTime = int64(n+7*k) * 1e12
			txn.AllocWriter().Upsert(a)
		}
	}
	asker := coretest.Job("asker").Priority(90).Count(3).Ask(60, 40, 0).Obj()
	check(txn.JobWriter().Upsert(asker))
	txn.Commit()
	return store.Snapshot(), &model.Evaluation{ID: "e", Namespace: "default", JobID: "asker", Type: asker.Type, Priority: 90}
}

// planText describes a plan: placements, evictions and version.
func planText(out *scheduler.Outcome) string {
	var words []string
	for _, g := range out.Plan.Groups {
		for _, a := range g.Placements {
			words = append(words, fmt.Sprintf("%s@%s by %s", a.ID, a.NodeID, a.PolicyVersion))
		}
		for _, a := range g.Evictions {
			words = append(words, "over "+a.AllocID)
		}
	}
	if out.Fault != nil {
		words = append(words, out.Fault.Error())
	}
	return strings.Join(words, ", ")
}

// Guests in several languages alternate as one policy while schedulers decide. Every plan
// must equal that of a single version.
func TestActiveSet_AlternatesGuestsUnderLoad(t *testing.T) {
	decisions := soak.Count(3_000, 400_000)
	l := wasmLoader(t)
	base := load(t, l, registry.Spec{Use: policy.DefaultName})
	active := policy.NewActiveSet(setOf(t, base))
	t.Cleanup(active.Close)
	snap, eval := contended()
	const now = int64(5e14)
	modules, err := filepath.Glob(guests + "/de*.wasm") // default and decay
	if err != nil || len(modules) < 4 {
		t.Fatal("no modules", err)
	}
	want := map[string]*atomic.Int64{} // number of times that each plan was made
	var versions []*policy.Version
	var plans []string // by version
	for _, path := range append(modules, goGuest(t, "nomad")) {
		v := load(t, l, registry.Spec{Name: "p", Use: path})
		versions = append(versions, v)
		active.Swap(setOf(t, base, v))
		out, err := scheduler.New(scheduler.Config{Policies: active}).Process(eval, snap, now)
		if err != nil || out.Fault != nil || !strings.Contains(planText(out), v.ID) {
			t.Fatal(path, err, planText(out))
		}
		want[planText(out)] = new(atomic.Int64)
		plans = append(plans, planText(out))
	}
	var done atomic.Int64
	var over atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			s := scheduler.New(scheduler.Config{Policies: active, Forget: true})
			for !over.Load() {
				out, err := s.Process(eval, snap, now)
				if err != nil {
					t.Error(err)
					return
				}
				made := want[planText(out)]
				if made == nil {
					t.Errorf("no version makes this plan: %s", planText(out))
					return
				}
				made.Add(1)
				done.Add(1)
			}
		})
	}
	const swaps = 100
	for i := range swaps {
		at := i % len(versions)
		before := want[plans[at]].Load()
		active.Swap(setOf(t, base, versions[at]))
		for (want[plans[at]].Load() == before || done.Load() < int64((i+1)*decisions/swaps)) && !t.Failed() {
			time.Sleep(50 * time.Microsecond) // spinning would take a processor from the schedulers
		}
	}
	over.Store(true)
	wg.Wait()
	for _, v := range versions {
		if _, faults := v.Stats(); faults != 0 {
			t.Errorf("%s had %d faults", v.ID, faults)
		}
	}
}
