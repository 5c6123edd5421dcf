package counterfactual_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/counterfactual"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/plugins/wasm"
	defaults "github.com/cede-scheduler/cede/policies/default"
	"github.com/cede-scheduler/cede/policies/nomad"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
	"github.com/cede-scheduler/cede/sdk/rules"
)

const guests = "../../sdk/abi/testdata/guests"

// policies returns sets with a policy p: natively, and as modules of four languages. The
// Go policy is the source of the Go guest; the others are committed modules.
func policies(t *testing.T) map[string]*policy.Set {
	t.Helper()
	host, err := wasm.NewHost(wasm.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })
	sets := map[string]*policy.Set{}
	add := func(name string, m policy.Module) {
		v, err := policy.NewVersion(policy.Source{Name: "p", Module: m, Grants: policy.Grants})
		must(t, err)
		set, err := policy.NewSet(coretest.Version(func() sdk.Policy { return rules.New() }), v)
		must(t, err)
		sets[name] = set
	}
	add("go", policy.Native("default", defaults.New))
	add("nomad", policy.Native("nomad", func() sdk.Policy { return nomad.New() }))
	for _, name := range []string{"default-c", "default-rust", "default-assemblyscript", "decay-c", "decay-rust", "decay-assemblyscript"} {
		code, err := os.ReadFile(filepath.Join(guests, name+".wasm"))
		must(t, err)
		m, err := host.Load(context.Background(), code, policy.Limits{})
		must(t, err)
		add(name, m)
	}
	return sets
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const hour = int64(time.Hour)

// A caseKind is the kind of job that needs capacity.
type caseKind string

const (
	plainCase   caseKind = "plain"
	gangCase    caseKind = "gang"
	systemCase  caseKind = "system"
	wholeCase   caseKind = "all-or-none victims"
	bindingCase caseKind = "binding"
)

var caseKinds = []caseKind{plainCase, plainCase, gangCase, systemCase, wholeCase, bindingCase}

// drawCase returns a random full cluster, and an evaluation of a job that does not fit.
func drawCase(r *rand.Rand, set *policy.Set, kind caseKind) counterfactual.Case {
	s := state.New()
	txn := s.Begin(1)
	config := coretest.AllPreempt()
	config.Policy, config.PriorityDelta = "p", new(int32(1+r.IntN(12)))
	txn.ConfigWriter().Set(config)
	now := 1000 * hour
	if kind == bindingCase {
		eval := drawBindings(r, txn)
		return counterfactual.Case{Eval: eval, Snap: txn.Commit(), Now: now, Policies: set}
	}
	nodes := 1 + r.IntN(5)
	var jobs []*model.Job
	for i := range 3 + r.IntN(4) {
		job := coretest.Job(fmt.Sprintf("low%d", i)).Priority(int32(5+r.IntN(60))).Ask(int64(100+r.IntN(300)), int64(100+r.IntN(300)), 0).Obj()
		job.AllOrNone = kind == wholeCase
		if r.IntN(2) == 0 {
			job.Groups[0].Checkpoint = int64(time.Minute) * int64(1+r.IntN(40))
		}
		mustUpsert(txn, job)
		jobs = append(jobs, job)
	}
	for n := range nodes {
		id := fmt.Sprintf("n%d", n)
		if err := txn.NodeWriter().Upsert(coretest.Node(id, 1000, 1000, 1000)); err != nil {
			panic(err)
		}
		cpu, memory := int64(1000), int64(1000)
		for i := range 8 {
			job := jobs[r.IntN(len(jobs))]
			ask := job.Groups[0].Ask.Vec
			if ask[model.CPU] > cpu || ask[model.Memory] > memory {
				continue
			}
			cpu, memory = cpu-ask[model.CPU], memory-ask[model.Memory]
			a := coretest.Running(fmt.Sprintf("a%d-%d", n, i), job, 0, 10*n+i, id)
			a.StartTime = now - int64(r.IntN(3*60*60))*int64(time.Second)
			txn.AllocWriter().Upsert(a)
		}
	}
	job := coretest.Job("shop").Priority(int32(40+r.IntN(50))).Ask(int64(300+r.IntN(500)), int64(200+r.IntN(500)), 0).Obj()
	switch kind {
	case gangCase:
		job.AllAtOnce, job.Groups[0].Count = true, 1+r.IntN(3)
	case systemCase:
		job.Type = model.JobSystem
	case plainCase:
		job.Groups[0].Count = 1 + r.IntN(2)
	}
	mustUpsert(txn, job)
	return counterfactual.Case{Eval: coretest.Eval(job), Snap: txn.Commit(), Now: now, Policies: set}
}

// drawBindings fills clusters with bindings, and returns the evaluation of one that does
// not fit.
func drawBindings(r *rand.Rand, txn *state.Txn) *model.Evaluation {
	clusters := 1 + r.IntN(3)
	for c := range clusters {
		if err := txn.ClusterWriter().Upsert(&model.Cluster{ID: fmt.Sprintf("m%d", c), Capacity: model.Resources{"cpu": 1000}}); err != nil {
			panic(err)
		}
	}
	put := func(b *model.Binding) {
		b.Namespace = model.DefaultNamespace
		if err := txn.BindingWriter().Upsert(b); err != nil {
			panic(err)
		}
	}
	for c := range clusters {
		free := int64(1000)
		for i := range 6 {
			b := &model.Binding{ID: fmt.Sprintf("low%d-%d", c, i), Priority: int32(5 + r.IntN(60)), Replicas: 1 + r.IntN(3), Resources: model.Resources{"cpu": int64(50 + r.IntN(200))}}
			if r.IntN(3) == 0 {
				b.MinReplicas = 1
			}
			if used := b.Resources["cpu"] * int64(b.Replicas); used <= free {
				free -= used
				put(b)
				txn.AssignmentWriter().Upsert(&model.Assignment{
					ID: model.AssignmentID(b.Key(), fmt.Sprintf("m%d", c), "e"), Binding: b.Key(), ClusterID: fmt.Sprintf("m%d", c),
					Replicas: b.Replicas, Vec: b.TotalAsk(b.Replicas), Client: model.ClientRunning,
				})
			}
		}
	}
	shop := &model.Binding{ID: "shop", Priority: int32(40 + r.IntN(50)), Preempts: true, Replicas: 1 + r.IntN(3), Resources: model.Resources{"cpu": int64(150 + r.IntN(200))}}
	put(shop)
	return &model.Evaluation{
		ID: "eval-shop", Namespace: shop.Namespace, JobID: shop.ID, Type: model.JobBinding, Priority: shop.Priority, TriggeredBy: model.TriggerJobRegister,
	}
}

func mustUpsert(txn *state.Txn, j *model.Job) {
	if err := txn.JobWriter().Upsert(j); err != nil {
		panic(err)
	}
}

// Every reported change makes the real scheduler spare the victim, no smaller point of its
// lattice does, and the number of evaluations is bounded.
func TestAsk_ChangesAreMinimalAndFlipTheDecision(t *testing.T) {
	t.Parallel()
	sets := policies(t)
	for name, set := range sets {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(len(name)), 7))
			kinds := map[counterfactual.Kind]int{}
			count := soak.Count(48, (5000+len(sets)-1)/len(sets))
			for decisions, draws := 0, 0; decisions < count; draws++ {
				kind := caseKinds[decisions%len(caseKinds)]
				if draws > 20*count {
					t.Fatalf("%d of %d cases evict, and none of the last ones is of the kind %q", decisions, draws, kind)
				}
				c := drawCase(r, set, kind)
				x, err := counterfactual.New(t.Context(), c)
				must(t, err)
				victims := x.Evicted()
				if len(victims) == 0 {
					continue
				}
				decisions++
				victim := victims[r.IntN(len(victims))].ID
				answer, err := x.Ask(t.Context(), victim, "")
				must(t, err)
				if answer.Evaluations > counterfactual.MaxEvaluations || x.Used() != answer.Evaluations {
					t.Fatalf("%d evaluations", answer.Evaluations)
				}
				checkAnswer(t, c, answer)
				for _, flip := range answer.Changes {
					kinds[flip.Change.Kind]++
				}
			}
			if kinds[counterfactual.HigherPriority] == 0 || kinds[counterfactual.SmallerRequest] == 0 {
				t.Errorf("changes by kind: %v", kinds)
			}
			t.Logf("changes by kind %v", kinds)
		})
	}
}

// checkAnswer makes every claim of an answer true or false with a new Explorer.
func checkAnswer(t *testing.T, c counterfactual.Case, answer *counterfactual.Answer) {
	t.Helper()
	x, err := counterfactual.New(t.Context(), c)
	must(t, err)
	if !x.Reproduces(answer.Versions) {
		t.Fatalf("victims %+v, and again %+v", answer.Versions, x.Evicted())
	}
	claimed := 0
	for _, lattice := range x.Lattices(answer.Victim.ID, "") {
		at := slices.IndexFunc(answer.Changes, func(f counterfactual.Flip) bool { return slices.Contains(lattice, f.Change) })
		for _, change := range lattice {
			spares, err := x.Spares(t.Context(), change, answer.Victim.ID)
			must(t, err)
			claim := at >= 0 && answer.Changes[at].Change == change
			if spares != claim {
				t.Fatalf("%+v spares %+v: %v, claimed %v of %+v", change, answer.Victim, spares, claim, answer.Changes)
			}
			if claim {
				claimed++
				break
			}
		}
	}
	if claimed != len(answer.Changes) {
		t.Fatalf("%d of %d changes are of a lattice", claimed, len(answer.Changes))
	}
}

// The modified states are equal to those that an operator would make: jobs that are
// registered with the smaller request, or with the higher priority, lead the scheduler to
// the same victims.
func TestAsk_ChangesEqualRegistrations(t *testing.T) {
	t.Parallel()
	set := policyP(t, coretest.Policies())
	r := rand.New(rand.NewPCG(3, 3))
	compared := map[counterfactual.Kind]int{}
	for compared[counterfactual.SmallerRequest] < soak.Count(20, 500) || compared[counterfactual.HigherPriority] < soak.Count(20, 500) {
		c := drawCase(r, set, plainCase)
		x, err := counterfactual.New(t.Context(), c)
		must(t, err)
		victims := x.Evicted()
		if len(victims) == 0 {
			continue
		}
		answer, err := x.Ask(t.Context(), victims[0].ID, "g")
		must(t, err)
		for _, f := range answer.Changes {
			if f.Change.Kind == counterfactual.LaterDecision {
				continue
			}
			compared[f.Change.Kind]++
			fork := c.Snap.Fork(c.Snap.Index() + 1)
			register(fork, c.Snap, answer, f.Change)
			out, err := scheduler.New(scheduler.Config{Policies: c.Policies, Forget: true}).Process(c.Eval, fork.Snapshot(), c.Now)
			must(t, err)
			for i := range out.Plan.Groups {
				if slices.ContainsFunc(out.Plan.Groups[i].Evictions, func(e model.Eviction) bool { return e.AllocID == answer.Victim.ID }) {
					t.Fatalf("%+v does not spare %+v", f.Change, answer.Victim)
				}
			}
		}
	}
}

// register registers the job that a change is about again, as an operator would, and updates
// its allocations in place.
func register(fork *state.Txn, snap *state.Snapshot, answer *counterfactual.Answer, c counterfactual.Change) {
	rebuild := func(id string) (*model.Job, *model.Job) {
		old := snap.Job(model.JobKey{Namespace: model.DefaultNamespace, ID: id})
		g := old.Groups[0]
		job := coretest.Job(id).Priority(old.Priority).Count(g.Count).Ask(g.Resources["cpu"], g.Resources["memory"], 0).Obj()
		job.Groups[0].Checkpoint = g.Checkpoint
		return old, job
	}
	if c.Kind == counterfactual.SmallerRequest {
		_, job := rebuild("shop")
		job.Groups[0].Resources[c.Resource] = c.Amount
		mustUpsert(fork, job)
		return
	}
	old, job := rebuild(answer.Victim.JobID)
	job.Priority += c.Priority
	mustUpsert(fork, job)
	for _, a := range snap.AppendJobAllocs(nil, old.Key()) {
		own := *a
		own.Job, own.Group = job, job.Groups[0]
		fork.AllocWriter().Upsert(&own)
	}
}

// Answers are sentences, and readers of one namespace see no objects of another.
func TestAnswer_TextAndRedaction(t *testing.T) {
	t.Parallel()
	a := &counterfactual.Answer{
		Victim: counterfactual.Ref{ID: "1", Name: "r1", Namespace: "a", Priority: 20},
		By:     counterfactual.Ref{Name: "shop", Namespace: "b", Priority: 70},
		Changes: []counterfactual.Flip{
			{Change: counterfactual.Change{Kind: counterfactual.HigherPriority, Priority: 3}},
			{Change: counterfactual.Change{Kind: counterfactual.LaterDecision, Later: 4 * time.Minute}, Checkpoint: true},
			{Change: counterfactual.Change{Kind: counterfactual.SmallerRequest, Group: "web", Resource: "cpu", Amount: 1200, Of: 2000}},
		},
		Next: []counterfactual.Ref{{ID: "7", Name: "r7", Namespace: "b", Priority: 30}},
	}
	want := []string{
		"r1 would have stayed with priority +3, or 4 min later (checkpoint), or if shop.web had requested only 1,200 millicores of cpu instead of 2,000.",
		"If it could not be evicted, r7 (priority 30) would be evicted instead.",
	}
	if got := a.Text(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	own := a.Redact(func(namespace string) bool { return namespace == "a" })
	want = []string{
		"r1 would have stayed with priority +3, or 4 min later (checkpoint).",
		"If it could not be evicted, (another namespace) (priority 30) would be evicted instead.",
	}
	if got := own.Text(); !slices.Equal(got, want) || own.Next[0].ID != "" {
		t.Errorf("redacted: %q, want %q", got, want)
	}
	if a.Next[0].ID != "7" || len(a.Changes) != 3 {
		t.Error("Redact changed its receiver")
	}
}

// The context ends a question between two evaluations.
func TestAsk_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := drawCase(rand.New(rand.NewPCG(1, 1)), policyP(t, coretest.Policies()), plainCase)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := counterfactual.New(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// policyP returns the set with its default policy under the name p.
func policyP(t *testing.T, set *policy.Set) *policy.Set {
	t.Helper()
	v, err := policy.NewVersion(policy.Source{Name: "p", Module: policy.Native("default", defaults.New), Grants: policy.Grants})
	must(t, err)
	both, err := policy.NewSet(set.Default(), v)
	must(t, err)
	return both
}
