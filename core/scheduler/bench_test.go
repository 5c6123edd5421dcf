package scheduler_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/heap"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// BenchmarkB is construction (b): one evaluation of a service job. The plan is not
// written.
func BenchmarkB(b *testing.B) {
	for _, kind := range []struct {
		name    string
		perNode int
	}{{"preempt", 10}, {"fit", 5}} {
		for _, nodes := range []int{1000, 5000} {
			store := coretest.FilledStore(nodes, kind.perNode)
			for _, count := range []int{1, 100} {
				job := coretest.PreemptingJob(count).Change(func(j *model.Job) { j.ID = fmt.Sprintf("asker-%d", count) }).Obj()
				snap := coretest.PutJobs(store, job)
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
	b.Run("waste", benchmarkWaste)
	b.Run("budgets", benchmarkBudgets)
	b.Run("contested", benchmarkContested)
}

// benchmarkWaste is construction (b) with different start times: one preempting placement
// under a policy that reads lost work, so that no node shares the answer of another one.
func benchmarkWaste(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		store := coretest.FilledStoreWith(nodes, 10, func(*model.Job) {}, func(a *model.Allocation) {
			a.StartTime = -int64(a.Index*7919%10007) * 1e9
		})
		txn := store.Begin(store.Snapshot().Index() + 1)
		config := *coretest.AllPreempt()
		config.Policy = "least-waste"
		txn.ConfigWriter().Set(&config)
		txn.Commit()
		job := coretest.PreemptingJob(1).Obj()
		snap := coretest.PutJobs(store, job)
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			policies := coretest.Policies(func() sdk.Policy { return leastwaste.New() })
			s := scheduler.New(scheduler.Config{Policies: policies, Workers: runtime.GOMAXPROCS(0)})
			b.ReportAllocs()
			for b.Loop() {
				out, err := s.Process(coretest.Eval(job), snap, 1)
				if err != nil || !out.Placed() || len(out.Plan.Groups[0].Evictions) == 0 {
					b.Fatal(err, out)
				}
			}
		})
	}
}

// benchmarkBudgets is construction (b) with a hundred disruption budgets, each
// allocation under two of them, and different start times: one preempting placement
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
			job := coretest.PreemptingJob(1).Obj()
			snap := coretest.PutJobs(store, job)
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, kind.name), func(b *testing.B) {
				policies := coretest.Policies(func() sdk.Policy { return kubernetes.New() })
				s := scheduler.New(scheduler.Config{Policies: policies, Workers: runtime.GOMAXPROCS(0)})
				b.ReportAllocs()
				for b.Loop() {
					out, err := s.Process(coretest.Eval(job), snap, 1)
					if err != nil || !out.Placed() || len(out.Plan.Groups[0].Evictions) == 0 {
						b.Fatal(err, out)
					}
				}
			})
		}
	}
}

// benchmarkContested is construction (b) with strict budgets that allow one disruption
// if two are needed on every node: one budget over everything, so that amounts decide,
// or three that any two allocations share, so that the bound on sets is reached.
func benchmarkContested(b *testing.B) {
	for _, budgets := range []int{1, 3} {
		for _, nodes := range []int{1000, 5000} {
			job := coretest.PreemptingJob(1).Obj()
			snap := coretest.PutJobs(sharedInPairs(nodes, budgets), job)
			b.Run(fmt.Sprintf("budgets=%d/nodes=%d", budgets, nodes), func(b *testing.B) {
				s := scheduler.New(scheduler.Config{Policies: coretest.Policies(), Workers: runtime.GOMAXPROCS(0)})
				b.ReportAllocs()
				for b.Loop() {
					out, err := s.Process(coretest.Eval(job), snap, 1)
					if err != nil || len(out.Plan.Groups) > 0 || out.SearchesCut != budgets/2 {
						b.Fatal(err, format(out))
					}
				}
			})
		}
	}
}

// sharedInPairs is construction (b) with strict budgets that allow one disruption, each
// over all jobs except for every third one.
func sharedInPairs(nodes, budgets int) *state.Store {
	store := coretest.FilledStoreWith(nodes, 10, func(j *model.Job) {
		j.Groups[0].Labels = map[string]string{}
		for k := range budgets {
			if budgets == 1 || int(j.Priority)/5%3 != k {
				j.Groups[0].Labels[fmt.Sprint("b", k)] = "yes"
			}
		}
	}, func(*model.Allocation) {})
	txn := store.Begin(store.Snapshot().Index() + 1)
	for k := range budgets {
		txn.BudgetWriter().Upsert(&model.Budget{
			Namespace: model.DefaultNamespace, Name: fmt.Sprint("b", k), Strict: true,
			Labels: map[string]string{fmt.Sprint("b", k): "yes"}, MaxEvictions: &model.Rate{Number: 1, Window: time.Hour},
		})
	}
	txn.Commit()
	return store
}

// withBudgets is construction (b) with a budget for each of its 70 jobs, and 30
// budgets over several jobs each.
func withBudgets(nodes int, policy string, strict bool, slack int32) *state.Store {
	n := 0
	store := coretest.FilledStoreWith(nodes, 10, func(j *model.Job) {
		j.Groups[0].Labels = map[string]string{"app": j.ID, "tier": fmt.Sprint(n % 30)}
		n++
	}, func(a *model.Allocation) { a.StartTime = -int64(a.Index*7919%10007) * 1e9 })
	txn := store.Begin(store.Snapshot().Index() + 1)
	for _, labels := range budgetLabels(store) {
		b := &model.Budget{
			Namespace: model.DefaultNamespace, Name: fmt.Sprint(labels), Labels: labels, Strict: strict,
			MinAvailable: &model.Bound{},
		}
		txn.BudgetWriter().Upsert(b)
		again := *b
		at := slices.Index(txn.Budgets(), b)
		again.MinAvailable = &model.Bound{Number: max(0, int32(txn.DisruptionsAllowed(int32(at), 0))-slack)}
		txn.BudgetWriter().Upsert(&again)
	}
	config := *coretest.AllPreempt()
	config.Policy = policy
	txn.ConfigWriter().Set(&config)
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
		store := coretest.FilledStore(nodes, 10)
		job := coretest.PreemptingJob(1).Type(model.JobSystem).Obj()
		snap := coretest.PutJobs(store, job)
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

// BenchmarkTogether measures decisions about several nodes, on a full cluster of racks
// of fifty nodes: a gang of two groups that evicts, one that stays blocked because its
// search is cut, one that must be in the only rack with enough capacity, and an instance
// that evicts conflicting allocations on other nodes. Then the first gang among jobs
// that are evicted all-or-none, of seven hundred instances each, among jobs that protect
// allocations for their first hour, and among jobs under a hundred strict budgets.
func BenchmarkTogether(b *testing.B) {
	store := inRacks(coretest.FilledStore(5000, 10), 50)
	with := func(change func(*model.Job)) *state.Store {
		n := 0
		return coretest.FilledStoreWith(5000, 10, change, func(a *model.Allocation) {
			n++
			a.StartTime = -int64(n%7) * int64(20*time.Minute)
		})
	}
	me := map[string]string{"app": "me"}
	ask := func(id string, first int) *coretest.JobBuilder {
		return coretest.PreemptingJob(first).Change(func(j *model.Job) { j.ID, j.AllAtOnce = id, true })
	}
	large := coretest.PreemptingJob(1).Obj().Groups[0].Resources
	second := func(g *model.Group) { g.Resources = large }
	twice := func() *model.Job { return ask("evicts", 20).Group("h", 20).With(second).Obj() }
	for _, c := range []struct {
		name  string
		job   *model.Job
		waits bool
		store *state.Store // nil: the racks
	}{
		{"gang=evicts", twice(), false, nil},
		{"gang=cut", ask("cut", 51).With(func(g *model.Group) {
			g.Labels, g.Constraints = me, []model.Constraint{{Operator: model.OpDistinctHosts}}
			g.Colocate = []model.LabelTerm{{Labels: me, TopologyKey: "rack"}}
		}).Obj(), true, nil},
		{"gang=rack", ask("rack", 50).With(func(g *model.Group) {
			g.Labels = me
			g.Colocate = []model.LabelTerm{{Labels: me, TopologyKey: "rack"}}
		}).Obj(), false, nil},
		{"elsewhere", coretest.PreemptingJob(1).Change(func(j *model.Job) { j.ID = "elsewhere" }).With(func(g *model.Group) {
			g.Separate = []model.LabelTerm{{Labels: map[string]string{"app": "keeper"}, TopologyKey: "rack"}}
		}).Obj(), false, nil},
		{"gang=all-or-none jobs", twice(), false, with(func(j *model.Job) { j.AllOrNone = true })},
		{"gang=protected jobs", twice(), false, with(func(j *model.Job) {
			j.Toleration = &model.PreemptionToleration{MinRuntime: int64(time.Hour)}
		})},
		{"gang=strict budgets", twice(), false, withBudgets(5000, "default", true, 30)},
	} {
		if c.store == nil {
			c.store = store
		}
		snap := coretest.PutJobs(c.store, c.job)
		b.Run(c.name, func(b *testing.B) {
			s := scheduler.New(scheduler.Config{Policies: coretest.Policies(), Workers: runtime.GOMAXPROCS(0), Forget: true})
			b.ReportAllocs()
			for b.Loop() {
				out, err := s.Process(coretest.Eval(c.job), snap, 1)
				if err != nil || out.Placed() == c.waits {
					b.Fatal(err, format(out), out.Failed["g"])
				}
			}
		})
	}
}

// A counter counts the options about which a policy was called for victims: the nodes that were
// evaluated. A gang that is planned in one more domain costs a few hundred of them.
type counter struct {
	boundable
	options *atomic.Int64
}

func (p counter) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	p.options.Add(int64(in.Len()))
	return p.boundable.SelectVictims(in, out)
}

func (p counter) Settings() []sdk.Setting { return everywhere{p.boundable}.Settings() }

func (p counter) Configure(c *sdk.Config) error { return everywhere{p.boundable}.Configure(c) }

// BenchmarkRack is a gang of forty that shares one of a hundred racks of a full cluster of
// 5,000 nodes, in which priorities differ from rack to rack. It reports the 99th percentile, with
// the heap of a server: a decision that meets a collection takes several times as long. It also
// reports the nodes that were evaluated, which do not depend on the load of the machine.
//
// With ages, the instances have run for up to a day, and those of some racks for up to an hour. Alike,
// they have run for up to a day in all racks, so that none is much cheaper than the others.
func BenchmarkRack(b *testing.B) {
	b.Cleanup(heap.Keep(heap.MaxHeadroom))
	b.Run("default", func(b *testing.B) { benchmarkRack(b, "default", nil) })
	b.Run("kubernetes", func(b *testing.B) { benchmarkRack(b, "kubernetes", nil) })
	b.Run("least-waste", func(b *testing.B) { benchmarkRack(b, "least-waste", nil) })
	const day = int64(24 * time.Hour)
	age := func(a *model.Allocation) int64 { return int64(a.Index) * 7919 * int64(time.Second) % day }
	b.Run("least-waste-ages", func(b *testing.B) {
		benchmarkRack(b, "least-waste", func(rack int, a *model.Allocation) int64 {
			if rack%10 == 3 {
				return age(a) / 24
			}
			return age(a)
		})
	})
	b.Run("least-waste-alike", func(b *testing.B) {
		benchmarkRack(b, "least-waste", func(_ int, a *model.Allocation) int64 { return age(a) })
	})
}

// benchmarkRack is BenchmarkRack under a policy. age returns how long an instance has run; nil: they
// have just started.
func benchmarkRack(b *testing.B, name string, age func(rack int, a *model.Allocation) int64) {
	store := inRacks(coretest.FilledStoreWith(5000, 10, func(*model.Job) {}, func(a *model.Allocation) {
		if age != nil {
			a.StartTime = -age(a.Index/500, a)
		}
	}), 50)
	r := rand.New(rand.NewPCG(5, 5))
	txn := store.Begin(store.Snapshot().Index() + 1)
	for rack := range 100 {
		j := coretest.Job(fmt.Sprint("rack-", rack)).Priority(int32(5+r.IntN(60))).Ask(50, 50, 0).Count(50).Obj()
		must(txn.JobWriter().Upsert(j))
		for i := range 50 {
			txn.AllocWriter().Upsert(coretest.Running(fmt.Sprint("x", rack, "-", i), j, 0, i, fmt.Sprintf("n%05d", 50*rack+i)))
		}
	}
	txn.Commit()
	me := map[string]string{"app": "me"}
	job := coretest.PreemptingJob(40).With(func(g *model.Group) {
		g.Labels, g.Colocate = me, []model.LabelTerm{{Labels: me, TopologyKey: "rack"}}
	}).Change(func(j *model.Job) { j.AllAtOnce = true }).Obj()
	snap := coretest.PutJobs(store, job)
	config := *snap.Config()
	config.Policy = name
	txn = store.Begin(store.Snapshot().Index() + 1)
	txn.ConfigWriter().Set(&config)
	snap = txn.Commit()
	var options atomic.Int64
	policies := coretest.Policies(
		func() sdk.Policy { return counter{kubernetes.New(), &options} }, func() sdk.Policy { return counter{leastwaste.New(), &options} },
	)
	s := scheduler.New(scheduler.Config{Policies: policies, Workers: runtime.GOMAXPROCS(0), Forget: true})
	b.ReportAllocs()
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		out, err := s.Process(coretest.Eval(job), snap, 1)
		times = append(times, time.Since(start))
		if err != nil || !out.Placed() {
			b.Fatal(err, format(out))
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(times[0].Microseconds())/1000, "min-ms")
	if name != "default" { // its instances are those of the scheduler
		b.ReportMetric(float64(options.Load())/float64(len(times)), "nodes/op")
	}
}

// BenchmarkWithoutTopology is construction (b) for work that shares no domain, with the search
// of domains and without it: `benchstat -col /domains` compares them.
func BenchmarkWithoutTopology(b *testing.B) {
	store := coretest.FilledStore(5000, 10)
	for _, count := range []int{1, 40} {
		job := coretest.PreemptingJob(count).Change(func(j *model.Job) { j.AllAtOnce = count > 1 }).Obj()
		snap := coretest.PutJobs(store, job)
		for _, search := range []bool{false, true} {
			b.Run(fmt.Sprintf("count=%d/domains=%v", count, search), func(b *testing.B) {
				s := scheduler.New(scheduler.Config{Policies: coretest.Policies(), Workers: runtime.GOMAXPROCS(0), Forget: true, NoDomainSearch: !search})
				b.ReportAllocs()
				for b.Loop() {
					if out, err := s.Process(coretest.Eval(job), snap, 1); err != nil || !out.Placed() {
						b.Fatal(err, format(out))
					}
				}
			})
		}
	}
}

// inRacks adds a rack to every node, and to each rack an allocation that excludes others.
func inRacks(store *state.Store, each int) *state.Store {
	txn := store.Begin(store.Snapshot().Index() + 1)
	keeper := coretest.Job("keeper").Priority(5).Ask(1, 1, 0).Count(100).With(func(g *model.Group) {
		g.Labels = map[string]string{"app": "keeper"}
	}).Obj()
	if err := txn.JobWriter().Upsert(keeper); err != nil {
		panic(err)
	}
	for i, n := range slices.Collect(txn.Nodes()) {
		next := *n
		next.Attributes = maps.Clone(n.Attributes)
		next.Attributes["rack"] = fmt.Sprint("r", i/each)
		if err := txn.NodeWriter().Upsert(&next); err != nil {
			panic(err)
		}
		if i%each == 0 {
			txn.AllocWriter().Upsert(coretest.Running(fmt.Sprint("keeper-", i), keeper, 0, i/each, n.ID))
		}
	}
	txn.Commit()
	return store
}
