package scheduler_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/model"
)

// A group of a system job that must run near another one is placed after it, on the nodes of
// its domain. The planner accepts the plan.
func TestSystem_PlacesGroupAfterThoseItFollows(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", zone("a"))
	w.node("n2", zone("a"))
	w.node("n3", zone("b"))
	w.job(job("s", 50, 1, 1).Type(model.JobSystem).With(func(g *model.Group) { g.Colocate = term("store", "zone") }).
		Group("h", 1).Ask(1, 1, 0).With(func(g *model.Group) {
		g.Labels = labels("store")
		g.Constraints = []model.Constraint{{Attribute: "node.id", Operator: "=", Value: "n2"}}
	}).Obj())
	w.want("s", "s.g[0]@n1, s.g[1]@n2, s.h[0]@n2, g waits for 1")
}

// What an instance must run near is evicted neither for another group of its job in the same
// plan, nor one plan later. It is once another match is in the domain.
func TestAffinityTarget_OfOtherGroupIsSpared(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.JobType{model.JobService, model.JobSystem} {
		w := newFixture(t)
		w.node("n1", zone("a"))
		cache := func(id string) *model.Job {
			return job(id, 10, 8, 8).With(func(g *model.Group) { g.Labels = labels("cache") }).Obj()
		}
		w.run(cache("cache"), "c", "n1")
		w.job(job("j", 50, 1, 1).Type(kind).With(func(g *model.Group) { g.Colocate = term("cache", "zone") }).Group("h", 1).Ask(8, 8, 0).Obj())
		w.want("j", "j.g[0]@n1, h waits for 1")
		w.want("j", "h waits for 1")
		w.node("n2", zone("a"), func(n *model.Node) { n.Ineligible = true })
		stays := cache("stays")
		stays.NonPreemptible = true
		w.run(stays, "s", "n2")
		w.want("j", "j.h[0]@n1 over c")
	}
}
