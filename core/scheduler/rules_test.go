package scheduler_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
)

func TestConstraints_EveryOperator(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		constraint model.Constraint
		nodes      string // feasible nodes among a1 (zone a, v 1.2.3), b2 (zone b, v 2.0.0) and c- (neither)
	}{
		{model.Constraint{Attribute: "zone", Operator: "=", Value: "a"}, "a1"},
		{model.Constraint{Attribute: "zone", Operator: "!=", Value: "a"}, "b2 c-"},
		{model.Constraint{Attribute: "rack", Operator: "<", Value: "10"}, "a1"},
		{model.Constraint{Attribute: "rack", Operator: "<=", Value: "10"}, "a1 b2"},
		{model.Constraint{Attribute: "rack", Operator: ">", Value: "9"}, "b2"},
		{model.Constraint{Attribute: "rack", Operator: ">=", Value: "9"}, "a1 b2"},
		{model.Constraint{Attribute: "zone", Operator: "<", Value: "b"}, "a1"},
		{model.Constraint{Attribute: "zone", Operator: "in", Values: []string{"a", "b"}}, "a1 b2"},
		{model.Constraint{Attribute: "zone", Operator: "notin", Value: "a, x"}, "b2 c-"},
		{model.Constraint{Attribute: "zone", Operator: "regexp", Value: "^[bx]$"}, "b2"},
		{model.Constraint{Attribute: "v", Operator: "version", Value: ">= 1.0, < 2.0"}, "a1"},
		{model.Constraint{Attribute: "zone", Operator: "is_set"}, "a1 b2"},
		{model.Constraint{Attribute: "zone", Operator: "is_not_set"}, "c-"},
		{model.Constraint{Attribute: "node.id", Operator: "=", Value: "b2"}, "b2"},
		{model.Constraint{Attribute: "node.datacenter", Operator: "=", Value: "dc1"}, "a1 b2 c-"},
		{model.Constraint{Attribute: "node.class", Operator: "is_set"}, "a1"},
	} {
		t.Run(c.constraint.String(), func(t *testing.T) {
			w := newFixture(t)
			w.node("a1", func(n *model.Node) {
				n.Class, n.Attributes = "big", map[string]string{"zone": "a", "v": "1.2.3", "rack": "9"}
			})
			w.node("b2", func(n *model.Node) { n.Attributes = map[string]string{"zone": "b", "v": "2.0.0", "rack": "10"} })
			w.node("c-")
			w.job(job("s", 50, 1, 1).Type(model.JobSystem).With(func(g *model.Group) {
				g.Constraints = []model.Constraint{c.constraint}
			}).Obj())
			got := ""
			for _, g := range w.plan("s").Plan.Groups {
				for _, a := range g.Placements {
					got += " " + a.NodeID
				}
			}
			if got != " "+c.nodes {
				t.Errorf("placed on%s, want %s", got, c.nodes)
			}
		})
	}
}

func TestRules_BetweenAllocations(t *testing.T) {
	t.Parallel()
	labelled := func(app string) func(*model.Group) {
		return func(g *model.Group) { g.Labels = map[string]string{"app": app} }
	}
	term := func(app, key string) []model.LabelTerm {
		return []model.LabelTerm{{Labels: map[string]string{"app": app}, TopologyKey: key}}
	}
	for _, c := range []struct {
		name   string
		others func(w *fixture)
		job    *model.Job
		want   string
	}{
		{"distinct hosts", nil, job("j", 50, 1, 1).Count(5).With(func(g *model.Group) {
			g.Constraints = []model.Constraint{{Operator: model.OpDistinctHosts}}
		}).Obj(), "j.g[0]@n1, j.g[1]@n2, j.g[2]@n3, j.g[3]@n4, g waits for 1"},
		{"distinct hosts, evicting", func(w *fixture) {
			w.run(job("low", 10, 10, 10).Obj(), "l1", "n1", "l2", "n2", "l3", "n3")
		}, job("j", 50, 6, 6).Count(2).With(func(g *model.Group) {
			g.Constraints = []model.Constraint{{Operator: model.OpDistinctHosts}}
		}).Obj(), "j.g[0]@n4, j.g[1]@n1 over l1"},
		{"distinct property", nil, job("j", 50, 1, 1).Count(3).With(func(g *model.Group) {
			g.Constraints = []model.Constraint{{Operator: model.OpDistinctProperty, Attribute: "zone"}}
		}).Obj(), "j.g[0]@n1, j.g[1]@n3, g waits for 1"},
		{"two may share a property", nil, job("j", 50, 1, 1).Count(5).With(func(g *model.Group) {
			g.Constraints = []model.Constraint{{Operator: model.OpDistinctProperty, Attribute: "zone", Value: "2"}}
		}).Obj(), "j.g[0]@n1, j.g[1]@n2, j.g[2]@n3, j.g[3]@n4, g waits for 1"},
		{"an affinity decides", nil, job("j", 50, 1, 1).With(func(g *model.Group) {
			g.Affinities = []model.Affinity{{Constraint: model.Constraint{Attribute: "zone", Operator: "=", Value: "b"}, Weight: 50}}
		}).Obj(), "j.g[0]@n3"},
		{"an aversion decides", nil, job("j", 50, 1, 1).With(func(g *model.Group) {
			g.Affinities = []model.Affinity{{Constraint: model.Constraint{Attribute: "zone", Operator: "=", Value: "a"}, Weight: -50}}
		}).Obj(), "j.g[0]@n3"},
		{"spread evenly", nil, job("j", 50, 1, 1).Count(4).With(func(g *model.Group) {
			g.Spread = []model.Spread{{Attribute: "zone", Weight: 100}}
		}).Obj(), "j.g[0]@n1, j.g[1]@n3, j.g[2]@n2, j.g[3]@n4"},
		{"spread by targets", nil, job("j", 50, 1, 1).Count(4).With(func(g *model.Group) {
			g.Spread = []model.Spread{{Attribute: "zone", Weight: 100, Targets: map[string]int{"a": 25, "b": 75}}}
		}).Obj(), "j.g[0]@n3, j.g[1]@n4, j.g[2]@n1, j.g[3]@n3"},
		{"skew is hard", func(w *fixture) {
			w.run(job("high", 90, 10, 10).Obj(), "h3", "n3", "h4", "n4")
		}, job("j", 50, 1, 1).Count(3).With(func(g *model.Group) {
			g.Spread = []model.Spread{{Attribute: "zone", Weight: 50, MaxSkew: 2}}
		}).Obj(), "j.g[0]@n1, j.g[1]@n2, g waits for 1"},
		{
			"colocate", func(w *fixture) {
				w.run(job("cache", 50, 1, 1).With(labelled("cache")).Obj(), "c", "n3")
			}, job("j", 50, 6, 6).Count(3).With(func(g *model.Group) { g.Colocate = term("cache", "zone") }).Obj(),
			"j.g[0]@n3, j.g[1]@n4, g waits for 1",
		},
		{
			"colocate without a target", nil, job("j", 50, 1, 1).With(func(g *model.Group) { g.Colocate = term("cache", "zone") }).Obj(),
			"g waits for 1",
		},
		{"colocate with itself: the first is free, the others follow", nil, job("j", 50, 6, 6).Count(3).With(func(g *model.Group) {
			g.Labels, g.Colocate = map[string]string{"app": "j"}, term("j", "zone")
		}).Obj(), "j.g[0]@n1, j.g[1]@n2, g waits for 1"},
		{"colocate fails without the key", nil, job("j", 50, 1, 1).With(func(g *model.Group) {
			g.Labels, g.Colocate = map[string]string{"app": "j"}, term("j", "row")
		}).Obj(), "g waits for 1"},
		{
			"colocate never evicts its target", func(w *fixture) {
				w.run(job("cache", 10, 6, 6).With(labelled("cache")).Obj(), "c", "n3")
				w.run(job("low", 20, 4, 4).Obj(), "l", "n3")
			}, job("j", 50, 4, 4).With(func(g *model.Group) { g.Colocate = term("cache", "node") }).Obj(),
			"j.g[0]@n3 over l",
		},
		{
			"apart from others", func(w *fixture) {
				w.run(job("x", 90, 1, 1).With(labelled("x")).Obj(), "x1", "n1", "x3", "n3")
			}, job("j", 50, 1, 1).Count(3).With(func(g *model.Group) { g.Separate = term("x", "node") }).Obj(),
			"j.g[0]@n2, j.g[1]@n4, j.g[2]@n2",
		},
		{"apart from itself", nil, job("j", 50, 1, 1).Count(3).With(func(g *model.Group) {
			g.Labels, g.Separate = map[string]string{"app": "j"}, term("j", "zone")
		}).Obj(), "j.g[0]@n1, j.g[1]@n3, g waits for 1"},
		{"another job's term binds, too", func(w *fixture) {
			w.run(job("x", 90, 1, 1).With(func(g *model.Group) { g.Separate = term("j", "zone") }).Obj(), "x1", "n1")
		}, job("j", 50, 1, 1).With(labelled("j")).Obj(), "j.g[0]@n3"},
		{"a term of another namespace does not", func(w *fixture) {
			w.run(job("x", 90, 1, 1).With(func(g *model.Group) { g.Separate = term("j", "zone") }).
				Change(func(j *model.Job) { j.Namespace = "other" }).Obj(), "x1", "n1")
		}, job("j", 50, 1, 1).With(labelled("j")).Obj(), "j.g[0]@n1"},
		{"apart passes without the key", nil, job("j", 50, 1, 1).Count(2).With(func(g *model.Group) {
			g.Labels, g.Separate = map[string]string{"app": "j"}, term("j", "row")
		}).Obj(), "j.g[0]@n1, j.g[1]@n2"},
		{"apart from lower priority: it goes", func(w *fixture) {
			for i := 1; i <= 4; i++ {
				w.run(job(fmt.Sprint("x", i), int32(10*i), 1, 1).With(labelled("x")).Obj(), fmt.Sprint("a", i), fmt.Sprint("n", i))
			}
		}, job("j", 50, 1, 1).With(func(g *model.Group) { g.Separate = term("x", "node") }).Obj(), "j.g[0]@n1 over a1"},
		{"datacenters", nil, job("j", 50, 1, 1).Change(func(j *model.Job) { j.Datacenters = []string{"dc9"} }).Obj(), "g waits for 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newFixture(t)
			for i, z := range []string{"a", "a", "b", "b"} {
				w.node(fmt.Sprint("n", i+1), zone(z))
			}
			if c.others != nil {
				c.others(w)
			}
			w.job(c.job)
			// Instances are placed in the order of their index.
			if got := w.eval("j"); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// Anti-affinity is symmetric for every job type.
func TestSeparate_BindsSystemJobsToo(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1")
	w.node("n2")
	w.run(job("x", 90, 1, 1).With(func(g *model.Group) {
		g.Separate = []model.LabelTerm{{Labels: map[string]string{"app": "s"}, TopologyKey: "node"}}
	}).Obj(), "x1", "n1")
	w.job(job("s", 50, 1, 1).Type(model.JobSystem).With(func(g *model.Group) { g.Labels = map[string]string{"app": "s"} }).Obj())
	w.want("s", "s.g[0]@n2, g waits for 1")
}

// A zone of draining nodes does not count when their allocations move.
func TestSpread_IgnoresDrainingZone(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", zone("a"))
	w.node("n2", zone("b"), func(n *model.Node) { n.Drain = true })
	w.run(job("j", 50, 1, 1).Count(2).With(func(g *model.Group) {
		g.Spread = []model.Spread{{Attribute: "zone", Weight: 50, MaxSkew: 1}}
	}).Obj(), "j1", "n1", "j2", "n2")
	w.want("j", "j.g[1]#1@n1, stop j2")
}

func TestDevices_ComeFromOneGroup(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", func(n *model.Node) {
		n.Devices = []model.Device{
			{ID: "acme/gpu/small", Count: 4, Attributes: map[string]string{"memory": "8"}},
			{ID: "acme/gpu/large", Count: 2, Attributes: map[string]string{"memory": "32"}},
		}
	})
	w.job(job("j", 50, 1, 1).Count(3).With(func(g *model.Group) {
		g.Devices = []model.DeviceRequest{{ID: "gpu", Count: 1, Constraints: []model.Constraint{{Attribute: "memory", Operator: ">", Value: "16"}}}}
	}).Obj())
	out := w.plan("j")
	if got := format(out); got != "j.g[0]@n1, j.g[1]@n1, g waits for 1" {
		t.Error(got)
	}
	for _, a := range out.Plan.Groups[0].Placements {
		if len(a.Devices) != 1 || a.Devices[0] != (model.DeviceUse{ID: "acme/gpu/large", Count: 1}) {
			t.Errorf("%s has %v", a.ID, a.Devices)
		}
	}
	if got, want := out.Failed["g"].String(), "0 of 1 node: 1 lacks device gpu; eviction does not help: on 1 nothing has a priority of 40 or less"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	w.job(coretest.Job("k").With(func(g *model.Group) { g.Devices = []model.DeviceRequest{{ID: "gpu", Count: 5}} }).Obj())
	if got, want := w.plan("k").Failed["g"].String(), "0 of 1 node: 1 excluded by devices gpu × 5"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Nodes with fewer devices of a kind have another class: a request may exceed one class
// and fit the other.
func TestDevices_CountDistinguishesClasses(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for i, count := range []int32{1, 2} {
		w.node(fmt.Sprint("n", i), func(n *model.Node) { n.Devices = []model.Device{{ID: "acme/gpu/a", Count: count}} })
	}
	w.job(job("f", 0, 5, 0).With(func(g *model.Group) { g.Devices = []model.DeviceRequest{{ID: "gpu", Count: 2}} }).Obj())
	w.want("f", "f.g[0]@n1")
}

// A topology key that nodes lack is reported: otherwise a misspelt key looks like a missing
// target.
func TestColocation_ReportsNodesWithoutTheKey(t *testing.T) {
	w := newFixture(t)
	w.node("n1")
	w.job(job("k", 50, 1, 1).With(func(g *model.Group) {
		g.Labels, g.Colocate = map[string]string{"app": "k"}, term("k", "row")
	}).Obj())
	if got, want := w.plan("k").Failed["g"].String(), "0 of 1 node: 1 excluded by colocate with app=k by row (it has no attribute row)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Nodes without the attribute of a rule are counted apart from those with too many instances.
func TestSpread_ReportsNodesWithoutTheAttribute(t *testing.T) {
	t.Parallel()
	for want, with := range map[string]func(g *model.Group){
		"0 of 3 nodes: 2 lack attribute zone of a spread with maxSkew 1": func(g *model.Group) {
			g.Spread = []model.Spread{{Attribute: "zone", Weight: 50, MaxSkew: 1}}
		},
		"0 of 3 nodes: 1 excluded by distinct_property zone ≤ 1, 2 lack attribute zone of distinct_property": func(g *model.Group) {
			g.Constraints = []model.Constraint{{Attribute: "zone", Operator: model.OpDistinctProperty}}
		},
	} {
		w := newFixture(t)
		w.node("n1", zone("a"))
		w.node("n2")
		w.node("n3")
		w.job(job("j", 50, 6, 6).Count(2).With(with).Obj())
		if got := w.plan("j").Failed["g"].String(); !strings.HasPrefix(strings.Replace(got, "1 lacks cpu, ", "", 1), want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
