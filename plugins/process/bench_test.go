//go:build unix

package process

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// contenders are the measured policies, each in both forms.
var contenders = []string{"default", "nomad"}

// forms returns the native module of a policy and the one that runs as a process.
func forms(b testing.TB, h *Host, name string) map[string]policy.Module {
	native, _, _ := builtin.Module(name)
	return map[string]policy.Module{
		"native":  native,
		"process": guest(b, h, shippedGuest(name), LoadOptions{Limits: policy.Limits{Time: time.Minute}}),
	}
}

// BenchmarkProcessCall measures one call of SelectVictims: encode, send, answer, decode.
func BenchmarkProcessCall(b *testing.B) {
	h := newHost(b, Options{})
	for _, name := range contenders {
		for form, m := range forms(b, h, name) {
			for _, shape := range [][2]int{{1, 64}, {128, 32}} {
				b.Run(fmt.Sprintf("%s/%s/%dx%d", name, form, shape[0], shape[1]), func(b *testing.B) {
					i := configured(b, m, "")
					q := hosttest.UniformCandidates(shape[0], shape[1])
					var out sdk.Selection
					b.ReportAllocs()
					for b.Loop() {
						out.Reset()
						if err := i.SelectVictims(q, &out); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*q.Rows.Len()), "ns/row")
				})
			}
		}
	}
}

// BenchmarkProcessB measures construction (b) with a policy in both forms: one evaluation
// of a service job, without writing the plan.
func BenchmarkProcessB(b *testing.B) {
	h := newHost(b, Options{})
	store := coretest.FilledStore(5000, 10)
	for _, count := range []int{1, 100} {
		job := coretest.PreemptingJob(count).Change(func(j *model.Job) { j.ID = fmt.Sprintf("asker-%d", count) }).Obj()
		snap := coretest.PutJobs(store, job)
		for _, name := range contenders {
			for form, m := range forms(b, h, name) {
				b.Run(fmt.Sprintf("%s/%s/nodes=5000/count=%d", name, form, count), func(b *testing.B) {
					v, err := policy.NewVersion(policy.Source{Name: "bench", Module: m, Grants: policy.Grants})
					if err != nil {
						b.Fatal(err)
					}
					set, err := policy.NewSet(coretest.Policies().Default(), v)
					if err != nil {
						b.Fatal(err)
					}
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
}

// BenchmarkProcessStart measures the start of another process until it can be called.
func BenchmarkProcessStart(b *testing.B) {
	h := newHost(b, Options{})
	m := guest(b, h, shippedGuest("default"), LoadOptions{})
	b.ReportAllocs()
	for b.Loop() {
		i, err := m.Start(sdk.NewConfig(nil, nil))
		if err != nil {
			b.Fatal(err)
		}
		i.Close()
	}
}
