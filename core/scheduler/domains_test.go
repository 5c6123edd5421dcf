package scheduler_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// rackCluster is a cluster of racks, in zones, in which nearly everything is full.
type rackCluster struct {
	nodes  []*model.Node
	others []*model.Job
	allocs []*model.Allocation
	job    *model.Job
}

func rollRacks(d *rand.Rand) *rackCluster {
	b := &rackCluster{}
	number, small := 2+d.IntN(4), d.IntN(2) == 0
	for i := range 3 * number {
		n := coretest.Node(fmt.Sprintf("n%02d", i), int64(4+d.IntN(7)), 100, 0)
		if d.IntN(8) > 0 {
			rack := d.IntN(number)
			n.Attributes = map[string]string{"rack": fmt.Sprint("r", rack), "zone": fmt.Sprint("z", rack%2)}
		}
		b.nodes = append(b.nodes, n)
		for free := n.Capacity["cpu"]; free > int64(d.IntN(3)); {
			use := min(free, int64(1+d.IntN(4)))
			if small {
				use = min(free, 2)
			}
			free -= use
			id := fmt.Sprintf("v%02d", len(b.allocs))
			j := job(id, []int32{-20, 10, 10, 20, 30, 60}[d.IntN(6)], use, 1).Obj()
			a := coretest.Running(id, j, 0, 0, n.ID)
			b.others, b.allocs = append(b.others, j), append(b.allocs, a)
		}
	}
	b.job = job("j", 50, int64(1+d.IntN(5)), 1).Count(1 + d.IntN(5)).With(func(g *model.Group) {
		g.Labels, g.Colocate = labels("me"), term("me", "rack")
		if d.IntN(3) == 0 {
			g.Constraints = []model.Constraint{{Operator: model.OpDistinctHosts}}
		}
	}).Change(func(j *model.Job) { j.AllAtOnce = d.IntN(2) == 0 }).Obj()
	return b
}

// plan plans the job under a policy, with its group limited to a rack; "": to none.
func (b *rackCluster) plan(t *testing.T, policy, rack string) *scheduler.Outcome {
	w := newFixture(t, func() sdk.Policy { return kubernetes.New() }, func() sdk.Policy { return leastwaste.New() })
	w.now = 1e12
	w.config(func(c *model.SchedulerConfig) { c.Policy = policy })
	for i := range b.nodes {
		n := *b.nodes[i]
		w.node(n.ID, func(x *model.Node) { *x = n })
	}
	for i, j := range b.others {
		again := *j
		w.run(&again, b.allocs[i].ID, b.allocs[i].NodeID)
	}
	again := *b.job
	again.Groups = []*model.Group{new(model.Group)}
	*again.Groups[0] = *b.job.Groups[0]
	if rack != "" {
		g := again.Groups[0]
		g.Constraints = append(slices.Clone(g.Constraints), model.Constraint{Attribute: "rack", Operator: model.OpEqual, Value: rack})
	}
	w.job(&again)
	return w.plan("j")
}

// rack returns the rack of a plan that places every instance, and the victims.
func (b *rackCluster) rack(t *testing.T, out *scheduler.Outcome) (rack string, victims []*model.Allocation) {
	placed := 0
	for _, g := range out.Plan.Groups {
		for _, a := range g.Placements {
			n := b.nodes[slices.IndexFunc(b.nodes, func(n *model.Node) bool { return n.ID == a.NodeID })]
			if placed++; rack != "" && n.Attributes["rack"] != rack {
				t.Fatalf("racks %s and %s: %s", rack, n.Attributes["rack"], format(out))
			}
			rack = n.Attributes["rack"]
		}
		for _, e := range g.Evictions {
			victims = append(victims, b.allocs[slices.IndexFunc(b.allocs, func(a *model.Allocation) bool { return a.ID == e.AllocID })])
		}
	}
	if placed < b.job.Groups[0].Count {
		return "", victims
	}
	return rack, victims
}

// A tierOrder compares the victims of two ways as the tiers of a policy do.
type tierOrder func(x, y []*model.Allocation) int

func totals(victims []*model.Allocation) (highest, number, sum int64) {
	highest = -1 << 40
	for _, v := range victims {
		highest, sum = max(highest, int64(v.Job.Priority)), sum+int64(v.Job.Priority)
	}
	return highest, int64(len(victims)), sum
}

func byDefault(x, y []*model.Allocation) int {
	h, n, s := totals(x)
	h2, n2, s2 := totals(y)
	return cmp.Or(cmp.Compare(h, h2), cmp.Compare(n, n2), cmp.Compare(s, s2))
}

// All allocations started at the same time here.
func byKubernetes(x, y []*model.Allocation) int {
	h, n, s := totals(x)
	h2, n2, s2 := totals(y)
	return cmp.Or(cmp.Compare(h, h2), cmp.Compare(s+n<<31, s2+n2<<31), cmp.Compare(n, n2))
}

// Work that is bound to one rack is placed in the cheapest one, as if every rack were searched
// alone and the results compared by the tiers of the policy. It is placed in full exactly if
// some rack takes all of it, and without evictions exactly if some rack does.
func TestDomains_ChooseCheapestAsBruteForce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy string
		order  tierOrder
	}{{"default", byDefault}, {"kubernetes", byKubernetes}} {
		t.Run(c.policy, func(t *testing.T) {
			t.Parallel()
			evicts, choices := 0, 0
			for seed := range soak.Count(100, 30_000) {
				b := rollRacks(rand.New(rand.NewPCG(41, uint64(seed))))
				found := map[string][]*model.Allocation{}
				var best []*model.Allocation
				for k := range 6 {
					rack, victims := b.rack(t, b.plan(t, c.policy, fmt.Sprint("r", k)))
					if rack == "" {
						continue
					}
					if len(found) == 0 || c.order(victims, best) < 0 {
						best = victims
					}
					found[rack] = victims
				}
				out := b.plan(t, c.policy, "")
				rack, victims := b.rack(t, out)
				if (rack != "") != (len(found) > 0) {
					t.Fatalf("seed %d: %s; racks that take everything: %d", seed, format(out), len(found))
				}
				if rack == "" {
					continue
				}
				if c.order(victims, best) != 0 {
					t.Fatalf("seed %d: %s; cheaper: %v", seed, format(out), found)
				}
				if len(victims) > 0 {
					evicts++
				}
				if len(found) > 1 && len(victims) > 0 {
					choices++
				}
			}
			t.Logf("%d evict, %d of them with several racks", evicts, choices)
			if few := soak.Count(12, 50); choices < few {
				t.Errorf("%d choices: too few", choices)
			}
		})
	}
}

// A co-located group does not use free capacity before a group that precedes it.
func TestDomains_RespectOrderOfGroups(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", zone("a"))
	w.run(job("low", 10, 3, 1).Count(3).Obj(), "v1", "n1", "v2", "n1", "v3", "n1")
	w.job(job("j", 50, 1, 1).Group("h", 1).Ask(1, 1, 0).With(func(g *model.Group) {
		g.Labels, g.Colocate = labels("me"), term("me", "zone")
	}).Obj())
	for _, g := range w.plan("j").Plan.Groups {
		for _, e := range g.Evictions {
			if e.By != "j.h[0]" {
				t.Errorf("%s evicts %s", e.By, e.AllocID)
			}
		}
	}
}

// An instance uses what a victim of a later one frees, and evicts nothing itself. The first
// instance is placed on n1, where the victim is the cheaper one, but the second one needs n2.
func TestGang_UsesWhatLaterVictimsFree(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"default", "kubernetes", "least-waste"} {
		for _, key := range []string{"", "zone"} {
			t.Run(policy+" "+key, func(t *testing.T) {
				t.Parallel()
				w := newFixture(t, func() sdk.Policy { return kubernetes.New() }, func() sdk.Policy { return leastwaste.New() })
				w.now = 1e12
				w.config(func(c *model.SchedulerConfig) { c.Policy = policy })
				w.node("n1", zone("a"), func(n *model.Node) { n.Capacity["cpu"] = 2 })
				w.node("n2", zone("a"), func(n *model.Node) { n.Capacity["cpu"] = 4 })
				w.run(job("cheap", 10, 2, 1).Obj(), "v1", "n1")
				w.run(job("large", 10, 4, 1).Obj(), "v2", "n2")
				w.job(job("j", 50, 2, 1).Count(2).With(func(g *model.Group) {
					g.Labels = labels("me")
					if key != "" {
						g.Colocate = term("me", key)
					}
				}).Change(func(j *model.Job) { j.AllAtOnce = true }).Obj())
				var victims []string
				for _, g := range w.plan("j").Plan.Groups {
					for _, e := range g.Evictions {
						victims = append(victims, e.AllocID)
					}
					for _, a := range g.Placements {
						if a.NodeID != "n2" {
							t.Errorf("%s is on %s", a.ID, a.NodeID)
						}
					}
				}
				if !slices.Equal(victims, []string{"v2"}) {
					t.Errorf("evicts %v", victims)
				}
			})
		}
	}
}

// The groups of a gang may request different devices: the policy is called about all of them by
// way of the first, and neither the nodes nor the domains of the others need its devices.
func TestGang_ComparesNodesWithoutDevicesOfFirstGroup(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*model.Job){
		"nodes": func(*model.Job) {},
		"domains": func(j *model.Job) {
			for i, g := range j.Groups {
				app := fmt.Sprint("app", i)
				g.Labels, g.Colocate = labels(app), term(app, "rack")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			for i := range 4 {
				id := fmt.Sprint("n", i)
				w.node(id, func(n *model.Node) {
					n.Attributes = map[string]string{"rack": fmt.Sprint("r", i)}
					if i > 1 {
						n.Devices = []model.Device{{ID: "acme/gpu/a", Count: 1}}
					}
				})
				w.run(job("low"+id, 10, 10, 1).Obj(), "v"+id, id)
			}
			j := job("j", 50, 6, 1).With(func(g *model.Group) {
				g.Devices = []model.DeviceRequest{{ID: "gpu", Count: 1}}
			}).Group("h", 1).Ask(5, 1, 0).Change(change).Change(func(j *model.Job) { j.AllAtOnce = true }).Obj()
			w.job(j)
			if out := w.plan("j"); len(out.Failed) > 0 || len(out.Plan.Groups) != 1 || len(out.Plan.Groups[0].Placements) != 2 {
				t.Errorf("got %s", format(out))
			}
		})
	}
}
