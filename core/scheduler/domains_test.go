package scheduler_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/state"
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
	// rerun changes allocations after they were stored; nil: not at all.
	rerun func(*model.Allocation)
}

// rackNow is the time at which work on racks is planned, in Unix nanoseconds.
const rackNow = 1e12

// byRule is the order of the policy rule: by number, then by the lost work of all victims.
func byRule(x, y []*model.Allocation) int {
	lost := func(victims []*model.Allocation) (sum int64) {
		for _, v := range victims {
			sum += v.Group.LostWork(v.Age(rackNow))
		}
		return sum
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(lost(x), lost(y)))
}

// byLeastWaste returns the order of least-waste in a cluster: the highest band, the waste in it, all
// waste, and the highest priority.
func (b *rackCluster) byLeastWaste(x, y []*model.Allocation) int {
	cpu, memory := int64(0), int64(0)
	for _, n := range b.nodes {
		cpu, memory = cpu+n.Capacity["cpu"], memory+n.Capacity["memory"]
	}
	tiers := func(victims []*model.Allocation) [4]int64 {
		highest, _, _ := totals(victims)
		t := [4]int64{int64(math.Floor(float64(highest) / 10)), 0, 0, highest}
		if len(victims) == 0 {
			t[0] = math.MinInt64
		}
		for _, v := range victims {
			lost, share := float64(v.Group.LostWork(v.Age(rackNow))), 0.0
			share += float64(v.Group.Resources["cpu"]) / float64(cpu)
			share += float64(v.Group.Resources["memory"]) / float64(memory)
			if worth, ok := v.Group.Annotations["cost"]; ok {
				lost *= worth
			}
			waste := int64(lost*share/2) + 1
			t[2] += waste
			if math.Floor(float64(v.Job.Priority)/10) == float64(t[0]) {
				t[1] += waste
			}
		}
		return t
	}
	p, q := tiers(x), tiers(y)
	return slices.Compare(p[:], q[:])
}

// rollAges gives the allocations of a cluster ages and checkpoints, and cost annotations to some. In
// half of the clusters, racks differ in age.
func (b *rackCluster) rollAges(d *rand.Rand) {
	racks := d.IntN(2) == 0
	scale := map[string]float64{}
	for i, a := range b.allocs {
		n := b.nodes[slices.IndexFunc(b.nodes, func(n *model.Node) bool { return n.ID == a.NodeID })]
		rack := n.Attributes["rack"]
		if scale[rack] == 0 {
			if scale[rack] = 1; racks {
				scale[rack] = []float64{0.01, 0.3, 1}[d.IntN(3)]
			}
		}
		g := b.others[i].Groups[0]
		if d.IntN(4) == 0 {
			g.Checkpoint = int64(1+d.IntN(60)) * 1e9
		}
		if d.IntN(20) == 0 {
			g.Annotations = map[string]float64{"cost": d.Float64() * 3}
		}
		if d.IntN(10) == 0 {
			a.Started = false
		}
		a.StartTime = rackNow - int64(scale[rack]*float64(d.IntN(600e9)))
	}
	b.rerun = func(a *model.Allocation) {
		of := b.allocs[slices.IndexFunc(b.allocs, func(x *model.Allocation) bool { return x.ID == a.ID })]
		a.StartTime, a.Started = of.StartTime, of.Started
	}
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

// plan plans the job under a policy, with its groups limited to racks; "", or missing: to none;
// "absent": the group has no instances.
func (b *rackCluster) plan(t *testing.T, policy string, racks ...string) *scheduler.Outcome {
	w := newFixture(t, func() sdk.Policy { return kubernetes.New() }, func() sdk.Policy { return leastwaste.New() }, func() sdk.Policy { return &rule{} })
	w.now = rackNow
	w.config(func(c *model.SchedulerConfig) { c.Policy = policy })
	for i := range b.nodes {
		n := *b.nodes[i]
		w.node(n.ID, func(x *model.Node) { *x = n })
	}
	for i, j := range b.others {
		again := *j
		w.run(&again, b.allocs[i].ID, b.allocs[i].NodeID)
		if b.rerun != nil {
			w.write(func(txn *state.Txn) {
				a := *txn.Alloc(b.allocs[i].ID)
				b.rerun(&a)
				txn.AllocWriter().Upsert(&a)
			})
		}
	}
	again := *b.job
	again.Groups = nil
	for i, group := range b.job.Groups {
		g := *group
		switch {
		case i >= len(racks) || racks[i] == "":
		case racks[i] == "absent":
			g.Count = 0
		default:
			g.Constraints = append(slices.Clone(g.Constraints), model.Constraint{Attribute: "rack", Operator: model.OpEqual, Value: racks[i]})
		}
		again.Groups = append(again.Groups, &g)
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
	count := 0
	for _, g := range b.job.Groups {
		count += g.Count
	}
	if placed < count {
		return "", victims
	}
	return rack, victims
}

// rollPair replaces the job by a gang of small instances and of large ones that run near them, in
// either order of the groups. The large ones may be bound to the small ones alone, or both to each other.
func (b *rackCluster) rollPair(d *rand.Rand) {
	small, large := int64(1+d.IntN(4)), int64(4+d.IntN(4))
	b.job = job("j", 50, small, 1).Count(1+d.IntN(3)).With(func(g *model.Group) {
		g.Labels, g.Colocate = labels("me"), term("me", "rack")
	}).Group("large", 1+d.IntN(2)).Ask(large, 1, 0).With(func(g *model.Group) {
		if g.Colocate = term("me", "rack"); d.IntN(3) == 0 {
			g.Labels = labels("me")
		}
	}).Change(func(j *model.Job) {
		// The way is not revised: a domain may be the cheapest only after a revision.
		for _, g := range j.Groups {
			g.Separate = term("none", "node")
		}
		if j.AllAtOnce = true; d.IntN(2) == 0 {
			slices.Reverse(j.Groups)
		}
	}).Obj()
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

// compareRacks plans the job, and returns its victims and the number of racks that take all of it alone.
// A problem is the difference from the cheapest of them; "": none.
func (b *rackCluster) compareRacks(t *testing.T, policy string, order tierOrder) (victims []*model.Allocation, found int, problem string) {
	ways := map[string][]*model.Allocation{}
	var best []*model.Allocation
	for k := range 6 {
		at := fmt.Sprint("r", k)
		rack, victims := b.rack(t, b.plan(t, policy, slices.Repeat([]string{at}, len(b.job.Groups))...))
		if rack == "" {
			continue
		}
		if len(ways) == 0 || order(victims, best) < 0 {
			best = victims
		}
		ways[rack] = victims
	}
	out := b.plan(t, policy)
	rack, victims := b.rack(t, out)
	switch {
	case (rack != "") != (len(ways) > 0):
		problem = fmt.Sprintf("%s; racks that take everything: %d", format(out), len(ways))
	case rack != "" && order(victims, best) != 0:
		problem = fmt.Sprintf("%s; cheaper: %v", format(out), ways)
	}
	return victims, len(ways), problem
}

// Work that is bound to one rack is placed in the cheapest one, as if every rack were searched
// alone and the results compared by the tiers of the policy. It is placed in full exactly if
// some rack takes all of it, and without evictions exactly if some rack does.
func TestDomains_ChooseCheapestAsBruteForce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy string
		order  tierOrder // nil: byLeastWaste of the cluster
		ages   bool
	}{{"default", byDefault, false}, {"kubernetes", byKubernetes, false}, {"rule", byRule, true}, {"least-waste", nil, true}, {"least-waste", nil, false}} {
		t.Run(fmt.Sprintf("%s, ages %v", c.policy, c.ages), func(t *testing.T) {
			t.Parallel()
			evicts, choices := 0, 0
			for seed := range soak.Count(100, 30_000) {
				d := rand.New(rand.NewPCG(41, uint64(seed)))
				b := rollRacks(d)
				if c.ages {
					b.rollAges(d)
				}
				if c.order == nil || c.ages {
					// The way is not revised: a domain may be the cheapest only after a revision.
					b.job.Groups[0].Separate = term("none", "node")
				}
				order := c.order
				if order == nil {
					order = b.byLeastWaste
				}
				victims, found, problem := b.compareRacks(t, c.policy, order)
				if problem != "" {
					t.Fatalf("seed %d: %s", seed, problem)
				}
				if len(victims) > 0 {
					evicts++
				}
				if found > 1 && len(victims) > 0 {
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

// A gang of two groups that must share a rack is placed in the cheapest rack as well, also if the
// instances of the first group, each where its own victims are the cheapest, leave no node to those
// of the second one.
func TestDomains_ChooseCheapestForTwoGroups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy string
		order  tierOrder // nil: byLeastWaste of the cluster
	}{{"default", byDefault}, {"kubernetes", byKubernetes}, {"rule", byRule}, {"least-waste", nil}} {
		t.Run(c.policy, func(t *testing.T) {
			t.Parallel()
			choices := 0
			for seed := range soak.Count(100, 10_000) {
				d := rand.New(rand.NewPCG(47, uint64(seed)))
				b := rollRacks(d)
				if c.policy == "rule" || c.policy == "least-waste" {
					b.rollAges(d)
				}
				b.rollPair(d)
				order := c.order
				if order == nil {
					order = b.byLeastWaste
				}
				victims, found, problem := b.compareRacks(t, c.policy, order)
				if problem != "" {
					t.Errorf("seed %d: %s", seed, problem)
				}
				if found > 1 && len(victims) > 0 {
					choices++
				}
			}
			t.Logf("%d choices", choices)
			if few := soak.Count(12, 1000); choices < few {
				t.Errorf("%d choices: too few", choices)
			}
		})
	}
}

// Each small instance has its cheapest victims on a node of its own, which leaves no node of the
// cheap rack to the large one that must be near them. The rack takes all of them nevertheless. Racks
// that take none of them, however long they are searched, do not prevent that.
func TestDomains_SearchNodesForTwoGroups(t *testing.T) {
	t.Parallel()
	for _, divided := range []int{0, 6} {
		t.Run(fmt.Sprintf("%d divided racks", divided), func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			fill := func(rack, id string, cpu, each int64, priorities ...int32) {
				w.node(id, func(n *model.Node) { n.Capacity["cpu"], n.Attributes = cpu, map[string]string{"rack": rack} })
				for i := range cpu / each {
					v := fmt.Sprint("v-", id, "-", i)
					w.run(job(v, priorities[int(i)%len(priorities)], each, 1).Obj(), v, id)
				}
			}
			for k := range divided {
				// One small instance must use the node that the large one needs, whichever node each uses.
				rack := fmt.Sprint("divided", k)
				for i := range 7 {
					fill(rack, fmt.Sprint(rack, "-", i), []int64{8, 4, 4, 4, 4, 4, 4}[i], 4, 10)
				}
			}
			for i := range 8 {
				if i < 5 {
					fill("cheap", fmt.Sprint("cheap-", i), 8, 4, 20, 25)
				}
				fill("dear", fmt.Sprint("dear-", i), 8, 4, 40)
			}
			w.job(job("j", 90, 4, 1).Count(7).With(func(g *model.Group) {
				g.Labels, g.Colocate = labels("me"), term("me", "rack")
			}).Group("large", 1).Ask(8, 1, 0).With(func(g *model.Group) {
				g.Colocate = term("me", "rack")
			}).Change(func(j *model.Job) { j.AllAtOnce = true }).Obj())
			nodes := nodesOf(w.plan("j"))
			if len(nodes) != 8 || slices.ContainsFunc(nodes, func(id string) bool { return id[:5] != "cheap" }) {
				t.Errorf("placed on %v, want eight instances in the cheap rack", nodes)
			}
		})
	}
}
