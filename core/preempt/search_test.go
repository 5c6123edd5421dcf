package preempt_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/tiebreak"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	"github.com/cede-scheduler/cede/policies/nomad"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// versions returns policies that read many columns and use different hooks.
func versions() map[string]*policy.Version {
	all := map[string]*policy.Version{
		"default": coretest.Version(func() sdk.Policy { return rules.New() }),
		"nomad":   coretest.Version(func() sdk.Policy { return nomad.New() }),
		// Reads budgets and starts, and declares Ascending although it spares budgets first.
		"kubernetes": coretest.Version(func() sdk.Policy { return kubernetes.New() }),
		// Prefers victims of groups with few evictions, and of namespaces with a large use.
		"counting": coretest.Version(func() sdk.Policy {
			return struct {
				info
				scores
			}{
				info{sdk.Info{Delta: 1, Columns: sdk.EvictionColumns | sdk.JobColumns | sdk.SharedTables | sdk.UseColumns}},
				func(in *sdk.Candidates, out *sdk.VictimScores) error {
					s := in.Shared.Namespaces
					for row := range out.Score {
						at := slices.Index(s.Name, in.Rows.Namespace[row])
						out.Tier[row] = int64(in.Rows.Evictions[row])
						out.Score[row] = in.Rows.Use[0][row] - s.Use[0][at]/16
					}
					return nil
				},
			}
		}),
		// Picks rows of priority 10, and rows of groups with evictions.
		"picky": coretest.Version(func() sdk.Policy {
			return struct {
				info
				selects
			}{info{sdk.Info{Columns: sdk.EvictionColumns}}, func(in *sdk.Candidates, out *sdk.Selection) error {
				for i := range in.Len() {
					for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
						if in.Rows.Evictions[row] > 0 || in.Rows.Priority[row] == 10 {
							out.Pick(int(row))
						}
					}
					out.Next()
				}
				return nil
			}}
		}),
		// Allows two victims of a group, on all nodes; the default policy picks.
		"limited": coretest.Version(func() sdk.Policy {
			return struct {
				info
				deltas
			}{info{sdk.Info{Columns: sdk.EvictionColumns}}, func(in *sdk.Candidates, gap []int32, _ *sdk.Recheck) error {
				for row, evictions := range in.Rows.Evictions {
					if evictions > 1 {
						gap[row] = math.MaxInt32
					}
				}
				return nil
			}}
		}),
		"adaptive": coretest.Version(func() sdk.Policy {
			return struct {
				info
				deltas
				scores
			}{
				info{sdk.Info{Adaptive: true, Columns: sdk.UseColumns | sdk.DeviceColumns | sdk.MustLeaveColumn}},
				func(in *sdk.Candidates, gap []int32, _ *sdk.Recheck) error {
					for row, p := range in.Rows.Priority {
						gap[row] = p % 3
					}
					return nil
				},
				func(in *sdk.Candidates, out *sdk.VictimScores) error {
					for i := range in.Len() {
						for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
							for d := range in.Need {
								out.Score[row] -= min(in.Need[d][i], in.Rows.Use[d][row])
							}
							out.Tier[row] = -int64(in.Rows.MustLeave[row])
						}
					}
					return nil
				},
			}
		}),
	}
	if soak.Race && !soak.Full() { // the goroutines of a search do not depend on the policy
		return map[string]*policy.Version{"default": all["default"], "picky": all["picky"]}
	}
	return all
}

// summary returns all results of a search as text.
func summary(t tb, snap *state.Snapshot, f *preempt.Finder) string {
	lines := []string{bestOf(t, snap, f).String()}
	lines = append(lines, eachNodeOf(t, snap, f)...)
	why, nodes := f.Outcomes()
	for k, pos := range nodes {
		lines = append(lines, snap.NodeAt(pos).ID+": "+why[k].String())
	}
	return strings.Join(lines, "\n")
}

// The result depends neither on the number of workers nor on which nodes share a call.
func TestFinder_ResultIsIndependentOfWorkersAndCalls(t *testing.T) {
	t.Parallel()
	for name, v := range versions() {
		t.Run(name, func(t *testing.T) {
			d := source{rand.New(rand.NewPCG(7, uint64(len(name))))}
			w := randomFixture(d, features{devices: true, ports: true}, 1300, 40, 13000)
			for w.group.Job.Priority < 50 || len(w.nodes) < 600 {
				w = randomFixture(d, features{devices: true, ports: true}, 1300, 40, 13000)
			}
			var first string
			for _, workers := range []int{0, 1, 2, 8} {
				r := w.request(coretest.Policies(), v)
				r.Workers = workers
				f := startSearch(t, w.snap, r)
				got := summary(t, w.snap, f)
				f.Release()
				if first == "" {
					first = got
				} else if got != first {
					t.Fatalf("%d workers return another result", workers)
				}
			}
			// One node at a time, so that no nodes share calls.
			var alone []string
			f := &preempt.Finder{}
			all := w.request(coretest.Policies(), v)
			for _, pos := range all.Nodes {
				r := all
				r.Nodes = []int32{pos}
				if err := f.Start(w.snap, r); err != nil {
					t.Fatal(err)
				}
				alone = append(alone, eachNodeOf(t, w.snap, f)...)
				f.Release()
			}
			together := startSearch(t, w.snap, all)
			defer together.Release()
			if got := eachNodeOf(t, w.snap, together); !slices.Equal(got, alone) {
				t.Fatal("nodes that share calls return another result")
			}
			t.Logf("%d nodes, %d options", len(w.nodes), len(alone))
			if len(alone) < 10 {
				t.Error("too few options")
			}
		})
	}
}

// The reported fault does not depend on the number of workers: it is that of the first block
// at fault, which one worker finds first.
func TestFinder_FaultIsIndependentOfWorkers(t *testing.T) {
	t.Parallel()
	lines := make([]string, 2100)
	for i := range lines {
		lines[i] = fmt.Sprintf("n%04d: a%04d(p5,10)", i, i)
	}
	y := newMiniCluster(preemptorJob(4), lines...)
	var fault string
	for _, workers := range []int{1, 2, 8} {
		r := y.request(stub(struct {
			info
			scores
		}{info{sdk.Info{Columns: sdk.PlaceColumn}}, func(in *sdk.Candidates, _ *sdk.VictimScores) error {
			if first := in.Strings[in.Place[0]]; first >= "n0600" {
				return fmt.Errorf("node %s", first)
			}
			return nil
		}}))
		r.Workers = workers
		_, err := y.runRequest(t, r)
		if err == nil || !strings.Contains(err.Error(), "node n") || fault != "" && err.Error() != fault {
			t.Fatalf("%d workers: %v, want a fault, such as %q", workers, err, fault)
		}
		fault = err.Error()
	}
}

// The result does not depend on the order in which nodes and allocations were registered.
func TestFinder_ResultIsIndependentOfRegistrationOrder(t *testing.T) {
	skipUnderRaceDetector(t)
	t.Parallel()
	for name, v := range versions() {
		t.Run(name, func(t *testing.T) {
			check(t, func(t *rapid.T) {
				w := drawFixture(t, features{devices: true, ports: true})
				twin := w.shuffled(t)
				a, b := &preempt.Finder{}, &preempt.Finder{}
				if err := a.Start(w.snap, w.request(coretest.Policies(), v)); err != nil {
					t.Fatal(err)
				}
				defer a.Release()
				if err := b.Start(twin.snap, twin.request(coretest.Policies(), v)); err != nil {
					t.Fatal(err)
				}
				defer b.Release()
				if got, want := summary(t, twin.snap, b), summary(t, w.snap, a); got != want {
					t.Fatalf("got\n%s\nwant\n%s", got, want)
				}
			})
		})
	}
}

// shuffled returns the same fixture, written in another order.
func (w *fixture) shuffled(t *rapid.T) *fixture {
	store := state.New()
	txn := store.Begin(1)
	// Dimensions keep their order: it can change the last bit of sums over more than two.
	must(txn.GrowDimensions(w.snap.Dims().Names()...))
	for _, n := range rapid.Permutation(slices.Collect(w.snap.Nodes())).Draw(t, "nodes") {
		copied := *n
		must(txn.NodeWriter().Upsert(&copied))
	}
	for _, j := range rapid.Permutation(slices.Collect(w.snap.Jobs())).Draw(t, "jobs") {
		copied := *j
		must(txn.JobWriter().Upsert(&copied))
	}
	for _, a := range rapid.Permutation(slices.Collect(w.snap.Allocs())).Draw(t, "allocations") {
		copied := *a
		copied.Job = txn.Job(a.Job.Key())
		copied.Group = copied.Job.Groups[0]
		txn.AllocWriter().Upsert(&copied)
	}
	twin := *w
	twin.snap = txn.Commit()
	twin.group = twin.snap.Job(w.group.Job.Key()).Groups[0]
	return &twin
}

// A seed replaces the order of IDs in ties, and changes nothing else.
func TestFinder_SeedsChangeOnlyTies(t *testing.T) {
	t.Parallel()
	check(t, func(t *rapid.T) {
		w := drawFixture(t, features{ports: true, devices: true})
		w.order.Seed = rapid.Uint64Min(1).Draw(t, "seed")
		slices.SortFunc(w.nodes, w.order.Compare)
		policies, err := policy.NewSet(coretest.Version(func() sdk.Policy { return rules.NewVersion1() })) // that of the reference
		if err != nil {
			t.Fatal(err)
		}
		r := w.request(policies, policies.Default())
		r.TieOrder = w.order
		f := &preempt.Finder{}
		if err := f.Start(w.snap, r); err != nil {
			t.Fatal(err)
		}
		defer f.Release()
		var all []*refOption
		for _, node := range w.nodes {
			all = append(all, w.options(node)...)
		}
		if want, got := best(all), bestOf(t, w.snap, f); got.String() != want.String() {
			t.Fatalf("got %v, want %v", got, want)
		}
		w.checkInvariants(t, f)
	})
}

func TestOrder_ComparesByIDOrHash(t *testing.T) {
	t.Parallel()
	ids := []string{"c", "a", "b", "n1", "n10", "n2"}
	byID := slices.SortedFunc(slices.Values(ids), tiebreak.Order{}.Compare)
	if want := []string{"a", "b", "c", "n1", "n10", "n2"}; !slices.Equal(byID, want) {
		t.Errorf("order by ID is %v, want %v", byID, want)
	}
	orders := map[string]bool{}
	for seed := range uint64(20) {
		ties := tiebreak.Order{Seed: seed}
		orders[fmt.Sprint(slices.SortedFunc(slices.Values(ids), ties.Compare))] = true
		if ties.Compare("x", "x") != 0 || ties.Compare("x", "y") != -ties.Compare("y", "x") {
			t.Fatal("Compare is not antisymmetric")
		}
	}
	if len(orders) < 15 {
		t.Errorf("20 seeds result in %d orders, want at least 15", len(orders))
	}
}

// Update returns the same result as a fresh search, after placements and evictions on the
// chosen node and on others.
func TestFinder_UpdateEqualsFreshSearch(t *testing.T) {
	skipUnderRaceDetector(t)
	t.Parallel()
	for name, v := range versions() {
		t.Run(name, func(t *testing.T) { checkUpdateEqualsFreshSearch(t, v, features{devices: true, ports: true}) })
		t.Run(name+"/guards", func(t *testing.T) { checkUpdateEqualsFreshSearch(t, v, features{protection: true}) })
	}
}

func checkUpdateEqualsFreshSearch(t *testing.T, v *policy.Version, s features) {
	steps := 0
	check(t, func(t *rapid.T) {
		w := drawFixture(t, s)
		w.splitVersions(t)
		r := w.request(coretest.Policies(), v)
		f := &preempt.Finder{}
		if err := f.Start(w.snap, r); err != nil {
			t.Fatal(err)
		}
		defer f.Release()
		for i := range 4 {
			c, ok, err := f.Best()
			if err != nil {
				t.Fatal(err)
			}
			var touched []int32
			var groups []*model.Group
			txn := w.snap.Fork(w.snap.Index() + 1)
			evict := func(a *model.Allocation) {
				gone := *a
				gone.Desired = model.DesiredEvict
				txn.AllocWriter().Upsert(&gone)
				r.Evictions.Add(a.Group)
				if !slices.Contains(groups, a.Group) {
					groups = append(groups, a.Group)
				}
				pos, _ := w.snap.Position(a.NodeID)
				touched = append(touched, pos)
			}
			if ok {
				for _, victim := range c.Victims {
					evict(victim)
				}
				a := coretest.Running(fmt.Sprintf("new%d", i), w.group.Job, 0, 100+i, w.snap.NodeAt(c.Pos).ID)
				for k, at := range c.Device {
					a.Devices = append(a.Devices, model.DeviceUse{ID: w.snap.NodeAt(c.Pos).Devices[at].ID, Count: w.group.Devices[k].Count})
				}
				txn.AllocWriter().Upsert(a)
			}
			if rapid.Bool().Draw(t, "on another node") || !ok {
				others := slices.DeleteFunc(slices.Collect(txn.Allocs()), func(a *model.Allocation) bool { return !a.Live() })
				if len(others) == 0 {
					return
				}
				evict(rapid.SampledFrom(others).Draw(t, "other"))
			}
			w.snap = txn.Snapshot()
			if err := f.Update(w.snap, touched, groups); err != nil {
				t.Fatal(err)
			}
			fresh := &preempt.Finder{}
			if err := fresh.Start(w.snap, r); err != nil {
				t.Fatal(err)
			}
			got, want := summary(t, w.snap, f), summary(t, w.snap, fresh)
			fresh.Release()
			if got != want {
				t.Fatalf("after step %d (%v)\n%s\nwant\n%s", i, optionOf(w.snap, c), got, want)
			}
			if ok {
				steps++
			}
		}
	})
	t.Logf("%d placements", steps)
	if steps == 0 {
		t.Error("the property was not exercised")
	}
}

// splitVersions moves half of the allocations to a newer version of their job, so that two
// versions of a group run.
func (w *fixture) splitVersions(t *rapid.T) {
	txn := w.snap.Fork(w.snap.Index() + 1)
	for j := range w.snap.Jobs() {
		if j.ID == "preemptor" {
			continue
		}
		next := *j
		next.Version++
		must(txn.JobWriter().Upsert(&next))
		for _, a := range w.snap.AppendJobAllocs(nil, j.Key()) {
			if rapid.Bool().Draw(t, "updated") {
				moved := *a
				moved.Job, moved.Group = &next, next.Groups[0]
				txn.AllocWriter().Upsert(&moved)
			}
		}
	}
	w.snap = txn.Snapshot()
}
