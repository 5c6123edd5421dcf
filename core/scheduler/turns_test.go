package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// rollGroups returns a cluster with a job of four groups, of which those with the name of an app
// are bound to the rack of that app.
func rollGroups(d *rand.Rand, apps [4]string) *rackCluster {
	b := rollRacks(d)
	j := job("j", 50, 1, 1)
	for i := range 4 {
		if i > 0 {
			j.Group(fmt.Sprint("g", i), 1)
		}
		j.Ask(int64(1+d.IntN(3)), 1, 0).Count(1 + d.IntN(3))
		if app := apps[i]; app != "" {
			j.Ask(int64(1+d.IntN(5)), 1, 0).Count(1 + d.IntN(4)).With(func(g *model.Group) {
				g.Labels, g.Colocate = labels(app), term(app, "rack")
				// With separation, a way is not revised: a domain may be the cheapest only after a
				// revision, which the search does not find.
				g.Separate = term("none", "node")
				if d.IntN(2) == 0 {
					g.Constraints = []model.Constraint{{Operator: model.OpDistinctHosts}}
				}
			})
		}
	}
	b.job = j.Obj()
	return b
}

// of returns the placements of a group, and the victims that it evicts.
func (b *rackCluster) of(out *scheduler.Outcome, position int) (nodes []string, victims []*model.Allocation) {
	prefix := "j." + b.job.Groups[position].Name + "["
	for _, g := range out.Plan.Groups {
		for _, a := range g.Placements {
			if strings.HasPrefix(a.ID, prefix) {
				nodes = append(nodes, a.NodeID)
			}
		}
		for _, e := range g.Evictions {
			if strings.HasPrefix(e.By, prefix) {
				victims = append(victims, b.allocs[slices.IndexFunc(b.allocs, func(a *model.Allocation) bool { return a.ID == e.AllocID })])
			}
		}
	}
	return nodes, victims
}

// A group that is bound to a rack is placed in the cheapest one at its turn, wherever it stands
// among the groups, as if the job were planned with the group limited to each rack. Groups before
// it are placed as if it were absent.
func TestTurns_ChooseCheapestDomainAsBruteForce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy string
		order  tierOrder
	}{{"default", byDefault}, {"kubernetes", byKubernetes}} {
		t.Run(c.policy, func(t *testing.T) {
			t.Parallel()
			choices := [4]int{}
			for seed := range soak.Count(100, 20_000) {
				at := seed % 4
				apps := [4]string{}
				apps[at] = "me"
				b := rollGroups(rand.New(rand.NewPCG(47, uint64(seed))), apps)
				want, ways, best := b.job.Groups[at].Count, 0, []*model.Allocation(nil)
				racks := make([]string, at+1)
				for k := range 6 {
					racks[at] = fmt.Sprint("r", k)
					nodes, victims := b.of(b.plan(t, c.policy, racks...), at)
					if len(nodes) < want {
						continue
					}
					if ways++; ways == 1 || c.order(victims, best) < 0 {
						best = victims
					}
				}
				out := b.plan(t, c.policy)
				nodes, victims := b.of(out, at)
				if (len(nodes) == want) != (ways > 0) {
					t.Fatalf("seed %d: %s; %d racks take all %d of group %d", seed, format(out), ways, want, at)
				}
				if ways > 0 && c.order(victims, best) != 0 {
					t.Fatalf("seed %d: %s; cheaper for group %d: %v", seed, format(out), at, best)
				}
				if ways > 1 && len(best) > 0 {
					choices[at]++
				}
				without := b.plan(t, c.policy, append(make([]string, at), "none")...)
				for i := range at {
					nodes, victims := b.of(out, i)
					if n, v := b.of(without, i); !slices.Equal(nodes, n) || !slices.Equal(victims, v) {
						t.Fatalf("seed %d: %s; without group %d: %s", seed, format(out), at, format(without))
					}
				}
			}
			t.Logf("choices by position: %v", choices)
			if few := soak.Count(3, 50); slices.Min(choices[:]) < few && !soak.Quick() {
				t.Errorf("choices by position %v: too few", choices)
			}
		})
	}
}

// takes returns the victims of two groups if both are placed in full.
func (b *rackCluster) takes(out *scheduler.Outcome, x, y int) (victims []*model.Allocation, ok bool) {
	nodes, victims := b.of(out, x)
	others, more := b.of(out, y)
	return append(victims, more...), len(nodes) == b.job.Groups[x].Count && len(others) == b.job.Groups[y].Count
}

// Groups with racks of their own that follow each other get the cheapest pair of racks.
func TestTurns_ChooseDomainsOfSuccessiveGroupsTogether(t *testing.T) {
	t.Parallel()
	choices := 0
	for seed := range soak.Count(40, 5_000) {
		at := seed % 3
		apps := [4]string{}
		apps[at], apps[at+1] = "first", "second"
		b := rollGroups(rand.New(rand.NewPCG(53, uint64(seed))), apps)
		ways, best := 0, []*model.Allocation(nil)
		racks := make([]string, at+2)
		for k := range 25 {
			racks[at], racks[at+1] = fmt.Sprint("r", k/5), fmt.Sprint("r", k%5)
			victims, ok := b.takes(b.plan(t, "default", racks...), at, at+1)
			if !ok {
				continue
			}
			if ways++; ways == 1 || byDefault(victims, best) < 0 {
				best = victims
			}
		}
		if ways == 0 {
			continue
		}
		out := b.plan(t, "default")
		if victims, ok := b.takes(out, at, at+1); !ok || byDefault(victims, best) != 0 {
			t.Fatalf("seed %d: %s; cheapest of %d pairs: %v", seed, format(out), ways, best)
		}
		if ways > 1 && len(best) > 0 {
			choices++
		}
	}
	if t.Logf("%d choices", choices); choices == 0 {
		t.Error("no choices")
	}
}

// If other groups stand between two groups that must share a rack, the first of the two takes a
// rack that is the cheapest for both, and the second follows it there.
func TestTurns_ChooseDomainForGroupThatFollowsLater(t *testing.T) {
	t.Parallel()
	choices := 0
	for seed := range soak.Count(60, 10_000) {
		b := rollGroups(rand.New(rand.NewPCG(59, uint64(seed))), [4]string{"me", "", "me"})
		costs, best := map[string][]*model.Allocation{}, ""
		for k := range 5 {
			rack := fmt.Sprint("r", k)
			victims, ok := b.takes(b.plan(t, "default", rack, "absent", rack), 0, 2)
			if !ok {
				continue
			}
			if costs[rack] = victims; best == "" || byDefault(victims, costs[best]) < 0 {
				best = rack
			}
		}
		out := b.plan(t, "default")
		rack := ""
		for _, at := range []int{0, 2} {
			nodes, _ := b.of(out, at)
			for _, id := range nodes {
				n := b.nodes[slices.IndexFunc(b.nodes, func(n *model.Node) bool { return n.ID == id })]
				if rack != "" && n.Attributes["rack"] != rack {
					t.Fatalf("seed %d: %s: racks %s and %s", seed, format(out), rack, n.Attributes["rack"])
				}
				rack = n.Attributes["rack"]
			}
		}
		if best == "" {
			continue
		}
		if victims, ok := costs[rack]; !ok || byDefault(victims, costs[best]) != 0 {
			t.Fatalf("seed %d: %s; cheapest rack: %s of %v", seed, format(out), best, costs)
		}
		if nodes, _ := b.of(out, 0); len(nodes) != b.job.Groups[0].Count {
			t.Fatalf("seed %d: %s: the first group is incomplete", seed, format(out))
		}
		if len(costs) > 1 && len(costs[best]) > 0 {
			choices++
		}
	}
	if t.Logf("%d choices", choices); choices == 0 {
		t.Error("no choices")
	}
}

// An earlier group evicts a surplus instance of a cohort, and the group that is bound to a rack
// the others. All evictions of the cohort are in one commit group. If that rack does not suffice,
// the attempt leaves no evictions behind.
func TestTurns_EvictCohortOfEarlierGroupInOneCommit(t *testing.T) {
	t.Parallel()
	rack := func(r string) func(*model.Node) {
		return func(n *model.Node) { n.Capacity["cpu"], n.Attributes = 2, map[string]string{"rack": r} }
	}
	for _, c := range []struct {
		name   string
		avoids string // an app that runs on n2
		want   string
		groups int
	}{
		{"the rack suffices", "none", "j.g[0]@n3 over v3, j.h[0]@n2 over v1 v2, j.h[1]@n1", 1},
		{"the rack does not suffice", "x", "j.g[0]@n3 over v3, j.h[0]@n4 over w4, j.h[1]@n5 over w5", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			for i, r := range []string{"a", "a", "b", "c", "c"} {
				w.node(fmt.Sprint("n", i+1), rack(r))
			}
			w.run(job("low", 10, 2, 1).Count(3).With(func(g *model.Group) { g.MinCount = 2 }).
				Change(func(j *model.Job) { j.AllOrNone = true }).Obj(), "v1", "n1", "v2", "n2", "v3", "n3")
			w.run(job("x", 90, 0, 1).With(func(g *model.Group) { g.Labels = labels("x") }).Obj(), "x", "n2")
			w.run(job("higher", 20, 2, 1).Count(2).Obj(), "w4", "n4", "w5", "n5")
			w.job(job("j", 50, 2, 1).With(func(g *model.Group) {
				g.Constraints = []model.Constraint{{Attribute: "node.id", Operator: model.OpEqual, Value: "n3"}}
			}).Group("h", 2).Ask(2, 1, 0).With(func(g *model.Group) {
				g.Labels, g.Colocate, g.Separate = labels("me"), term("me", "rack"), term(c.avoids, "node")
			}).Obj())
			if out := w.plan("j"); format(out) != c.want || len(out.Plan.Groups) != c.groups {
				t.Errorf("got %s in %d groups, want %s in %d", format(out), len(out.Plan.Groups), c.want, c.groups)
			}
			w.want("j", c.want)
		})
	}
}
