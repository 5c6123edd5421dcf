package server

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/eventsink"
)

// A leadership transfer to a server that stops at the same moment ends only after a
// timeout, and cannot be cancelled. Raft also never completes an entry that it accepted
// while it was shut down (core/replication/DESIGN.md).
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/hashicorp/raft.(*Raft).leadershipTransfer"),
		goleak.IgnoreAnyFunction("github.com/hashicorp/raft.(*Raft).leaderLoop.func2"),
		goleak.IgnoreTopFunction("github.com/hashicorp/raft.(*deferError).Error"))
}

func TestServer_PlacesRegisteredJob(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.addNodes(3)
		r := w.registerJob(coretest.Job("web").Count(4).Ask(500, 500, 0))
		w.waitIdle()
		w.expectLiveCount("web", 4)
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

// The reason of a gang that no domain takes is in the blocked evaluation and in a plan.
func TestServer_ExplainsGangThatFitsIntoNoDomain(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.addNodes(2)
		gang := func() *coretest.JobBuilder {
			return coretest.Job("train").Count(5).Ask(400, 400, 0).Change(func(j *model.Job) { j.AllAtOnce = true }).With(func(g *model.Group) {
				g.Labels = map[string]string{"app": "train"}
				g.Colocate = []model.LabelTerm{{Labels: g.Labels, TopologyKey: "node.datacenter"}}
			})
		}
		r := w.registerJob(gang())
		w.waitIdle()
		const want = "all at once: no node.datacenter takes all 5 instances; the largest takes 4; no preemption: preemption is off for service jobs"
		blocked := w.snap().Eval(w.snap().Eval(r.EvalID).Blocked)
		if blocked == nil || blocked.Failed["g"].String() != want {
			t.Errorf("blocked evaluation is %+v", blocked)
		}
		if p := w.propose(w.leader().server, gang().Count(6)); !strings.Contains(p.Failed["g"].String(), "takes all 6 instances; the largest takes 4;") {
			t.Errorf("the plan has the reason %s", p.Failed["g"])
		}
	})
}

func TestServer_PreemptsAndRestoresVictims(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.enablePreemption()
		w.addNodes(2)
		w.registerJob(coretest.Job("low").Priority(20).Count(2).Ask(800, 800, 0))
		w.waitIdle()
		w.registerJob(coretest.Job("high").Priority(80).Count(1).Ask(800, 800, 0))
		w.waitIdle()
		w.expectLiveCount("low", 1)
		w.expectLiveCount("high", 1)
		decisions, err := w.leader().server.Decisions(w.ctx, eventsink.DecisionQuery{})
		if err != nil || len(decisions) != 1 || len(decisions[0].Victims) != 1 || decisions[0].JobID != "high" || decisions[0].PolicyVersion == "" {
			t.Errorf("decisions %+v, %v", decisions, err)
		}
		w.mustCall(func(s *Server) error {
			_, err := s.StopJob(w.ctx, model.JobKey{Namespace: "default", ID: "high"}, endpoint.StopOptions{})
			return err
		})
		w.waitIdle()
		w.expectLiveCount("low", 2)
		w.expectLiveCount("high", 0)
	})
}

func TestServer_UnblocksPendingEvalWhenBudgetAllows(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.enablePreemption()
		w.addNodes(2)
		budget := func(keep int32) {
			w.mustCall(func(s *Server) error {
				_, err := s.PutBudget(w.ctx, &model.Budget{
					Namespace: "default", Name: "web", Labels: map[string]string{"app": "web"},
					MinAvailable: &model.Bound{Number: keep}, Strict: true,
				})
				return err
			})
		}
		budget(2)
		w.registerJob(coretest.Job("low").Priority(20).Count(2).Ask(800, 800, 0).With(func(g *model.Group) {
			g.Labels = map[string]string{"app": "web"}
		}))
		w.waitIdle()
		w.registerJob(coretest.Job("high").Priority(80).Count(1).Ask(800, 800, 0))
		w.waitIdle()
		w.expectLiveCount("low", 2)
		w.expectLiveCount("high", 0)
		budget(1)
		w.waitIdle()
		w.expectLiveCount("low", 1)
		w.expectLiveCount("high", 1)
	})
}

func TestServer_DrainMigratesAllocations(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.addNodes(3)
		w.registerJob(coretest.Job("web").Count(3).Ask(400, 400, 0))
		w.waitIdle()
		var from string
		for node := range w.liveByNode("web") {
			from = node
		}
		w.mustCall(func(s *Server) error {
			_, err := s.Drain(w.ctx, from, endpoint.DrainOptions{})
			return err
		})
		w.waitIdle()
		w.expectLiveCount("web", 3)
		if n := w.liveByNode("web")[from]; n != 0 {
			t.Errorf("%d instances still on %s", n, from)
		}
	})
}

func TestServer_ReplacesAllocationsOfDownNode(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.addNodes(3)
		w.registerJob(coretest.Job("web").Count(3).Ask(400, 400, 0))
		w.waitIdle()
		var lost *testNode
		for node := range w.liveByNode("web") {
			lost = w.machines[node]
		}
		lost.stop()
		time.Sleep(time.Minute)
		w.waitIdle()
		if n := w.snap().Node(lost.node.ID); n.Status != model.NodeDown {
			t.Errorf("node without heartbeats is %s", n.Status)
		}
		w.expectLiveCount("web", 3)
		lost.start()
		time.Sleep(time.Second)
		w.waitIdle()
		if n := w.snap().Node(lost.node.ID); n.Status != model.NodeReady {
			t.Errorf("returned node is %s", n.Status)
		}
		w.registerJob(coretest.Job("more").Count(3).Ask(500, 500, 0))
		w.waitIdle()
		w.expectLiveCount("more", 3)
	})
}
