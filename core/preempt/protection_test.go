package preempt_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	"github.com/cede-scheduler/cede/policies/optimal"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

func (d source) protect(j *model.Job) {
	j.AllOrNone = d.oneIn(4)
	if d.oneIn(4) {
		j.Toleration = &model.PreemptionToleration{}
		if d.oneIn(2) {
			j.Toleration.MinPreemptorPriority = new(int32(d.in(20, 60)))
		} else {
			j.Toleration.MinRuntime = int64(d.in(0, 600))
		}
	}
	j.Groups[0].Labels = map[string]string{}
	for _, key := range []string{"app", "tier"} {
		if d.oneIn(2) {
			j.Groups[0].Labels[key] = oneOf(d, "x", "y")
		}
	}
}

func (d source) budget(i int) *model.Budget {
	b := &model.Budget{
		Namespace: model.DefaultNamespace, Name: fmt.Sprint("b", i), Strict: d.oneIn(2),
		Labels: map[string]string{oneOf(d, "app", "tier"): oneOf(d, "x", "y")},
	}
	if d.oneIn(3) {
		b.MaxUnavailable = &model.Bound{Number: int32(d.in(0, 100)), Percent: true}
	} else {
		b.MinAvailable = &model.Bound{Number: int32(d.in(0, 8))}
	}
	return b
}

// Written from the scenario format, in names, and with nothing in common with the
// code under test.

// slack is what a budget has left, from the plain tables.
func (w *fixture) slack(b *model.Budget) int {
	desired, available := 0, 0
	under := func(g *model.Group) bool {
		for k, v := range b.Labels {
			if g.Labels[k] != v {
				return false
			}
		}
		return true
	}
	for j := range w.snap.Jobs() {
		if under(j.Groups[0]) {
			desired += j.Groups[0].Count
		}
	}
	for a := range w.snap.Allocs() {
		if under(a.Group) && a.Started && a.Live() {
			available++
		}
	}
	switch {
	case b.MinAvailable != nil:
		return available - int(b.MinAvailable.Number)
	default:
		return available - max(0, desired-(desired*int(b.MaxUnavailable.Number)+99)/100)
	}
}

// costs is how many of some allocations each budget loses, by its name.
func (w *fixture) costs(victims []*model.Allocation) map[string]int {
	costs := map[string]int{}
	for _, b := range w.snap.Budgets() {
		for _, v := range victims {
			fits := v.Started
			for key, value := range b.Labels {
				fits = fits && v.Group.Labels[key] == value
			}
			if fits {
				costs[b.Name]++
			}
		}
	}
	return costs
}

// cohort is everybody who goes when an allocation does.
func (w *fixture) cohort(a *model.Allocation) []*model.Allocation {
	if !a.Job.AllOrNone {
		return []*model.Allocation{a}
	}
	return slices.DeleteFunc(w.snap.AppendJobAllocs(nil, a.Job.Key()), func(b *model.Allocation) bool { return !b.Live() })
}

// isProtected is whether an allocation, or somebody who would go with it, may not be
// evicted whatever budgets say.
func (w *fixture) isProtected(a *model.Allocation) bool {
	return slices.ContainsFunc(w.cohort(a), func(b *model.Allocation) bool {
		t := b.Job.Toleration
		gap := int64(w.group.Job.Priority) - int64(b.Job.Priority)
		return gap < 1 || gap < int64(w.base) || b.Job.NonPreemptible || b.Job.Key() == w.group.Job.Key() ||
			t != nil && (t.MinPreemptorPriority != nil && w.group.Job.Priority < *t.MinPreemptorPriority ||
				b.Started && 1000-b.StartTime < t.MinRuntime)
	})
}

// What guards promise holds whatever a policy answers, and no unit of its victims
// could have stayed.
func TestFinder_EnforcesProtection(t *testing.T) {
	all := versions()
	all["optimal"] = coretest.Version(func() sdk.Policy { return boundedOptimal(optimal.New()) })
	for name, v := range all {
		t.Run(name, func(t *testing.T) {
			options, whole, protected := 0, 0, 0
			guards := func(t *rapid.T) {
				w := drawFixture(t, features{protection: true, ports: true})
				if name != "default" { // gaps of their own
					w.base = 1
					w.delta = &w.base
				}
				r := w.request(coretest.Policies(), v)
				f := &preempt.Finder{}
				if err := f.Start(w.snap, r); err != nil {
					t.Fatal(err)
				}
				defer f.Release()
				if err := f.EachNode(func(c preempt.Choice) {
					options++
					if w.checkProtection(t, c, v.KeepsRedundant()) {
						whole++
					}
				}); err != nil {
					t.Fatal(err)
				}
				why, nodes := f.Outcomes()
				for k := range nodes {
					if why[k] == preempt.Protected {
						protected++
						if b := f.BlockingBudget(k); b == nil || !b.Strict {
							t.Fatalf("stopped by %v", b)
						}
					}
				}
			}
			// Some policies evict seldom: of few worlds perhaps nobody worth a look.
			for rounds := 0; rounds == 0 || rounds < 50 && (whole == 0 || protected == 0); rounds++ {
				check(t, guards)
			}
			t.Logf("%d options, %d with somebody on other nodes, %d nodes protected", options, whole, protected)
			if options == 0 || whole == 0 || protected == 0 {
				t.Error("the property was not exercised")
			}
		})
	}
}

func boundedOptimal(p *optimal.Policy) sdk.Policy {
	config := sdk.NewConfig(p.Settings(), []sdk.Value{
		{Name: "cost", Kind: sdk.Text, Text: "priority"}, {Name: "maxSteps", Kind: sdk.Integer, Integer: 500},
	})
	if err := p.Configure(config); err != nil {
		panic(err)
	}
	return p
}

// checkProtection checks one option and tells whether it takes somebody on other nodes
// along.
func (w *fixture) checkProtection(t *rapid.T, c preempt.Choice, redundant bool) (wide bool) {
	n := w.snap.NodeAt(c.Pos)
	gone := map[string]bool{}
	for _, v := range c.Victims {
		if gone[v.ID] || w.isProtected(v) {
			t.Fatalf("%s is listed twice, or spared", v.ID)
		}
		gone[v.ID] = true
		wide = wide || v.NodeID != n.ID
	}
	for _, v := range c.Victims {
		for _, mate := range w.cohort(v) {
			if !gone[mate.ID] {
				t.Fatalf("%s goes without %s", v.ID, mate.ID)
			}
		}
		if v.NodeID != n.ID && !slices.ContainsFunc(w.cohort(v), func(b *model.Allocation) bool { return b.NodeID == n.ID }) {
			t.Fatalf("%s is on another node, and goes with nobody on this one", v.ID)
		}
	}
	costs := w.costs(c.Victims)
	for _, b := range w.snap.Budgets() {
		if b.Strict && costs[b.Name] > max(0, w.slack(b)) {
			t.Fatalf("%v overruns budget %s: %d of %d", sortedNames(gone), b.Name, costs[b.Name], w.slack(b))
		}
	}
	var overrun []string
	protect.EachViolation(&w.snap.View, 0, c.Victims, func(i int) { overrun = append(overrun, c.Victims[i].ID) })
	for _, b := range w.snap.Budgets() {
		if costs[b.Name] > max(0, w.slack(b)) && len(overrun) == 0 {
			t.Fatalf("budget %s is overrun, and nobody is said to", b.Name)
		}
	}
	w.checkNeeded(t, c, gone, redundant)
	return wide
}

// checkNeeded checks that the group fits, and that no victim could stay with those
// who go with it.
func (w *fixture) checkNeeded(t *rapid.T, c preempt.Choice, gone map[string]bool, redundant bool) {
	n := w.snap.NodeAt(c.Pos)
	here := refAllocs(w.snap, n.ID)
	if !refFits(n, here, gone, w.group, nil, false) {
		t.Fatalf("the group does not fit after %v", sortedNames(gone))
	}
	for _, v := range c.Victims {
		if redundant || v.NodeID != n.ID {
			continue
		}
		for _, mate := range w.cohort(v) {
			gone[mate.ID] = false
		}
		if refFits(n, here, gone, w.group, nil, false) {
			t.Fatalf("%s is evicted for nothing", v.ID)
		}
		for _, mate := range w.cohort(v) {
			gone[mate.ID] = true
		}
	}
}

// Where no strict budget has too little for the candidates of a node, default
// finds room exactly where everybody's going would make it.
func TestFinder_ProtectsNothingElse(t *testing.T) {
	found, none := 0, 0
	policies := coretest.Policies()
	check(t, func(t *rapid.T) {
		w := drawFixture(t, features{protection: true, ports: true})
		f := &preempt.Finder{}
		if err := f.Start(w.snap, w.request(policies, policies.Default())); err != nil {
			t.Fatal(err)
		}
		defer f.Release()
		why, nodes := f.Outcomes()
		for k, pos := range nodes {
			n := w.snap.NodeAt(pos)
			here := refAllocs(w.snap, n.ID)
			gone, limited := map[string]bool{}, false
			var all []*model.Allocation
			for _, a := range here {
				if !w.isProtected(a) {
					gone[a.ID] = true
					all = append(all, w.cohort(a)...)
				}
			}
			for name, n := range w.costs(all) {
				b := w.snap.Budget(model.BudgetKey{Namespace: model.DefaultNamespace, Name: name})
				limited = limited || b.Strict && n > w.slack(b)
			}
			if limited {
				continue
			}
			want := refFits(n, here, gone, w.group, nil, false) && len(gone) > 0
			if got := why[k] == preempt.Possible; got != want {
				t.Fatalf("node %s: %s, want an option: %t", n.ID, why[k], want)
			}
			if want {
				found++
			} else {
				none++
			}
		}
	})
	if found == 0 || none == 0 {
		t.Errorf("%d nodes with an option, %d without", found, none)
	}
}

// withoutAscending is kubernetes without its promise about ascending priorities.
type withoutAscending struct{ *kubernetes.Policy }

func (s withoutAscending) Info() sdk.Info {
	info := s.Policy.Info()
	info.Ascending = false
	return info
}

// What kubernetes is not shown it would not have taken.
func TestFinder_AscendingAroundBudgetsKeepsVictims(t *testing.T) {
	some := coretest.Version(func() sdk.Policy { return kubernetes.New() })
	all := coretest.Version(func() sdk.Policy { return withoutAscending{kubernetes.New()} })
	options := 0
	check(t, func(t *rapid.T) {
		w := drawFixture(t, features{protection: true, ports: rapid.Bool().Draw(t, "ports")})
		results := map[*policy.Version]string{}
		for _, v := range []*policy.Version{some, all} {
			f := &preempt.Finder{}
			if err := f.Start(w.snap, w.request(coretest.Policies(), v)); err != nil {
				t.Fatal(err)
			}
			results[v] = summary(t, w.snap, f)
			if results[v] != "nowhere" {
				options++
			}
			f.Release()
		}
		if results[some] != results[all] {
			t.Fatalf("shown some\n%s\nshown all\n%s", results[some], results[all])
		}
	})
	t.Logf("%d worlds with options", options/2)
}

// The number of workers changes nothing, with guards and thousands of nodes.
func TestFinder_ProtectionIsIndependentOfWorkers(t *testing.T) {
	for name, v := range versions() {
		t.Run(name, func(t *testing.T) {
			d := source{rand.New(rand.NewPCG(11, uint64(len(name))))}
			w := randomFixture(d, features{protection: true}, 1300, 40, 13000)
			for w.group.Job.Priority < 50 || len(w.nodes) < 600 {
				w = randomFixture(d, features{protection: true}, 1300, 40, 13000)
			}
			var first string
			for _, workers := range []int{1, 4} {
				r := w.request(coretest.Policies(), v)
				r.Workers = workers
				f := startSearch(t, w.snap, r)
				got := summary(t, w.snap, f)
				f.Release()
				if first == "" {
					first = got
				}
				if got != first {
					t.Fatalf("%d workers find something else", workers)
				}
			}
		})
	}
}
