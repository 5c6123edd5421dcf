package server

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/server/evaltrace"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// newTracing returns a change of the configuration that gives every server a tracer, with
// the server as attribute, and the recorder of all spans.
func newTracing() (*tracetest.SpanRecorder, func(*Config)) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	return spans, func(c *Config) { c.Tracer = provider.Tracer(c.ID) }
}

// underTrace returns a context with the trace of a caller, as a request has.
func underTrace(ctx context.Context) (context.Context, trace.TraceID) {
	caller := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4, 5, 6}, TraceFlags: trace.FlagsSampled, Remote: true,
	})
	return trace.ContextWithRemoteSpanContext(ctx, caller), caller.TraceID()
}

// spansNamed returns the spans of a trace with a name.
func spansNamed(spans *tracetest.SpanRecorder, of trace.TraceID, name string) (list []sdktrace.ReadOnlySpan) {
	for _, s := range spans.Ended() {
		if s.SpanContext().TraceID() == of && s.Name() == name {
			list = append(list, s)
		}
	}
	return list
}

// registerTraced registers a job under a trace. The job evicts another one.
func (w *harness) registerTraced(id string) trace.TraceID {
	ctx, of := underTrace(w.ctx)
	w.mustCall(func(s *Server) error {
		_, err := s.RegisterJob(ctx, coretest.Job(id).Priority(80).Count(1).Ask(800, 800, 0).Obj(), endpoint.RegisterOptions{ExplicitPriority: true})
		return err
	})
	w.waitIdle()
	w.expectLiveCount(id, 1)
	return of
}

// expectChain checks that the spans of a trace form a chain. The evaluation of the victim's
// job belongs to the same trace.
func expectChain(t *testing.T, spans *tracetest.SpanRecorder, of trace.TraceID) (register, process sdktrace.ReadOnlySpan) {
	t.Helper()
	first := map[string]sdktrace.ReadOnlySpan{}
	for _, step := range []struct{ name, under string }{
		{evaltrace.SpanRegister, ""}, {evaltrace.SpanProcess, evaltrace.SpanRegister}, {evaltrace.SpanCall, evaltrace.SpanProcess}, {evaltrace.SpanApply, evaltrace.SpanProcess}, {evaltrace.SpanStart, evaltrace.SpanRegister},
	} {
		list := spansNamed(spans, of, step.name)
		at := slices.IndexFunc(list, func(s sdktrace.ReadOnlySpan) bool {
			under := first[step.under]
			again := slices.Contains(s.Attributes(), attribute.String("cede.triggered_by", string(model.TriggerPreemption)))
			return !again && (under == nil || s.Parent().SpanID() == under.SpanContext().SpanID())
		})
		if at < 0 {
			t.Fatalf("none of %d spans %s has parent %s", len(list), step.name, step.under)
		}
		first[step.name] = list[at]
		if list[at].EndTime().Before(list[at].StartTime()) {
			t.Errorf("%s ends before it starts", step.name)
		}
	}
	register, process = first[evaltrace.SpanRegister], first[evaltrace.SpanProcess]
	if register.Parent().SpanID() != (trace.SpanID{4, 5, 6}) {
		t.Error("job.register is not a child of the caller's span")
	}
	return register, process
}

func TestTraces_CoverJobFromRegistrationToStart(t *testing.T) {
	spans, change := newTracing()
	runServers(t, 1, change, func(w *harness) {
		w.enablePreemption()
		w.addNodes(1)
		w.registerJob(coretest.Job("low").Priority(20).Count(1).Ask(800, 800, 0))
		w.waitIdle()
		expectChain(t, spans, w.registerTraced("high"))
	})
}

// The leader has no workers, so that those of another server dequeue.
func TestTraces_PropagateToOtherServers(t *testing.T) {
	spans, change := newTracing()
	runServersInPool(t, newMemberPool, 3, change, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		lead, none := w.leader(), 0
		if err := lead.server.Reload(Reloadable{Workers: &none}); err != nil {
			t.Fatal(err)
		}
		w.enablePreemption()
		w.addNodes(1)
		w.registerJob(coretest.Job("low").Priority(20).Count(1).Ask(800, 800, 0))
		w.waitIdle()
		of := w.registerTraced("high")
		register, process := expectChain(t, spans, of)
		apply := spansNamed(spans, of, evaltrace.SpanApply)[0]
		if by := process.InstrumentationScope().Name; by == lead.id {
			t.Errorf("the span of processing is from %s, the leader", by)
		}
		for _, s := range []sdktrace.ReadOnlySpan{register, apply} {
			if by := s.InstrumentationScope().Name; by != lead.id {
				t.Errorf("span %s is from server %s, leader is %s", s.Name(), by, lead.id)
			}
		}
	})
}

// A blocked evaluation is processed again under its original trace.
func TestTraces_ContinueWhenBlockedEvalIsPlaced(t *testing.T) {
	spans, change := newTracing()
	runServers(t, 1, change, func(w *harness) {
		ctx, of := underTrace(w.ctx)
		w.mustCall(func(s *Server) error {
			_, err := s.RegisterJob(ctx, coretest.Job("web").Count(1).Ask(800, 800, 0).Obj(), endpoint.RegisterOptions{ExplicitPriority: true})
			return err
		})
		w.waitIdle()
		if n := len(spansNamed(spans, of, evaltrace.SpanApply)); n != 0 {
			t.Errorf("%d plans were applied without a node", n)
		}
		w.addNodes(1)
		w.waitIdle()
		w.expectLiveCount("web", 1)
		if n := len(spansNamed(spans, of, evaltrace.SpanProcess)); n < 2 {
			t.Errorf("processed %d times under its trace", n)
		}
		if len(spansNamed(spans, of, evaltrace.SpanApply)) != 1 || len(spansNamed(spans, of, evaltrace.SpanStart)) != 1 {
			t.Error("placement or start is missing in the trace")
		}
	})
}

// An allocation starts once: a report that lists it twice is one start, and later reports
// that it runs are none.
func TestTraces_RecordAllocationStartOnce(t *testing.T) {
	spans, change := newTracing()
	runServers(t, 1, change, func(w *harness) {
		ctx, of := underTrace(w.ctx)
		w.addNodes(1)
		m := w.machines["n000"]
		m.stop() // the test reports for it
		w.mustCall(func(s *Server) error {
			_, err := s.RegisterJob(ctx, coretest.Job("web").Count(2).Ask(100, 100, 0).Obj(), endpoint.RegisterOptions{ExplicitPriority: true})
			return err
		})
		time.Sleep(time.Second)
		w.expectLiveCount("web", 2)
		say := func(status model.ClientStatus, text string) {
			var updates []apply.ClientUpdate
			for _, a := range w.snap().AppendNodeAllocs(nil, m.node.ID) {
				u := apply.ClientUpdate{AllocID: a.ID, Status: status, Started: true, StartTime: time.Now().UnixNano(), Text: text}
				updates = append(updates, u, u)
			}
			before := w.snap().Index()
			w.mustCall(func(s *Server) error {
				_, err := s.UpdateAllocs(w.ctx, m.node.ID, m.secret, updates)
				return err
			})
			if w.snap().Index() == before {
				t.Errorf("no report of %s was written", text)
			}
			time.Sleep(100 * time.Millisecond)
		}
		say(model.ClientRunning, "running")
		if n := len(spansNamed(spans, of, evaltrace.SpanStart)); n != 2 {
			t.Errorf("%d starts of 2 allocations", n)
		}
		say(model.ClientRunning, "not ready")
		say(model.ClientPending, "task restarts")
		say(model.ClientRunning, "running again")
		if n := len(spansNamed(spans, of, evaltrace.SpanStart)); n != 2 {
			t.Errorf("%d starts of 2 allocations after further reports", n)
		}
	})
}

// The registration of a binding starts a trace as that of a job does. The trace includes
// the processing, the policy calls and the plan.
func TestTraces_CoverBindingFromRegistration(t *testing.T) {
	spans, change := newTracing()
	runServers(t, 1, change, func(w *harness) {
		w.allowAnyPriorityGap()
		w.putCluster("m", 10)
		w.registerBinding("low", 10, 10, nil)
		w.waitIdle()
		ctx, of := underTrace(w.ctx)
		var r *endpoint.Registered
		w.mustCall(func(s *Server) (err error) {
			b := &model.Binding{ID: "high", Priority: 50, Replicas: 1, Resources: model.Resources{"units": 10}, Preempts: true}
			r, err = s.RegisterBinding(ctx, b, endpoint.RegisterOptions{ExplicitPriority: true, ExplicitPreemption: true})
			return err
		})
		w.waitIdle()
		registrations := spansNamed(spans, of, evaltrace.SpanRegisterBinding)
		if len(registrations) != 1 {
			t.Fatalf("%d registrations", len(registrations))
		}
		register := registrations[0]
		if register.Parent().SpanID() != (trace.SpanID{4, 5, 6}) {
			t.Error("binding.register is not a child of the caller's span")
		}
		for _, want := range []attribute.KeyValue{
			attribute.String("cede.binding_id", "high"), attribute.String("cede.namespace", model.DefaultNamespace),
			attribute.String("cede.eval_id", r.EvalID), attribute.Int64("cede.index", int64(r.Index)),
		} {
			if !slices.Contains(register.Attributes(), want) {
				t.Errorf("span has no attribute %v", want)
			}
		}
		under := map[trace.SpanID]bool{register.SpanContext().SpanID(): true}
		for _, step := range []string{evaltrace.SpanProcess, evaltrace.SpanApply} {
			next := map[trace.SpanID]bool{}
			for _, s := range spansNamed(spans, of, step) {
				if under[s.Parent().SpanID()] {
					next[s.SpanContext().SpanID()] = true
				}
			}
			if under = next; len(under) == 0 {
				t.Fatalf("no span %s is a child of the previous step", step)
			}
		}
		if len(spansNamed(spans, of, evaltrace.SpanCall)) == 0 {
			t.Error("no policy call in the trace")
		}
		ctx, of = underTrace(w.ctx)
		w.mustCall(func(s *Server) error {
			_, err := s.StopBinding(ctx, bindingKey("high"), endpoint.StopOptions{})
			return err
		})
		w.waitIdle()
		if len(spansNamed(spans, of, evaltrace.SpanProcess)) == 0 {
			t.Error("its end is not in the trace")
		}
	})
}
