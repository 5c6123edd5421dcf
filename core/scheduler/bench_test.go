package scheduler_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
)

// BenchmarkB is construction (b): one evaluation of a service job, plan not
// written.
func BenchmarkB(b *testing.B) {
	for _, kind := range []struct {
		name    string
		perNode int
	}{{"preempt", 10}, {"room", 5}} {
		for _, nodes := range []int{1000, 5000} {
			store := coretest.Filled(nodes, kind.perNode)
			for _, count := range []int{1, 100} {
				job := coretest.Asker(count).Change(func(j *model.Job) { j.ID = fmt.Sprintf("asker-%d", count) }).Obj()
				snap := coretest.Put(store, job)
				b.Run(fmt.Sprintf("%s/nodes=%d/count=%d", kind.name, nodes, count), func(b *testing.B) {
					s := scheduler.New(scheduler.Config{Policies: coretest.Policies(), Workers: runtime.GOMAXPROCS(0)})
					b.ReportAllocs()
					for b.Loop() {
						out, err := s.Process(coretest.Eval(job), snap, 1)
						if err != nil || !out.Placed() {
							b.Fatal(err, out)
						}
					}
				})
			}
		}
	}
}

// BenchmarkC is construction (c): one evaluation of a system job that evicts on
// every node.
func BenchmarkC(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		store := coretest.Filled(nodes, 10)
		job := coretest.Asker(1).Type(model.JobSystem).Obj()
		snap := coretest.Put(store, job)
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			s := scheduler.New(scheduler.Config{Policies: coretest.Policies(), Workers: runtime.GOMAXPROCS(0)})
			b.ReportAllocs()
			for b.Loop() {
				out, err := s.Process(coretest.Eval(job), snap, 1)
				if err != nil || !out.Placed() {
					b.Fatal(err, out)
				}
			}
		})
	}
}
