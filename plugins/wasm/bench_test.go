package wasm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	"github.com/cede-scheduler/cede/plugins/wasm"
	defaults "github.com/cede-scheduler/cede/policies/default"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	"github.com/cede-scheduler/cede/policies/nomad"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// contender is a policy in one of the measured forms.
type contender struct {
	name   string
	module func(b testing.TB, h *wasm.Host) policy.Module
}

// contenders returns default, nomad and kubernetes natively and as modules, and default in
// the other languages if their modules are in the tree.
func contenders() []contender {
	native := func(start func() sdk.Policy) func(testing.TB, *wasm.Host) policy.Module {
		return func(testing.TB, *wasm.Host) policy.Module { return policy.Native("bench", start) }
	}
	list := []contender{
		{"default/native", native(defaults.New)},
		{"default/go", goModule("default")},
	}
	others, _ := filepath.Glob("../../sdk/abi/testdata/guests/default-*.wasm")
	for _, path := range others {
		language := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "default-"), ".wasm")
		list = append(list, contender{"default/" + language, func(b testing.TB, h *wasm.Host) policy.Module {
			code, err := os.ReadFile(path)
			check(b, err)
			return load(b, h, code, policy.Limits{})
		}})
	}
	return append(
		list,
		contender{"nomad/native", native(func() sdk.Policy { return nomad.New() })},
		contender{"nomad/go", goModule("nomad")},
		contender{"kubernetes/native", native(func() sdk.Policy { return kubernetes.New() })},
		contender{"kubernetes/go", goModule("kubernetes")},
	)
}

func goModule(name string) func(testing.TB, *wasm.Host) policy.Module {
	return func(b testing.TB, h *wasm.Host) policy.Module { return load(b, h, goGuest(b, name), policy.Limits{}) }
}

// BenchmarkWasmCall measures one call of SelectVictims: encode, call, decode.
func BenchmarkWasmCall(b *testing.B) {
	h := host(b, wasm.Options{})
	for _, c := range contenders() {
		for _, shape := range [][2]int{{1, 64}, {128, 32}} {
			b.Run(fmt.Sprintf("%s/%dx%d", c.name, shape[0], shape[1]), func(b *testing.B) {
				in := start(b, c.module(b, h), "")
				q := hosttest.UniformCandidates(shape[0], shape[1])
				var out sdk.Selection
				b.ReportAllocs()
				for b.Loop() {
					out.Reset()
					if err := in.SelectVictims(q, &out); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*q.Rows.Len()), "ns/row")
				b.ReportMetric(float64(in.Fuel()), "ticks")
			})
		}
	}
}

// BenchmarkWasmB measures construction (b) with a policy in each of its forms: one
// evaluation of a service job, without writing the plan.
func BenchmarkWasmB(b *testing.B) {
	h := host(b, wasm.Options{})
	store := coretest.FilledStore(5000, 10)
	for _, count := range []int{1, 100} {
		job := coretest.PreemptingJob(count).Change(func(j *model.Job) { j.ID = fmt.Sprintf("asker-%d", count) }).Obj()
		snap := coretest.PutJobs(store, job)
		for _, c := range contenders() {
			b.Run(fmt.Sprintf("%s/nodes=5000/count=%d", c.name, count), func(b *testing.B) {
				v, err := policy.NewVersion(policy.Source{Name: "bench", Module: c.module(b, h), Grants: policy.Grants})
				check(b, err)
				set, err := policy.NewSet(coretest.Policies().Default(), v)
				check(b, err)
				defer set.Unpin()
				s := scheduler.New(scheduler.Config{Policies: set.Override(v), Workers: runtime.GOMAXPROCS(0)})
				b.ReportAllocs()
				for b.Loop() {
					out, err := s.Process(coretest.Eval(job), snap, 1)
					if err != nil || !out.Placed() || out.Fault != nil {
						b.Fatal(err, out.Fault)
					}
				}
			})
		}
	}
}

// BenchmarkWasmLoad measures loading a module without a cache and with one on disk.
func BenchmarkWasmLoad(b *testing.B) {
	code := goGuest(b, "default")
	for _, dir := range []string{"", b.TempDir()} {
		b.Run(fmt.Sprintf("go/cached=%t", dir != ""), func(b *testing.B) {
			for b.Loop() {
				h, err := wasm.NewHost(wasm.Options{CacheDir: dir})
				check(b, err)
				m, err := h.Load(b.Context(), code, policy.Limits{})
				check(b, err)
				m.Close()
				check(b, h.Close())
			}
		})
	}
}

// BenchmarkWasmStart measures the start of another instance.
func BenchmarkWasmStart(b *testing.B) {
	h := host(b, wasm.Options{})
	for _, c := range contenders() {
		b.Run(c.name, func(b *testing.B) {
			m := c.module(b, h)
			config := configuration(b, m, "")
			b.ReportAllocs()
			for b.Loop() {
				in, err := m.Start(config)
				check(b, err)
				in.Close()
			}
		})
	}
}
