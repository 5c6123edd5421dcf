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

// The reference implementation of budgets follows the scenario format.

// slack returns how many more evictions a budget allows.
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

// costs returns how many evictions each budget is charged with, by name.
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

// cohort returns an allocation with those that are evicted with it.
func (w *fixture) cohort(a *model.Allocation) []*model.Allocation {
	if !a.Job.AllOrNone {
		return []*model.Allocation{a}
	}
	return slices.DeleteFunc(w.snap.AppendJobAllocs(nil, a.Job.Key()), func(b *model.Allocation) bool { return !b.Live() })
}

// isProtected reports whether an allocation, or a member of its cohort, may not be evicted
// regardless of budgets.
func (w *fixture) isProtected(a *model.Allocation) bool {
	return slices.ContainsFunc(w.cohort(a), func(b *model.Allocation) bool {
		t := b.Job.Toleration
		gap := int64(w.group.Job.Priority) - int64(b.Job.Priority)
		return gap < 1 || gap < int64(w.base) || b.Job.NonPreemptible || b.Job.Key() == w.group.Job.Key() ||
			t != nil && (t.MinPreemptorPriority != nil && w.group.Job.Priority < *t.MinPreemptorPriority ||
				b.Started && 1000-b.StartTime < t.MinRuntime)
	})
}

// Protection holds for any answer of a policy, and no victim or cohort is redundant.
func TestFinder_EnforcesProtection(t *testing.T) {
	skipUnderRaceDetector(t)
	t.Parallel()
	all := versions()
	all["optimal"] = coretest.Version(func() sdk.Policy { return boundedOptimal(optimal.New()) })
	for name, v := range all {
		t.Run(name, func(t *testing.T) {
			options, whole, protected := 0, 0, 0
			guards := func(t *rapid.T) {
				w := drawFixture(t, features{protection: true, ports: true})
				if name != "default" { // other policies have other gaps
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
							t.Fatalf("blocking budget %v, want a strict one", b)
						}
					}
				}
			}
			// Some policies rarely evict, so that a round may exercise nothing.
			for rounds := 0; rounds == 0 || rounds < 50 && (whole == 0 || protected == 0); rounds++ {
				check(t, guards)
			}
			t.Logf("%d options, %d with victims on other nodes, %d nodes protected", options, whole, protected)
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

// checkProtection checks one option, and reports whether it has victims on other nodes.
func (w *fixture) checkProtection(t *rapid.T, c preempt.Choice, redundant bool) (wide bool) {
	n := w.snap.NodeAt(c.Pos)
	gone := map[string]bool{}
	for _, v := range c.Victims {
		if gone[v.ID] || w.isProtected(v) {
			t.Fatalf("victim %s is listed twice, or protected", v.ID)
		}
		gone[v.ID] = true
		wide = wide || v.NodeID != n.ID
	}
	for _, v := range c.Victims {
		for _, member := range w.cohort(v) {
			if !gone[member.ID] {
				t.Fatalf("victim %s leaves member %s of its cohort", v.ID, member.ID)
			}
		}
		if v.NodeID != n.ID && !slices.ContainsFunc(w.cohort(v), func(b *model.Allocation) bool { return b.NodeID == n.ID }) {
			t.Fatalf("victim %s is on another node, without a cohort on this one", v.ID)
		}
	}
	costs := w.costs(c.Victims)
	for _, b := range w.snap.Budgets() {
		if b.Strict && costs[b.Name] > max(0, w.slack(b)) {
			t.Fatalf("victims %v overrun budget %s: %d of %d", sortedNames(gone), b.Name, costs[b.Name], w.slack(b))
		}
	}
	var overrun []string
	protect.EachViolation(&w.snap.View, 0, c.Victims, func(i int) { overrun = append(overrun, c.Victims[i].ID) })
	for _, b := range w.snap.Budgets() {
		if costs[b.Name] > max(0, w.slack(b)) && len(overrun) == 0 {
			t.Fatalf("EachViolation reports no victim, but budget %s is overrun", b.Name)
		}
	}
	w.checkNeeded(t, c, gone, redundant)
	return wide
}

// checkNeeded checks that the group fits, and that no victim could stay with its cohort.
func (w *fixture) checkNeeded(t *rapid.T, c preempt.Choice, gone map[string]bool, redundant bool) {
	n := w.snap.NodeAt(c.Pos)
	here := refAllocs(w.snap, n.ID)
	if !refFits(n, here, gone, w.group, nil, false) {
		t.Fatalf("the group does not fit without %v", sortedNames(gone))
	}
	for _, v := range c.Victims {
		if redundant || v.NodeID != n.ID {
			continue
		}
		for _, member := range w.cohort(v) {
			gone[member.ID] = false
		}
		if refFits(n, here, gone, w.group, nil, false) {
			t.Fatalf("victim %s is redundant", v.ID)
		}
		for _, member := range w.cohort(v) {
			gone[member.ID] = true
		}
	}
}

// If strict budgets allow all candidates of a node, the default policy finds an option
// exactly if the group fits without them.
func TestFinder_ProtectsNothingElse(t *testing.T) {
	t.Parallel()
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
				t.Fatalf("node %s: outcome %q, want an option: %t", n.ID, why[k], want)
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

// withoutAscending is the kubernetes policy without its declaration of Ascending.
type withoutAscending struct{ *kubernetes.Policy }

func (s withoutAscending) Info() sdk.Info {
	info := s.Policy.Info()
	info.Ascending = false
	return info
}

// Candidates that the kubernetes policy is not shown, it would not have selected.
func TestFinder_AscendingAroundBudgetsKeepsVictims(t *testing.T) {
	t.Parallel()
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
			if results[v] != "none" {
				options++
			}
			f.Release()
		}
		if results[some] != results[all] {
			t.Fatalf("with Ascending\n%s\nwithout\n%s", results[some], results[all])
		}
	})
	t.Logf("%d fixtures with options", options/2)
}

// The result does not depend on the number of workers, with protection and many nodes.
func TestFinder_ProtectionIsIndependentOfWorkers(t *testing.T) {
	t.Parallel()
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
					t.Fatalf("%d workers return another result", workers)
				}
			}
		})
	}
}
