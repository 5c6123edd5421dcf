package server

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/eventsink"
)

// A hand-over to a server that stops at the same moment ends by itself after a
// while; Raft cannot be told to give it up. Nor does it answer an entry that it
// took in the moment in which it was shut down (core/replication/DESIGN.md).
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/hashicorp/raft.(*Raft).leadershipTransfer"),
		goleak.IgnoreAnyFunction("github.com/hashicorp/raft.(*Raft).leaderLoop.func2"),
		goleak.IgnoreTopFunction("github.com/hashicorp/raft.(*deferError).Error"))
}

func TestServer_PlacesWhatIsSubmitted(t *testing.T) {
	play(t, 1, nil, func(w *world) {
		w.addMachines(3)
		r := w.submit(coretest.Job("web").Count(4).Ask(500, 500, 0))
		w.settle()
		w.expectLive("web", 4)
		if e := w.snap().Eval(r.EvalID); e == nil || e.Status != model.EvalComplete {
			t.Errorf("evaluation %s is %+v", r.EvalID, e)
		}
		for a := range w.snap().Allocs() {
			if a.Client != model.ClientRunning {
				t.Errorf("%s is %s", a.ID, a.Client)
			}
		}
	})
}

func TestServer_UrgentWorkTakesThePlaceOfOtherAndGivesItBack(t *testing.T) {
	play(t, 1, nil, func(w *world) {
		w.everythingPreempts()
		w.addMachines(2)
		w.submit(coretest.Job("low").Priority(20).Count(2).Ask(800, 800, 0))
		w.settle()
		w.submit(coretest.Job("high").Priority(80).Count(1).Ask(800, 800, 0))
		w.settle()
		w.expectLive("low", 1)
		w.expectLive("high", 1)
		decisions, err := w.leader().server.Decisions(w.ctx, eventsink.DecisionQuery{})
		if err != nil || len(decisions) != 1 || len(decisions[0].Victims) != 1 || decisions[0].JobID != "high" || decisions[0].PolicyVersion == "" {
			t.Errorf("decisions %+v, %v", decisions, err)
		}
		w.must(func(s *Server) error {
			_, err := s.StopJob(w.ctx, model.JobKey{Namespace: "default", ID: "high"}, endpoint.StopOptions{})
			return err
		})
		w.settle()
		w.expectLive("low", 2)
		w.expectLive("high", 0)
	})
}

func TestServer_WhoWaitsForABudgetIsPlacedWhenItAllowsMore(t *testing.T) {
	play(t, 1, nil, func(w *world) {
		w.everythingPreempts()
		w.addMachines(2)
		budget := func(keep int32) {
			w.must(func(s *Server) error {
				_, err := s.PutBudget(w.ctx, &model.Budget{
					Namespace: "default", Name: "web", Labels: map[string]string{"app": "web"},
					MinAvailable: &model.Bound{Number: keep}, Strict: true,
				})
				return err
			})
		}
		budget(2)
		w.submit(coretest.Job("low").Priority(20).Count(2).Ask(800, 800, 0).With(func(g *model.Group) {
			g.Labels = map[string]string{"app": "web"}
		}))
		w.settle()
		w.submit(coretest.Job("high").Priority(80).Count(1).Ask(800, 800, 0))
		w.settle()
		w.expectLive("low", 2)
		w.expectLive("high", 0)
		budget(1)
		w.settle()
		w.expectLive("low", 1)
		w.expectLive("high", 1)
	})
}

func TestServer_DrainMovesWorkAway(t *testing.T) {
	play(t, 1, nil, func(w *world) {
		w.addMachines(3)
		w.submit(coretest.Job("web").Count(3).Ask(400, 400, 0))
		w.settle()
		var from string
		for node := range w.live("web") {
			from = node
		}
		w.must(func(s *Server) error {
			_, err := s.Drain(w.ctx, from, true)
			return err
		})
		w.settle()
		w.expectLive("web", 3)
		if n := w.live("web")[from]; n != 0 {
			t.Errorf("%d instances are still on %s", n, from)
		}
	})
}

func TestServer_WorkOfANodeThatIsSilentIsPlacedElsewhere(t *testing.T) {
	play(t, 1, nil, func(w *world) {
		w.addMachines(3)
		w.submit(coretest.Job("web").Count(3).Ask(400, 400, 0))
		w.settle()
		var lost *machine
		for node := range w.live("web") {
			lost = w.machines[node]
		}
		lost.down()
		time.Sleep(time.Minute)
		w.settle()
		if n := w.snap().Node(lost.node.ID); n.Status != model.NodeDown {
			t.Errorf("a node that is silent is %s", n.Status)
		}
		w.expectLive("web", 3)
		lost.up()
		time.Sleep(time.Second)
		w.settle()
		if n := w.snap().Node(lost.node.ID); n.Status != model.NodeReady {
			t.Errorf("a node that is back is %s", n.Status)
		}
		w.submit(coretest.Job("more").Count(3).Ask(500, 500, 0))
		w.settle()
		w.expectLive("more", 3)
	})
}
