package preempt

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/prune"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/policies/aging"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	"github.com/cede-scheduler/cede/policies/optimal"
	"github.com/cede-scheduler/cede/policies/protect"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// No option has lower tiers than the bound of its node, under each policy that declares
// Monotone, and under gates that depend on age. Without a gate, bounds are close: many options
// have the tiers of theirs.
func TestBounds_AreBelowEveryOption(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]*policy.Version{
		"default":        coretest.Version(func() sdk.Policy { return rules.New() }),
		"least-waste":    coretest.Version(func() sdk.Policy { return leastwaste.New() }),
		"optimal":        coretest.Version(func() sdk.Policy { return optimal.New() }),
		"optimal, waste": configured(t, func() sdk.Policy { return optimal.New() }, `{"cost": "waste"}`),
		"protect":        configured(t, func() sdk.Policy { return protect.New() }, `{"minRuntime": "30s"}`),
		"protect, steps": configured(t, func() sdk.Policy { return protect.New() }, `{"minRuntime": "30s", "maxEvictions": 1}`),
		"aging":          configured(t, func() sdk.Policy { return aging.New() }, `{"settle": "30s", "halfLife": "20s"}`),
		"gate and waste": configured(t, func() sdk.Policy { return &gatedWaste{leastwaste.New(), protect.New()} }, `{"minRuntime": "30s"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options, equal := 0, 0
			for seed := range uint64(soak.Count(400, 40_000)) {
				d := rand.New(rand.NewPCG(71, seed))
				snap := randomNodes(d)
				n, same := compareBounds(t, snap, boundRequest(snap, version), seed)
				options, equal = options+n, equal+same
			}
			t.Logf("%d options, %d as cheap as their bound", options, equal)
			gated := version.Hooks().Has(policy.HookDelta)
			if options < soak.Count(100, 10_000) || !gated && equal*10 < options {
				t.Errorf("%d options, %d as cheap as their bound: too few", options, equal)
			}
		})
	}
}

// A search that computes bounds again, because the plan affects all nodes, returns every instance.
func TestBounds_ReturnInstancesOfChooser(t *testing.T) {
	t.Parallel()
	chooser := coretest.Version(func() sdk.Policy { return leastwaste.New() })
	snap := randomNodes(rand.New(rand.NewPCG(71, 1)))
	r := boundRequest(snap, coretest.Version(func() sdk.Policy { return selectsNone{} }))
	r.Default = chooser
	f := &Finder{}
	if err := f.Start(snap, r); err != nil {
		t.Fatal(err)
	}
	f.rounds.slots = f.plan.distinct
	for range 2 {
		if f.rounds.boundAll(f, nil); f.err != nil {
			t.Fatal(f.err)
		}
	}
	f.Release()
	if _, busy := chooser.Instances(); busy != 0 {
		t.Errorf("%d instances are still in use", busy)
	}
}

// gatedWaste is least-waste with the gate of protect.
type gatedWaste struct {
	*leastwaste.Policy
	gate *protect.Policy
}

func (p *gatedWaste) Info() sdk.Info {
	info := p.Policy.Info()
	info.Columns |= p.gate.Info().Columns
	return info
}

func (p *gatedWaste) PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error {
	return p.gate.PriorityDelta(in, gap, recheck)
}

func (p *gatedWaste) Settings() []sdk.Setting {
	return append(p.Policy.Settings(), p.gate.Settings()...)
}

func (p *gatedWaste) Configure(c *sdk.Config) error {
	return errors.Join(p.Policy.Configure(c), p.gate.Configure(c))
}

// selectsNone selects victims, so that the default policy chooses among options.
type selectsNone struct{}

func (selectsNone) Info() sdk.Info { return sdk.Info{Name: "none"} }
func (selectsNone) SelectVictims(in *sdk.Candidates, out *sdk.Selection) error {
	for range in.Len() {
		out.Next()
	}
	return nil
}

// configured returns a version of a native policy with a configuration.
func configured(t *testing.T, create func() sdk.Policy, config string) *policy.Version {
	t.Helper()
	v, err := policy.NewVersion(policy.Source{
		Name: create().Info().Name, Grants: policy.Grants, Config: []byte(config), Module: policy.Native("sha256:test", create),
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// randomNodes returns nodes full of allocations of several sizes, priorities and ages, and the
// job asker.
func randomNodes(d *rand.Rand) *state.Snapshot {
	store := state.New()
	txn := store.Begin(1)
	var jobs []*model.Job
	for i := range 2 + d.IntN(6) {
		b := coretest.Job(fmt.Sprint("j", i)).Priority(int32(d.IntN(8)*5)).Ask(int64(1+d.IntN(4)), int64(1+d.IntN(4)), 0)
		j := b.With(func(g *model.Group) {
			g.Labels = map[string]string{"app": fmt.Sprint(i)}
			if d.IntN(3) == 0 {
				g.Checkpoint = int64(1+d.IntN(9)) * 1e9
			}
			if d.IntN(12) == 0 {
				g.Annotations = map[string]float64{"cost": d.Float64() * 3}
			}
		}).Obj()
		j.NonPreemptible, j.AllOrNone = d.IntN(10) == 0, d.IntN(10) == 0
		if err := txn.JobWriter().Upsert(j); err != nil {
			panic(err)
		}
		jobs = append(jobs, j)
	}
	for n := range 1 + d.IntN(6) {
		id := fmt.Sprintf("n%d", n)
		if err := txn.NodeWriter().Upsert(coretest.Node(id, int64(4+d.IntN(12)), int64(4+d.IntN(12)), 0)); err != nil {
			panic(err)
		}
		for k := range d.IntN(8) {
			a := coretest.Running(fmt.Sprintf("a%d-%d", n, k), jobs[d.IntN(len(jobs))], 0, k, id)
			a.StartTime, a.Started = int64(d.IntN(100))*1e9, d.IntN(8) > 0
			txn.AllocWriter().Upsert(a)
		}
	}
	if d.IntN(2) == 0 {
		txn.BudgetWriter().Upsert(&model.Budget{
			Namespace: model.DefaultNamespace, Name: "b", Labels: map[string]string{"app": "0"}, Strict: d.IntN(2) == 0,
			MinAvailable: &model.Bound{Number: int32(d.IntN(4))},
		})
	}
	asker := coretest.Job("asker").Priority(int32(20+d.IntN(40))).Ask(int64(1+d.IntN(10)), int64(1+d.IntN(10)), 0).Obj()
	if err := txn.JobWriter().Upsert(asker); err != nil {
		panic(err)
	}
	txn.ConfigWriter().Set(coretest.AllPreempt())
	txn.Commit()
	return store.Snapshot()
}

// boundRequest returns a request for all nodes.
func boundRequest(snap *state.Snapshot, version *policy.Version) Request {
	r := Request{
		Group: snap.Job(model.JobKey{Namespace: model.DefaultNamespace, ID: "asker"}).Groups[0],
		Now:   100e9, Waiting: 60e9, Policy: version, Default: version, Workers: 1,
	}
	if !version.Hooks().Has(policy.HookScoreOptions) {
		r.Default = coretest.Version(func() sdk.Policy { return rules.New() })
	}
	for pos := range int32(snap.NodeCount()) {
		r.Nodes = append(r.Nodes, pos)
	}
	return r
}

// compareBounds compares the bounds of all nodes with the tiers of their options, and returns the
// number of options with a bound, and of those that are as cheap as it.
func compareBounds(t *testing.T, snap *state.Snapshot, r Request, seed uint64) (options, equal int) {
	t.Helper()
	bounded, evaluated := &Finder{}, &Finder{}
	for _, f := range []*Finder{bounded, evaluated} {
		if err := f.Start(snap, r); err != nil {
			t.Fatal(err)
		}
		defer f.Release()
	}
	if how := bounded.search.traits.bounding(); how != boundByTier {
		t.Fatalf("bounding is %d", how)
	}
	if err := evaluated.scoreOptions(); err != nil {
		t.Fatal(err)
	}
	// The options of bounded are those of the first nodes, of which one is known.
	bounded.rounds.slots = bounded.plan.distinct
	var limit *prune.Limit
	if best, known := bounded.rounds.bestFound(bounded); known {
		limit = bounded.findLimit(&best)
	}
	for _, limit := range []*prune.Limit{nil, limit} {
		if bounded.rounds.boundAll(bounded, limit); bounded.err != nil {
			t.Fatal(bounded.err)
		}
		n, same := belowOptions(t, bounded.rounds.bounds, &evaluated.table, seed)
		options, equal = options+n, equal+same
	}
	return options, equal
}

// belowOptions checks that no option is below the bound of its node.
func belowOptions(t *testing.T, list []prune.Bound, table *optionTable, seed uint64) (options, equal int) {
	t.Helper()
	bounds := map[int32]prune.Key{}
	for _, b := range list {
		if b.Slot >= 0 {
			bounds[b.Slot] = b.Key
		}
	}
	for i, slot := range table.at {
		bound, ok := bounds[slot]
		if !ok {
			continue
		}
		options++
		key := table.key(i)
		if key == bound {
			equal++
		}
		if key.Less(&bound) {
			t.Fatalf("seed %d: tiers %v of node %d are below its bound %v", seed, key, slot, bound)
		}
	}
	return options, equal
}
