package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// inRack sets the rack and the zone of a node with capacity for some instances of 2 cpu.
func inRack(rack, zone string, instances int64) func(*model.Node) {
	return func(n *model.Node) {
		n.Attributes = map[string]string{"rack": rack, "zone": zone}
		n.Capacity = model.Resources{"cpu": 2 * instances, "memory": 100}
	}
}

// together returns a gang of one group of instances of 2 cpu that share the domains of keys.
func together(count int, keys ...string) *coretest.JobBuilder {
	return job("j", 50, 2, 1).Count(count).With(bind(keys...)).Change(func(j *model.Job) { j.AllAtOnce = true })
}

func bind(keys ...string) func(*model.Group) {
	return func(g *model.Group) {
		g.Labels = labels("me")
		for _, key := range keys {
			g.Colocate = append(g.Colocate, term("me", key)...)
		}
	}
}

// The reason of a gang that fits into no domain names the domain and how much of the gang the
// largest one takes.
func TestGang_ExplainsThatNoDomainTakesAll(t *testing.T) {
	t.Parallel()
	racks := func(w *fixture, sizes ...int64) {
		for i, size := range sizes {
			w.node(fmt.Sprint("n", i), inRack(fmt.Sprint("r", i), fmt.Sprint("z", i/2), size))
		}
	}
	off := func(w *fixture) {
		w.config(func(c *model.SchedulerConfig) { c.Preemption = [model.EvalTypes]bool{} })
	}
	for _, c := range []struct {
		name  string
		setup func(w *fixture)
		want  map[string]string
	}{
		{"free capacity without preemption", func(w *fixture) {
			off(w)
			racks(w, 3, 4)
			w.job(together(5, "rack").Obj())
		}, map[string]string{"g": "all at once: no rack takes all 5 instances; the largest takes 4; no preemption: preemption is off for service jobs"}},
		{"nothing that could be evicted", func(w *fixture) {
			racks(w, 3, 4)
			w.job(together(5, "rack").Obj())
		}, map[string]string{"g": "all at once: no rack takes all 5 instances; the largest takes 4, even with evictions"}},
		{"evictions", func(w *fixture) {
			racks(w, 3, 4)
			w.run(job("low", 10, 4, 1).Count(2).Obj(), "a", "n1", "b", "n0")
			w.run(job("high", 90, 2, 1).Obj(), "c", "n0")
			w.job(together(5, "rack").Obj())
		}, map[string]string{"g": "all at once: no rack takes all 5 instances; the largest takes 4 with evictions"}},
		{"an instance fits nowhere", func(w *fixture) {
			racks(w, 3, 4)
			w.job(together(5, "rack").Ask(20, 1, 0).Obj())
		}, map[string]string{"g": "0 of 2 nodes: 2 lack cpu; eviction does not help: on 2 nothing runs that could be evicted"}},
		{"nodes that are down", func(w *fixture) {
			racks(w, 3, 4)
			w.node("n9", inRack("r0", "z0", 5), func(n *model.Node) { n.Status = model.NodeDown })
			w.job(together(5, "rack").Obj())
		}, map[string]string{"g": "all at once: no rack takes all 5 instances; the largest takes 4, even with evictions; of 3 nodes 1 is down"}},
		{"nested levels, the outer one", func(w *fixture) {
			racks(w, 1, 1, 1)
			w.job(together(3, "rack", "zone").Obj())
		}, map[string]string{"g": "all at once: no zone takes all 3 instances; the largest takes at most 2, even with evictions"}},
		{"nested levels, the inner one", func(w *fixture) {
			racks(w, 1, 2, 1)
			w.job(together(3, "rack", "zone").Obj())
		}, map[string]string{"g": "all at once: no rack within a zone of sufficient capacity takes all 3 instances; the largest takes at most 2, even with evictions"}},
		{"several groups in one domain", func(w *fixture) {
			racks(w, 3, 5)
			w.job(together(4, "rack").Group("h", 2).Ask(2, 1, 0).With(bind("rack")).Obj())
		}, map[string]string{
			"g": "all at once: no rack takes all 6 instances; the best attempt placed 5",
			"h": "all at once: no rack takes all 6 instances; the best attempt placed 5",
		}},
		{"another group elsewhere", func(w *fixture) {
			racks(w, 3, 4)
			w.node("x", func(n *model.Node) { n.Capacity = model.Resources{"cpu": 1, "memory": 100} })
			w.job(together(5, "rack").Group("h", 1).Ask(1, 1, 0).Obj())
		}, map[string]string{
			"g": "all at once: no rack takes all 5 instances of g; the largest takes 4, even with evictions",
			"h": "all at once: another group of the job cannot be placed",
		}},
		{"two groups in a domain each", func(w *fixture) {
			racks(w, 3, 4)
			other := bind("rack")
			w.job(together(2, "rack").Group("h", 5).Ask(2, 1, 0).With(func(g *model.Group) {
				other(g)
				g.Labels, g.Colocate = labels("other"), term("other", "rack")
			}).Obj())
		}, map[string]string{
			"g": "all at once: another group of the job cannot be placed",
			"h": "all at once: no rack takes all 5 instances of h; the largest takes at most 4, even with evictions",
		}},
		{"two groups that compete", func(w *fixture) {
			racks(w, 3, 1)
			w.job(together(2, "rack").Group("h", 2).Ask(2, 1, 0).With(func(g *model.Group) {
				g.Labels, g.Colocate = labels("other"), term("other", "rack")
			}).Obj())
		}, map[string]string{
			"g": "all at once: no choice of domains by rack takes all 4 instances; the best attempt placed 3",
			"h": "all at once: no choice of domains by rack takes all 4 instances; the best attempt placed 3",
		}},
		{"a group without a domain competes", func(w *fixture) {
			racks(w, 3, 1)
			w.job(together(3, "rack").Group("h", 2).Ask(2, 1, 0).Obj())
		}, map[string]string{
			"g": "all at once: no choice of domains by rack takes all 5 instances; the best attempt placed 4",
			"h": "all at once: no choice of domains by rack takes all 5 instances; the best attempt placed 4",
		}},
		{"a group without a domain fits nowhere", func(w *fixture) {
			racks(w, 3, 1)
			w.job(together(3, "rack").Group("h", 1).Ask(9, 1, 0).Obj())
		}, map[string]string{
			"g": "all at once: another group of the job cannot be placed",
			"h": "0 of 2 nodes: 2 lack cpu; eviction does not help: on 2 nothing runs that could be evicted",
		}},
		{"two groups of which each fits after moves", func(w *fixture) {
			off(w)
			w.config(func(c *model.SchedulerConfig) { c.Moves = &model.Rate{Number: 9, Window: time.Hour} })
			racks(w, 2)
			w.node("x", func(n *model.Node) { n.Capacity = model.Resources{"cpu": 2, "memory": 100} })
			w.run(job("equal", 50, 2, 1).Obj(), "a", "n0")
			w.job(together(2, "rack").Group("h", 1).Ask(4, 1, 0).Obj())
		}, map[string]string{
			"g": "all at once: no choice of domains by rack takes all 3 instances; the best attempt placed 1; no preemption: preemption is off for service jobs",
			"h": "all at once: no choice of domains by rack takes all 3 instances; the best attempt placed 1; no preemption: preemption is off for service jobs",
		}},
		{"instances that run", func(w *fixture) {
			racks(w, 3, 9)
			w.run(together(5, "rack").Obj(), "a", "n0", "b", "n0")
		}, map[string]string{"g": "all at once: rack r0, where instances run already, does not take all 3 instances; it takes 1, even with evictions"}},
		{"rules that amounts do not reflect", func(w *fixture) {
			racks(w, 5, 5)
			w.node("n7", inRack("r1", "z0", 5))
			w.job(together(3, "rack").With(func(g *model.Group) { g.Ports = []uint16{80} }).Obj())
		}, map[string]string{"g": "all at once: no rack takes all 3 instances; the best attempt placed 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			c.setup(w)
			out := w.plan("j")
			got := map[string]string{}
			for group, why := range out.Failed {
				got[group] = why.String()
				if why.Gang != "" && len(why.Filtered) > 0 {
					t.Errorf("group %s: %+v, want a reason that counts no nodes", group, why)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got\n%v, want\n%v", got, c.want)
			}
		})
	}
}

// The reason of a gang without domains names how much of it was placed before a node was
// lacking: the nodes of the reason have capacity without the gang.
func TestGang_ExplainsHowMuchAnAttemptPlaced(t *testing.T) {
	t.Parallel()
	anywhere := func(count int) *coretest.JobBuilder {
		return job("j", 50, 2, 1).Count(count).Change(func(j *model.Job) { j.AllAtOnce = true })
	}
	for _, c := range []struct {
		name  string
		setup func(w *fixture)
		want  string
	}{
		{
			"free capacity", func(w *fixture) { w.job(anywhere(3).Obj()) },
			"all at once: an attempt placed 2 of 3 instances; for the next one, 0 of 2 nodes: 2 lack cpu; eviction does not help: on 2 nothing has a priority of 40 or less",
		},
		{"capacity of lower priorities", func(w *fixture) {
			w.run(job("low", 20, 2, 1).Obj(), "a", "n0", "b", "n1")
			w.job(anywhere(3).Obj())
		}, "all at once: an attempt placed 2 of 3 instances; for the next one, 0 of 2 nodes: 2 lack cpu; eviction does not help: on 2 nothing has a priority of 40 or less"},
		{"no capacity for any instance", func(w *fixture) {
			w.run(job("high", 50, 2, 1).Obj(), "a", "n0", "b", "n1")
			w.job(anywhere(3).Obj())
		}, "0 of 2 nodes: 2 lack cpu; eviction does not help: on 2 nothing has a priority of 40 or less"},
		{"a gang of one", func(w *fixture) {
			w.run(job("high", 50, 2, 1).Obj(), "a", "n0", "b", "n1")
			w.job(anywhere(1).Obj())
		}, "0 of 2 nodes: 2 lack cpu; eviction does not help: on 2 nothing has a priority of 40 or less"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			w.node("n0", inRack("r0", "z0", 1))
			w.node("n1", inRack("r0", "z0", 1))
			c.setup(w)
			if got := w.plan("j").Failed["g"].String(); got != c.want {
				t.Errorf("got\n%s, want\n%s", got, c.want)
			}
		})
	}
}

// A cluster in which the gang is placed in a rack alone is examined rack by rack, for fewer and
// fewer instances: the number of the reason is what some rack takes, or above it if it is a bound.
func TestGang_ReasonAgreesWithBruteForce(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for seed := range soak.Count(150, 10_000) {
		b := rollRacks(rand.New(rand.NewPCG(43, uint64(seed))))
		b.job.AllAtOnce = true
		b.job.Groups[0].Count += 2
		count := b.job.Groups[0].Count
		why := b.plan(t, "default", "").Failed["g"]
		if why == nil {
			continue
		}
		text := why.String()
		most := 0
		for n := count; n > 0 && most == 0; n-- {
			b.job.Groups[0].Count = n
			if slices.ContainsFunc([]string{"r0", "r1", "r2", "r3", "r4", "r5"}, func(rack string) bool {
				at, _ := b.rack(t, b.plan(t, "default", rack))
				return at != ""
			}) {
				most = n
			}
		}
		b.job.Groups[0].Count = count
		n, ok := 0, false
		for _, kind := range []string{"takes at most", "takes", "placed"} {
			_, rest, found := strings.Cut(text, fmt.Sprintf("no rack takes all %d instances; ", count))
			if _, number, is := strings.Cut(rest, kind+" "); found && is {
				if _, err := fmt.Sscan(number, &n); err != nil {
					t.Fatal(err)
				}
				ok = map[string]bool{"takes at most": most <= n, "takes": most == n, "placed": most >= n}[kind]
				kinds[kind]++
				break
			}
		}
		switch {
		case most == count:
			t.Fatalf("seed %d: some rack takes all %d: %s", seed, count, text)
		case n == 0: // a reason by nodes
			kinds["nodes"]++
			if most > 0 {
				t.Fatalf("seed %d: the largest rack takes %d of %d: %s", seed, most, count, text)
			}
		case !ok:
			t.Fatalf("seed %d: the largest rack takes %d of %d: %s", seed, most, count, text)
		}
	}
	t.Log(kinds)
	if kinds["takes"] < soak.Count(10, 10) || kinds["takes at most"] == 0 {
		t.Errorf("too few reasons: %v", kinds)
	}
}

// An instance of which all victims are retained, because a later one frees more than it uses, has no
// version of a policy either.
func TestGang_InstanceWithoutVictimsHasNoPolicy(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", func(n *model.Node) { n.Capacity["cpu"] = 20 })
	w.run(job("x", 10, 6, 1).Obj(), "x1", "n1")
	w.run(job("y", 20, 12, 1).Obj(), "y1", "n1")
	w.job(job("gang", 90, 7, 1).Count(2).Change(func(j *model.Job) { j.AllAtOnce = true }).Obj())
	w.want("gang", "gang.g[0]@n1, gang.g[1]@n1 over y1")
	for id, evicts := range map[string]bool{"gang.g[0]": false, "gang.g[1]": true} {
		if a := w.store.Snapshot().Alloc(id); (a.PolicyVersion != "") != evicts {
			t.Errorf("%s: policy %q", id, a.PolicyVersion)
		}
	}
}
