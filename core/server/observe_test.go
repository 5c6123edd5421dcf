package server

import (
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/eventsink"
)

// observedVictims returns the victims of a decision, ascending.
func observedVictims(d *eventsink.Decision) (list []string) {
	for _, v := range d.Victims {
		list = append(list, v.AllocID)
	}
	slices.Sort(list)
	return list
}

// While preemption is observed, a decision is recorded once on every server, under the
// evaluation that is blocked and the one before it, and nothing is evicted. If preemption is
// then turned on, exactly the observed victims are evicted.
func TestServer_ObservesDecisionsWithoutEvicting(t *testing.T) {
	runServers(t, 3, nil, func(w *harness) {
		config := coretest.AllPreempt()
		config.Preemption[model.JobService], config.Observe[model.JobService] = false, true
		set := func(c *model.SchedulerConfig) {
			w.mustCall(func(s *Server) error {
				_, err := s.SetConfig(w.ctx, c, nil)
				return err
			})
		}
		set(config)
		w.addNodes(2)
		w.registerJob(coretest.Job("low").Priority(20).Count(4).Ask(400, 400, 0))
		w.waitIdle()
		w.registerJob(coretest.Job("high").Priority(80).Ask(800, 800, 0))
		w.waitIdle()
		w.expectLiveCount("low", 4)
		w.expectLiveCount("high", 0)

		key := model.JobKey{Namespace: model.DefaultNamespace, ID: "high"}
		var blocked, before *model.Evaluation
		for _, e := range w.snap().EvalsOfJob(key) {
			if e.Status == model.EvalBlocked {
				blocked = e
			}
		}
		if blocked == nil || len(blocked.Observed) != 1 {
			t.Fatalf("blocked evaluation %+v", blocked)
		}
		before = w.snap().Eval(blocked.Previous)
		decisions := func(q eventsink.DecisionQuery) (list []*eventsink.Decision) {
			t.Helper()
			for _, m := range w.members {
				var err error
				if list, err = m.server.Decisions(w.ctx, q); err != nil || len(list) != 1 {
					t.Fatalf("server %s has %d decisions for %+v: %v", m.id, len(list), q, err)
				}
			}
			return list
		}
		d := decisions(eventsink.DecisionQuery{EvalID: blocked.ID})[0]
		ofEval := func(e *model.Evaluation) {
			t.Helper()
			var q eventsink.DecisionQuery
			q.OfEval(w.snap(), e)
			decisions(q)
		}
		ofEval(before)
		decisions(eventsink.DecisionQuery{AllocID: d.Victims[0].AllocID})
		isVerdict := func(c events.Candidate) bool { return c.Verdict == "would be evicted" }
		if !d.Observed || d.AllocID != "" || len(d.Victims) != 2 || d.Why == nil || !slices.ContainsFunc(d.Why.Candidates, isVerdict) {
			t.Errorf("%+v", d)
		}
		// Evaluated again, the evaluation makes the same decision, which is not recorded again.
		w.mustCall(func(s *Server) error {
			_, err := s.SetEligible(w.ctx, w.snap().NodeAt(0).ID, false)
			return err
		})
		w.waitIdle()
		w.mustCall(func(s *Server) error {
			_, err := s.SetEligible(w.ctx, w.snap().NodeAt(0).ID, true)
			return err
		})
		w.waitIdle()
		if now := w.snap().Eval(blocked.ID); now.Status != model.EvalBlocked {
			t.Fatalf("the evaluation is %s", now.Status)
		}
		// Registered again, the job gets another blocked evaluation with the same decision.
		w.registerJob(coretest.Job("high").Priority(80).Ask(800, 800, 0).Change(func(j *model.Job) { j.Meta = map[string]string{"release": "2"} }))
		w.waitIdle()
		var again *model.Evaluation
		for _, e := range w.snap().PendingEvals(key) {
			again = e
		}
		if again == nil || again.ID == blocked.ID || len(again.Observed) != 1 || again.Observed[0].PlannedOn != blocked.Observed[0].PlannedOn {
			t.Fatalf("blocked evaluation %+v", again)
		}
		decisions(eventsink.DecisionQuery{JobID: key.ID})
		ofEval(again)
		ofEval(w.snap().Eval(again.Previous))
		w.checkStatesEqual()

		on := coretest.AllPreempt()
		set(on)
		w.waitIdle()
		w.expectLiveCount("high", 1)
		var evicted []string
		for _, a := range w.snap().AppendJobAllocs(nil, model.JobKey{Namespace: model.DefaultNamespace, ID: "low"}) {
			if a.Desired == model.DesiredEvict {
				evicted = append(evicted, a.ID)
			}
		}
		slices.Sort(evicted)
		newest := w.newestObserved(t, key)
		if !slices.Equal(evicted, observedVictims(newest)) {
			t.Errorf("evicted %v, observed %v", evicted, observedVictims(newest))
		}
	})
}

// A job that is removed while its decisions are observed leaves no evaluation and no further
// decision. The decision that was recorded remains, and nothing was evicted.
func TestServer_RemovesJobWhileObserving(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		config := coretest.AllPreempt()
		config.Preemption[model.JobService], config.Observe[model.JobService] = false, true
		w.mustCall(func(s *Server) error {
			_, err := s.SetConfig(w.ctx, config, nil)
			return err
		})
		w.addNodes(1)
		w.registerJob(coretest.Job("low").Priority(20).Count(2).Ask(400, 400, 0))
		w.waitIdle()
		w.registerJob(coretest.Job("high").Priority(80).Ask(800, 800, 0))
		w.waitIdle()
		key := model.JobKey{Namespace: model.DefaultNamespace, ID: "high"}
		w.mustCall(func(s *Server) error {
			_, err := s.StopJob(w.ctx, key, endpoint.StopOptions{Purge: true})
			return err
		})
		w.waitIdle()
		w.mustCall(func(s *Server) error { // a change that would unblock the evaluation
			_, err := s.StopJob(w.ctx, model.JobKey{Namespace: model.DefaultNamespace, ID: "low"}, endpoint.StopOptions{})
			return err
		})
		w.waitIdle()
		if pending := w.snap().PendingEvals(key); len(pending) > 0 {
			t.Errorf("evaluation %+v remains", pending[0])
		}
		list, err := w.members[0].server.Decisions(w.ctx, eventsink.DecisionQuery{JobID: key.ID})
		if err != nil || len(list) != 1 || !list[0].Observed {
			t.Errorf("%d decisions: %v", len(list), err)
		}
		w.expectLiveCount("high", 0)
	})
}

func TestServer_RefusesToObserveBindings(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		config := coretest.AllPreempt()
		config.Preemption[model.JobBinding], config.Observe[model.JobBinding] = false, true
		err := w.call(func(s *Server) error {
			_, err := s.SetConfig(w.ctx, config, nil)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "preemption of bindings cannot be observed: it must be on or off") {
			t.Errorf("error %v", err)
		}
	})
}

// newestObserved returns the newest observed decision for a job.
func (w *harness) newestObserved(t *testing.T, key model.JobKey) *eventsink.Decision {
	t.Helper()
	list, err := w.members[0].server.Decisions(w.ctx, eventsink.DecisionQuery{JobID: key.ID})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(list, func(d *eventsink.Decision) bool { return d.Observed })
	if at < 0 {
		t.Fatal("no observed decision")
	}
	return list[at]
}
