//go:build unix

package wasm_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/planner"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/core/worker"
	"github.com/cede-scheduler/cede/plugins/wasm"
	"github.com/cede-scheduler/cede/policies/karmada"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// BenchmarkBindings submits 10,000 bindings to 200 member clusters one after another, each
// from the queue to the committed plan, without the log and the agents. In "room" there is
// enough capacity. In "preempt" 8,000 bindings fill the clusters and 2,000 of higher
// priority evict; evicted replicas stop at once, and their bindings return to the queue.
func BenchmarkBindings(b *testing.B) {
	h := host(b, wasm.Options{})
	for _, kind := range []struct {
		name       string
		low, high  int
		perCluster int64 // millicores
	}{{"room", 10_000, 0, 200_000}, {"preempt", 8_000, 2_000, 64_000}} {
		for _, c := range []contender{
			{"karmada/native", func(testing.TB, *wasm.Host) policy.Module {
				return policy.Native("bench", func() sdk.Policy { return karmada.New() })
			}},
			{"karmada/go", goModule("karmada")},
		} {
			b.Run(kind.name+"/"+c.name, func(b *testing.B) {
				module := c.module(b, h)
				var took []time.Duration
				var evicted int
				before := cpuTime(b)
				for b.Loop() {
					v, err := policy.NewVersion(policy.Source{Name: "karmada", Module: module})
					check(b, err)
					set, err := policy.NewSet(coretest.Policies().Default(), v)
					check(b, err)
					p := newBindingPool(b, set, 200, kind.perCluster)
					p.submit(kind.low, 0)
					p.submit(kind.high, 100)
					took, evicted = append(took, p.took...), p.evicted
					set.Unpin()
				}
				slices.Sort(took)
				n := len(took)
				b.ReportMetric(float64((kind.low+kind.high)*b.N)/b.Elapsed().Seconds(), "bindings/s")
				b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(kind.low+kind.high)/float64(b.N), "cpu-us/binding")
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "decisions/s")
				b.ReportMetric(float64(took[n/2].Microseconds()), "p50-us")
				b.ReportMetric(float64(took[n*99/100].Microseconds()), "p99-us")
				b.ReportMetric(float64(evicted), "evicted")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// cpuTime returns the processor time of the process: on a shared machine it is more stable
// than wall time.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	check(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bindingPool contains the parts of a server that bindings need.
type bindingPool struct {
	b       testing.TB
	store   *state.Store
	broker  *broker.Broker
	feed    *worker.Feed
	worker  *worker.Worker
	rand    *rand.Rand
	ids     int
	ends    []string // stopped replicas
	took    []time.Duration
	evicted int
	before  *state.Snapshot // state on which the current plan is committed
}

func newBindingPool(b testing.TB, set *policy.Set, clusters int, cpu int64) *bindingPool {
	p := &bindingPool{b: b, store: state.New(), rand: rand.New(rand.NewPCG(1, 2))}
	var err error
	p.broker, err = broker.New(broker.Config{Clock: clock.NewVirtual(time.Unix(0, 1))})
	check(b, err)
	p.feed = &worker.Feed{Broker: p.broker, Blocked: broker.NewBlocked(p.broker), Policies: set}
	p.broker.Enable()
	txn := p.begin()
	for i := range clusters {
		check(b, txn.ClusterWriter().Upsert(&model.Cluster{
			ID: fmt.Sprintf("m%03d", i), Capacity: model.Resources{"cpu": cpu, "memory": 2 * cpu},
			Attributes: map[string]string{"region": fmt.Sprint("r", i%8)},
		}))
	}
	config := *coretest.AllPreempt()
	config.Policy = "karmada"
	txn.ConfigWriter().Set(&config)
	txn.Commit()
	applier := planner.NewApplier(planner.Config{
		Store: p.store, Committer: planner.DirectCommitter{Store: p.store, OnCommit: p.committed}, PlacementVerifier: &feasible.Verifier{},
	})
	p.worker = worker.New(worker.Config{
		Queue: worker.LocalQueue(p.broker), Planner: direct{p, applier}, States: p.store, Evals: p,
		Scheduler: scheduler.New(scheduler.Config{Policies: set, Workers: runtime.GOMAXPROCS(0)}),
		Clock:     clock.NewVirtual(time.Unix(0, 1)), NewEvalID: p.id,
	})
	return p
}

// direct lets the worker submit plans without goroutines.
type direct struct {
	*bindingPool
	applier *planner.Applier
}

func (d direct) Submit(_ context.Context, plan *model.Plan) (*model.PlanResult, error) {
	d.before = d.store.Snapshot()
	return d.applier.ApplyOne(plan)
}

func (p *bindingPool) begin() *state.Txn { return p.store.Begin(p.store.Snapshot().Index() + 1) }

func (p *bindingPool) id() string {
	p.ids++
	return fmt.Sprint("eval-", p.ids)
}

func (p *bindingPool) WriteEvals(_ context.Context, _ broker.Delivery, evals ...*model.Evaluation) error {
	for len(evals) > 0 {
		txn := p.begin()
		txn.EvalWriter().Upsert(evals...)
		evals = p.feed.Evals(txn.Commit(), 1, evals...)
	}
	return nil
}

// submit submits bindings of ten priorities one after another.
func (p *bindingPool) submit(n int, priority int32) {
	for range n {
		b := &model.Binding{
			Namespace: model.DefaultNamespace, ID: fmt.Sprint("binding-", p.id()), Priority: priority + int32(p.rand.IntN(10)), Preempts: priority > 0,
			Replicas: 1 + p.rand.IntN(6), MaxClusters: 1 + p.rand.IntN(3),
			Resources: model.Resources{"cpu": 100 + 100*p.rand.Int64N(8), "memory": 256 * (1 + p.rand.Int64N(4))},
		}
		if p.rand.IntN(2) == 0 {
			b.Constraints = []model.Constraint{{Attribute: "region", Operator: "=", Value: fmt.Sprint("r", p.rand.IntN(8))}}
		}
		ev := &model.Evaluation{
			ID: p.id(), Namespace: b.Namespace, JobID: b.ID, Type: model.JobBinding, Priority: b.Priority,
			TriggeredBy: model.TriggerJobRegister,
		}
		txn := p.begin()
		check(p.b, txn.BindingWriter().Upsert(b))
		txn.EvalWriter().Upsert(ev)
		p.feed.Evals(txn.Commit(), 1, ev)
		p.drain()
	}
}

func (p *bindingPool) drain() {
	for {
		d, ok := p.broker.TryDequeue(nil)
		if !ok && !p.feed.RetryDeferred(p.store.Snapshot(), 1) {
			return
		}
		if !ok {
			continue
		}
		from := time.Now()
		check(p.b, p.worker.Work(p.b.Context(), d))
		p.took = append(p.took, time.Since(from))
		if len(p.ends) > 0 {
			p.end()
		}
		for ends := p.feed.Reap(1); len(ends) > 0; ends = p.feed.Reap(1) {
			check(p.b, p.WriteEvals(p.b.Context(), broker.Delivery{}, ends...))
		}
	}
}

// end reports stopped replicas as gone, as clusters do.
func (p *bindingPool) end() {
	txn := p.begin()
	var places []string
	for _, id := range apply.AssignmentEnds(txn.AssignmentWriter(), 1, p.ends...) {
		places = append(places, model.ClusterLocation(id))
	}
	p.ends = p.ends[:0]
	p.feed.Freed(txn.Commit(), 1, places...)
}

func (p *bindingPool) committed(snap *state.Snapshot, batch *apply.Batch, evals []*model.Evaluation) {
	var rooms []string
	for _, bp := range batch.Plans {
		for _, i := range bp.Groups {
			g := &bp.Plan.Groups[i]
			for _, w := range g.Withdrawals {
				p.ends = append(p.ends, w.AssignmentID)
				p.evicted++
				rooms = append(rooms, model.ClusterLocation(snap.Assignment(w.AssignmentID).ClusterID))
			}
			for _, a := range g.Assignments {
				if p.before.HasClaimOn(a.ClusterID, bp.Plan.Job) {
					rooms = append(rooms, model.ClusterLocation(a.ClusterID))
				}
			}
		}
	}
	p.feed.Evals(snap, 1, evals...)
	slices.Sort(rooms)
	p.feed.Freed(snap, 1, slices.Compact(rooms)...)
}
