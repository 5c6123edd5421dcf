package scheduler_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// A boundable is a policy that declares which option it takes.
type boundable interface {
	sdk.Policy
	sdk.VictimSelector
	sdk.OptionScorer
}

// everywhere is a policy without a promise about the option that it takes, so that it is
// called for every node.
type everywhere struct{ boundable }

func (p everywhere) Info() sdk.Info {
	info := p.boundable.Info()
	info.LeastFirst, info.Monotone = false, false
	return info
}

// Configure implements sdk.Configurable.
func (p everywhere) Configure(c *sdk.Config) error {
	if configurable, ok := p.boundable.(sdk.Configurable); ok {
		return configurable.Configure(c)
	}
	return nil
}

// Settings implements sdk.Configurable.
func (p everywhere) Settings() []sdk.Setting {
	if configurable, ok := p.boundable.(sdk.Configurable); ok {
		return configurable.Settings()
	}
	return nil
}

// crowd is a cluster that is large enough for rounds, full of allocations of a few
// priorities and sizes. Some are not evictable, and there are budgets of all kinds.
func crowd(d *rand.Rand) *state.Store {
	few := 2 + d.IntN(6)
	store := coretest.FilledStoreWith(600, 4+d.IntN(8), func(j *model.Job) {
		j.Priority = int32(d.IntN(few) * 10)
		j.NonPreemptible = d.IntN(8) == 0
		j.AllOrNone = d.IntN(40) == 0
		g := j.Groups[0]
		g.Labels = map[string]string{"app": j.ID, "tier": fmt.Sprint(d.IntN(5))}
		*g = *coretest.Job(j.ID).Priority(j.Priority).Ask(int64(150+50*d.IntN(6)), int64(300+100*d.IntN(6)), 300).With(func(other *model.Group) {
			other.Labels = g.Labels
		}).Obj().Groups[0]
		g.Job = j
	}, func(a *model.Allocation) {
		a.StartTime, a.Started = -int64(d.IntN(50))*1e9, d.IntN(10) > 0
	})
	txn := store.Begin(store.Snapshot().Index() + 1)
	n, strict := 0, d.IntN(3)
	for _, labels := range someLabels(d, store) {
		b := &model.Budget{
			Namespace: model.DefaultNamespace, Name: fmt.Sprint("b", n), Labels: labels,
			Strict: d.IntN(2) < strict, MinAvailable: &model.Bound{},
		}
		n++
		txn.BudgetWriter().Upsert(b)
		at, _ := txn.BudgetPosition(b.Key())
		again := *b
		again.MinAvailable = &model.Bound{Number: max(0, int32(txn.DisruptionsAllowed(at, 0))-int32(d.IntN(4)))}
		txn.BudgetWriter().Upsert(&again)
	}
	txn.Commit()
	return store
}

// someLabels returns labels of single jobs and labels that several jobs share.
func someLabels(d *rand.Rand, store *state.Store) (list []map[string]string) {
	for j := range store.Snapshot().Jobs() {
		if d.IntN(3) == 0 {
			list = append(list, map[string]string{"app": j.ID})
		}
	}
	for tier := range d.IntN(5) {
		list = append(list, map[string]string{"tier": fmt.Sprint(tier)})
	}
	return list
}

// A policy that declares which option it takes, or that its tiers are monotone, returns the same
// in rounds as when it is called for all nodes, for any number of instances.
func TestRounds_EqualFullSearch(t *testing.T) {
	t.Parallel()
	for name, create := range map[string]func() boundable{
		"kubernetes":  func() boundable { return kubernetes.New() },
		"least-waste": func() boundable { return leastwaste.New() },
		"default":     func() boundable { return rules.New() },
		"rule":        func() boundable { return &rule{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			placed := 0
			for seed := range uint64(soak.Scale(10)) {
				d := rand.New(rand.NewPCG(23, seed))
				snap, j := crowdWith(d, name)
				plans := map[string]bool{}
				for workers, declares := range []bool{false, true, true} {
					plan := planOf(func() sdk.Policy {
						if !declares {
							return everywhere{create()}
						}
						return create()
					}, snap, j, max(1, workers))
					plans[format(plan)] = true
					for _, g := range plan.Plan.Groups {
						placed += len(g.Placements)
					}
				}
				if len(plans) != 1 {
					t.Fatalf("seed %d: %d plans: %v", seed, len(plans), plans)
				}
			}
			if placed < soak.Count(100, 100) {
				t.Errorf("%d placed: too few", placed)
			}
		})
	}
}

// crowdWith returns a crowd with a job that evicts under a policy.
func crowdWith(d *rand.Rand, name string) (*state.Snapshot, *model.Job) {
	store := crowd(d)
	j := coretest.PreemptingJob(1 + d.IntN(30)).Change(func(j *model.Job) { j.AllAtOnce = d.IntN(6) == 0 }).Obj()
	config := *coretest.AllPreempt()
	config.Policy = name
	txn := store.Begin(store.Snapshot().Index() + 1)
	txn.ConfigWriter().Set(&config)
	txn.Commit()
	return coretest.PutJobs(store, j), j
}

// planOf returns the outcome of a job under a policy, which is also the default one if that is
// its name.
func planOf(create func() sdk.Policy, snap *state.Snapshot, j *model.Job, workers int) *scheduler.Outcome {
	policies := []*policy.Version{coretest.Version(create)}
	if policies[0].Info().Name != policy.DefaultName {
		policies = append(policies, coretest.Version(func() sdk.Policy { return rules.New() }))
	}
	set, err := policy.NewSet(policies...)
	must(err)
	out, err := scheduler.New(scheduler.Config{Policies: set, Workers: workers}).Process(coretest.Eval(j), snap, 1)
	must(err)
	return out
}

// rule evicts what lost least, and chooses by the totals of options.
type rule struct{ order []int32 }

func (*rule) Info() sdk.Info {
	return sdk.Info{Name: "rule", Delta: 10, Monotone: true, Columns: sdk.LostWorkColumn}
}

func (p *rule) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	for o := range in.Len() {
		p.order = p.order[:0]
		for row := in.FirstRow[o]; row < in.FirstRow[o+1]; row++ {
			p.order = append(p.order, row)
		}
		slices.SortStableFunc(p.order, func(a, b int32) int { return cmp.Compare(in.Rows.LostWork[a], in.Rows.LostWork[b]) })
		for _, row := range p.order {
			out.Pick(int(row))
		}
		out.Next()
	}
	return nil
}

func (*rule) ScoreOptions(in *sdk.Options, out *sdk.OptionScores) error {
	for i := range in.Len() {
		out.Tiers[0][i], out.Tiers[1][i] = int64(in.VictimCount[i]), in.LostWork[i]
	}
	return nil
}

// A policy that also declares the order of victims is called only for the nodes with the
// lowest cost, independent of budgets.
func TestRounds_CallOnlyForLowestCost(t *testing.T) {
	skipComparisonUnderRace(t)
	t.Parallel()
	for name, c := range map[string]struct {
		strict bool
		slack  int32
	}{
		"plenty": {false, 1 << 20}, "some": {false, 1}, "used up": {false, 0}, "strict": {true, 1}, "strict, two": {true, 2},
	} {
		store := withBudgets(1000, "kubernetes", c.strict, c.slack)
		j := coretest.PreemptingJob(1).Obj()
		snap := coretest.PutJobs(store, j)
		asked := 0
		s := scheduler.New(scheduler.Config{
			Policies: coretest.Policies(func() sdk.Policy { return kubernetes.New() }),
			Observe: func(d scheduler.Decision) {
				for _, call := range d.Outcome.Calls {
					if call.Hook == "SelectVictims" {
						asked += call.Options
					}
				}
			},
		})
		out, err := s.Process(coretest.Eval(j), snap, 1)
		must(err)
		if len(out.Plan.Groups) == 0 || len(out.Plan.Groups[0].Evictions) == 0 || asked == 0 {
			t.Fatalf("%s: nothing is evicted, of %d options", name, asked)
		}
		if asked > 10 { // maximum that may start together
			t.Errorf("%s: called for %d options", name, asked)
		}
	}
}

// skipComparisonUnderRace skips tests that compare the results of many large searches, whose
// goroutines are those of every other one.
func skipComparisonUnderRace(t *testing.T) {
	t.Helper()
	if soak.Race && !soak.Full() {
		t.Skip("it compares results, and takes ten times as long under the race detector")
	}
}
