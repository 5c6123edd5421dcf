package server

import (
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/eventsink"
)

// Whatever becomes of a class, bindings that exist keep the priority that they were
// given, and nobody looks at them again.
func TestPriorityClasses_ThatChangeMoveNoBinding(t *testing.T) {
	play(t, 1, nil, func(w *world) {
		w.anyGap()
		w.putCluster("m", 10)
		put := func(value int32, text string) {
			w.must(func(s *Server) error {
				_, err := s.PutPriorityClass(w.ctx, &model.PriorityClass{Name: "gold", Value: value, Description: text})
				return err
			})
		}
		put(100, "")
		w.bind("holder", 200, 8, nil)
		w.settle()
		w.must(func(s *Server) error {
			_, err := s.RegisterBinding(w.ctx, &model.Binding{
				ID: "waits", PriorityClass: "gold", Replicas: 1, Resources: model.Resources{"units": 4},
			}, endpoint.RegisterOptions{})
			return err
		})
		w.settle()
		count := func() (n int) {
			for range w.snap().Evals() {
				n++
			}
			return n
		}
		before := count()
		put(100, "another description")
		w.must(func(s *Server) error {
			_, err := s.DeletePriorityClass(w.ctx, "gold")
			return err
		})
		put(300, "another class")
		w.settle()
		if after := count(); after != before {
			t.Errorf("%d evaluations were made of it", after-before)
		}
		if b := w.snap().Binding(bindingKey("waits")); b.Priority != 100 || !b.Preempts {
			t.Errorf("binding %+v", b)
		}
		w.expectOn("waits", "")
		w.expectOn("holder", "m:1")
	})
}

// A priority that is raised while a binding waits counts when room appears.
func TestRegisterBinding_APriorityThatIsRaisedWhileItWaitsCounts(t *testing.T) {
	play(t, 1, nil, func(w *world) {
		w.putCluster("m", 10)
		w.bind("holder", 9, 8, nil)
		w.bind("raised", 1, 8, nil)
		w.bind("other", 2, 8, nil)
		w.settle()
		w.bind("raised", 3, 8, nil)
		w.settle()
		w.must(func(s *Server) error {
			_, err := s.StopBinding(w.ctx, bindingKey("holder"), endpoint.StopOptions{})
			return err
		})
		w.settle()
		w.expectOn("raised", "m:1")
		w.expectOn("other", "")
	})
}

// Both sides hear of an eviction, and its cost is the work since the last checkpoint.
func TestServer_TellsBothSidesOfABindingsEviction(t *testing.T) {
	play(t, 1, nil, func(w *world) {
		w.anyGap()
		w.putCluster("m", 10)
		w.bind("low", 1, 8, func(b *model.Binding) { b.Checkpoint = int64(time.Minute) })
		w.settle()
		time.Sleep(130 * time.Second)
		w.bind("high", 5, 8, preempts)
		w.settle()
		told := strings.Join(w.seen("Preemption", "Decision"), "\n")
		for _, want := range []string{"AssignmentPreempted default/low/m/", "PreemptionDecided claim/default/high/m/"} {
			if !strings.Contains(told, want) {
				t.Errorf("nothing was told of %s in\n%s", want, told)
			}
		}
		decisions, err := w.leader().server.Decisions(w.ctx, eventsink.DecisionQuery{Concerns: bindingKey("low")})
		if err != nil || len(decisions) != 1 || len(decisions[0].Victims) != 1 {
			t.Fatalf("decisions %+v, %v", decisions, err)
		}
		if lost := time.Duration(decisions[0].Victims[0].LostWork); lost < 9*time.Second || lost > 30*time.Second {
			t.Errorf("%v are lost of the 10 s since the checkpoint", lost)
		}
	})
}
