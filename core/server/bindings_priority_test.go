package server

import (
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/eventsink"
)

// When a class changes, existing bindings retain their priority and are not evaluated
// again.
func TestPriorityClasses_ChangesDoNotAffectBindings(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.allowAnyPriorityGap()
		w.putCluster("m", 10)
		put := func(value int32, text string) {
			w.mustCall(func(s *Server) error {
				_, err := s.PutPriorityClass(w.ctx, &model.PriorityClass{Name: "gold", Value: value, Description: text})
				return err
			})
		}
		put(100, "")
		w.registerBinding("holder", 200, 8, nil)
		w.waitIdle()
		w.mustCall(func(s *Server) error {
			_, err := s.RegisterBinding(w.ctx, &model.Binding{
				ID: "waits", PriorityClass: "gold", Replicas: 1, Resources: model.Resources{"units": 4},
			}, endpoint.RegisterOptions{})
			return err
		})
		w.waitIdle()
		count := func() (n int) {
			for range w.snap().Evals() {
				n++
			}
			return n
		}
		before := count()
		put(100, "another description")
		w.mustCall(func(s *Server) error {
			_, err := s.DeletePriorityClass(w.ctx, "gold")
			return err
		})
		put(300, "another class")
		w.waitIdle()
		if after := count(); after != before {
			t.Errorf("%d evaluations created", after-before)
		}
		if b := w.snap().Binding(bindingKey("waits")); b.Priority != 100 || !b.Preempts {
			t.Errorf("binding %+v", b)
		}
		w.expectAssigned("waits", "")
		w.expectAssigned("holder", "m:1")
	})
}

// The new priority of a blocked binding applies when capacity becomes free. One worker
// evaluates in the order of priorities; of two concurrent ones the later plan may lose.
func TestRegisterBinding_RaisedPriorityOfBlockedBindingApplies(t *testing.T) {
	runServers(t, 1, func(c *Config) { c.Workers = 1 }, func(w *harness) {
		w.putCluster("m", 10)
		w.registerBinding("holder", 9, 8, nil)
		w.registerBinding("raised", 1, 8, nil)
		w.registerBinding("other", 2, 8, nil)
		w.waitIdle()
		w.registerBinding("raised", 3, 8, nil)
		w.waitIdle()
		w.mustCall(func(s *Server) error {
			_, err := s.StopBinding(w.ctx, bindingKey("holder"), endpoint.StopOptions{})
			return err
		})
		w.waitIdle()
		w.expectAssigned("raised", "m:1")
		w.expectAssigned("other", "")
	})
}

// Events report an eviction for both sides, and its cost is the time since the last
// checkpoint.
func TestServer_ReportsEvictionOfBindingForBothSides(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.allowAnyPriorityGap()
		w.putCluster("m", 10)
		w.registerBinding("low", 1, 8, func(b *model.Binding) { b.Checkpoint = int64(time.Minute) })
		w.waitIdle()
		time.Sleep(130 * time.Second)
		w.registerBinding("high", 5, 8, withPreemption)
		w.waitIdle()
		list := strings.Join(w.eventTypes("Preemption", "Decision"), "\n")
		for _, want := range []string{"AssignmentPreempted default/low/m/", "PreemptionDecided claim/default/high/m/"} {
			if !strings.Contains(list, want) {
				t.Errorf("no event %s in\n%s", want, list)
			}
		}
		decisions, err := w.leader().server.Decisions(w.ctx, eventsink.DecisionQuery{Concerns: bindingKey("low")})
		if err != nil || len(decisions) != 1 || len(decisions[0].Victims) != 1 {
			t.Fatalf("decisions %+v, %v", decisions, err)
		}
		if lost := time.Duration(decisions[0].Victims[0].LostWork); lost < 9*time.Second || lost > 30*time.Second {
			t.Errorf("lost work is %v, want the 10 s since the checkpoint", lost)
		}
	})
}
