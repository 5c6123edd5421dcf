package scheduler_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
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
	b.Run("budgets", benchmarkBudgets)
}

// benchmarkBudgets is construction (b) with a hundred disruption budgets, each
// allocation under two of them, and starts that differ: one preempting placement
// under the policy that reads budgets, and under default with strict ones.
func benchmarkBudgets(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		for _, kind := range []struct {
			name, policy string
			strict       bool
			slack        int32
		}{
			{"policy=kubernetes/budgets=plenty", "kubernetes", false, 1 << 20},
			{"policy=kubernetes/budgets=used-up", "kubernetes", false, 0},
			{"policy=kubernetes/budgets=strict", "kubernetes", true, 1},
			{"policy=default/budgets=strict", "default", true, 1},
		} {
			store := withBudgets(nodes, kind.policy, kind.strict, kind.slack)
			job := coretest.Asker(1).Obj()
			snap := coretest.Put(store, job)
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, kind.name), func(b *testing.B) {
				policies := coretest.Policies(func() sdk.Policy { return kubernetes.New() })
				s := scheduler.New(scheduler.Config{Policies: policies, Workers: runtime.GOMAXPROCS(0)})
				b.ReportAllocs()
				for b.Loop() {
					out, err := s.Process(coretest.Eval(job), snap, 1)
					if err != nil || !out.Placed() || len(out.Plan.Groups[0].Evict) == 0 {
						b.Fatal(err, out)
					}
				}
			})
		}
	}
}

// withBudgets is construction (b) with a budget for each of its 70 jobs, and 30
// that have some jobs each.
func withBudgets(nodes int, policy string, strict bool, slack int32) *state.Store {
	n := 0
	store := coretest.FilledWith(nodes, 10, func(j *model.Job) {
		j.Groups[0].Labels = map[string]string{"app": j.ID, "tier": fmt.Sprint(n % 30)}
		n++
	}, func(a *model.Allocation) { a.StartTime = -int64(a.Index*7919%10007) * 1e9 })
	txn := store.Begin(store.Snapshot().Index() + 1)
	for _, labels := range budgetLabels(store) {
		b := &model.Budget{
			Namespace: model.DefaultNamespace, Name: fmt.Sprint(labels), Labels: labels, Strict: strict,
			MinAvailable: &model.Bound{},
		}
		txn.UpsertBudget(b)
		again := *b
		at := slices.Index(txn.Budgets(), b)
		again.MinAvailable = &model.Bound{Number: max(0, int32(txn.BudgetSlack(int32(at)))-slack)}
		txn.UpsertBudget(&again)
	}
	config := *coretest.AllPreempt()
	config.Policy = policy
	txn.SetConfig(&config)
	txn.Commit()
	return store
}

func budgetLabels(store *state.Store) (list []map[string]string) {
	for j := range store.Snapshot().Jobs() {
		list = append(list, map[string]string{"app": j.ID})
	}
	for tier := range 30 {
		list = append(list, map[string]string{"tier": fmt.Sprint(tier)})
	}
	return list
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
