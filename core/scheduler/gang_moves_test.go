package scheduler_test

import (
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
)

// A gang with an instance that cannot move off its draining node is completed where it is, and
// the instance moves when it can.
func TestGang_CompletesWithoutMemberThatCannotMove(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", func(n *model.Node) { n.Drain = true })
	w.node("n2", func(n *model.Node) { n.Capacity = model.Resources{"cpu": 4, "memory": 4} })
	w.run(job("j", 50, 8, 8).Group("h", 1).Ask(4, 4, 0).Change(func(j *model.Job) { j.AllAtOnce = true }).Obj(), "a", "n1")
	w.want("j", "j.h[0]@n2, g waits for 1")
	w.want("j", "g waits for 1")
	w.node("n3")
	w.want("j", "j.g[0]#1@n3, stop a")
}

// If the missing instance fits nowhere, the others leave their draining nodes nevertheless.
func TestGang_MovesWhileMemberFitsNowhere(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", func(n *model.Node) { n.Drain = true })
	w.node("n2", func(n *model.Node) { n.Capacity = model.Resources{"cpu": 4, "memory": 4} })
	w.run(job("j", 50, 4, 4).Group("h", 1).Ask(8, 8, 0).Change(func(j *model.Job) { j.AllAtOnce = true }).Obj(), "a", "n1")
	w.want("j", "j.g[0]#1@n2, stop a, h waits for 1")
}

// Members that complete the gang count for the rules of a member of their group that moves.
func TestGang_MemberMovesByRulesOfItsGroup(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.node("n1", func(n *model.Node) { n.Drain = true })
	w.node("n2")
	w.run(job("j", 50, 1, 1).Count(2).With(func(g *model.Group) {
		g.Constraints = []model.Constraint{{Operator: model.OpDistinctHosts}}
	}).Change(func(j *model.Job) { j.AllAtOnce = true }).Obj(), "a", "n1")
	w.want("j", "j.g[1]@n2, g waits for 1")
	w.node("n3")
	w.want("j", "j.g[0]#1@n3, stop a")
}

// An update of a gang is placed together or not at all: no two versions run side by side.
func TestGang_UpdatesTogether(t *testing.T) {
	t.Parallel()
	gang := func(cpu int64) *coretest.JobBuilder {
		return job("j", 50, cpu, 4).Group("h", 1).Ask(4, 4, 0).Change(func(j *model.Job) { j.AllAtOnce = true })
	}
	w := newFixture(t)
	w.node("n1")
	w.run(gang(4).Obj(), "a", "n1")
	w.job(gang(11).Obj())
	w.want("j", "g waits for 1, h waits for 1")
}
