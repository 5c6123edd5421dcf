package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/evaltrace"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
)

// RegisterBinding stores a binding, or another version of it, and has it
// scheduled. Every problem is in the one error.
func (s *Server) RegisterBinding(ctx context.Context, b *model.Binding, o RegisterOptions) (*Registered, error) {
	ctx, span := s.traces.StartSpan(ctx, evaltrace.SpanRegisterBinding)
	r, err := s.registerBinding(ctx, b, o)
	if span.IsRecording() {
		span.SetAttributes(aboutBinding(b, r)...)
	}
	evaltrace.EndSpan(span, err)
	return r, err
}

func (s *Server) registerBinding(ctx context.Context, b *model.Binding, o RegisterOptions) (*Registered, error) {
	if err := s.writer.CheckLeader(); err != nil {
		return nil, err
	}
	binding, warnings, err := s.resolveBinding(b, o)
	if err != nil {
		return nil, err
	}
	eval := s.bindingEval(binding, model.TriggerJobRegister)
	s.traces.Assign(ctx, eval.ID)
	result, err := s.writer.CommitEntry(ctx, &replication.Entry{
		Key: o.Key, Hash: bindingHash(binding, o),
		Command: &replication.UpsertBinding{Binding: binding, Check: o.Check, Eval: eval},
	})
	if err != nil {
		return nil, err
	}
	answer := s.registered(result, binding.Key())
	answer.Warnings = warnings
	return answer, nil
}

// bindingHash tells requests apart that come under one idempotency key.
func bindingHash(b *model.Binding, o RegisterOptions) [32]byte {
	spec := *b
	spec.SubmitTime = 0
	text, _ := json.Marshal(&spec) // plain values alone
	h := sha256.New()
	_, _ = h.Write([]byte("binding"))
	_, _ = h.Write(text)
	if o.Check != nil {
		_ = binary.Write(h, binary.BigEndian, *o.Check)
	}
	return [32]byte(h.Sum(nil))
}

// resolveBinding fills in what depends on the state, and checks all of it. It
// returns a copy.
func (s *Server) resolveBinding(b *model.Binding, o RegisterOptions) (*model.Binding, []string, error) {
	binding := *b
	binding.Stopped = false
	binding.Constraints = slices.Clone(b.Constraints) // the state compiles them
	binding.Namespace = cmp.Or(binding.Namespace, model.DefaultNamespace)
	if binding.SubmitTime == 0 {
		binding.SubmitTime = s.writer.Now()
	}
	snap := s.Snapshot()
	warnings, problems := bindingPriority(snap, &binding, o)
	problems = append(problems, binding.Validate()...)
	if strings.ContainsAny(binding.ID+binding.Namespace, "/ \t\n") {
		problems = append(problems, "its id and namespace must have no spaces or slashes")
	}
	if snap.Job(binding.Key()) != nil {
		problems = append(problems, "there is a job of this id: jobs and bindings share one space of names")
	}
	if len(problems) > 0 {
		return nil, nil, apierror.New(apierror.CodeInvalid, "binding %q: %s", binding.ID, strings.Join(problems, "; ")).
			WithDetails(map[string]any{"Problems": problems})
	}
	for _, id := range binding.Clusters {
		if snap.Cluster(id) == nil {
			warnings = append(warnings, fmt.Sprintf("there is no cluster %q yet", id))
		}
	}
	return &binding, warnings, nil
}

// bindingPriority gives a binding the priority of its class. A class that is not
// there is no error, as it may have been deleted since: a pod template's falls back
// to the global default, one that the binding names itself gives 0 and Never.
func bindingPriority(snap *state.Snapshot, b *model.Binding, o RegisterOptions) (warnings, problems []string) {
	explicit := o.ExplicitPriority || b.Priority != 0
	class := classNamed(snap, b.PriorityClass)
	missing := b.PriorityClass != "" && class == nil
	switch {
	case b.PriorityClass != "" && explicit && (missing || class.Value != b.Priority):
		return nil, []string{fmt.Sprintf("it has priority %d and the class %s: leave one of the two out", b.Priority, b.PriorityClass)}
	case missing && snap.Config().StrictClasses():
		return nil, []string{fmt.Sprintf("there is no priority class %q, and StrictPriorityClasses is on; there are %s", b.PriorityClass, classNames(snap))}
	case missing:
		warnings = append(warnings, fmt.Sprintf("there is no priority class %q; there are %s", b.PriorityClass, classNames(snap)))
	}
	if class == nil && !explicit && (!missing || b.ClassSource == model.PodPriorityClass) {
		class = model.DefaultClass(snap.PriorityClasses())
	}
	if class == nil { // a missing one keeps its name: model.Binding.ClassMissing
		if b.ClassSource != model.FederatedPriorityClass { // Validate says what is wrong with that
			b.ClassSource = ""
		}
		return warnings, nil
	}
	b.Priority, b.PriorityClass, b.ClassSource = class.Value, class.Name, cmp.Or(b.ClassSource, model.KubePriorityClass)
	if !o.ExplicitPreemption {
		b.Preempts = !class.NeverPreempts && !b.ClusterScoped
	}
	return warnings, nil
}

// StopBinding ends a binding: what is assigned of it is stopped. With Purge it is
// forgotten at once where nothing of it is left.
func (s *Server) StopBinding(ctx context.Context, key model.JobKey, o StopOptions) (*Registered, error) {
	if err := s.writer.CheckLeader(); err != nil {
		return nil, err
	}
	b, err := s.binding(ctx, key)
	if err != nil {
		return nil, err
	}
	if o.Purge && !s.holds(key) {
		result, err := s.writer.Commit(ctx, &replication.DeleteBinding{Key: key})
		if err != nil {
			return nil, err
		}
		return s.registered(result, key), nil
	}
	eval := s.bindingEval(b, model.TriggerJobStop)
	s.traces.Assign(ctx, eval.ID)
	result, err := s.writer.CommitEntry(ctx, &replication.Entry{
		Key: o.Key, Hash: sha256.Sum256(fmt.Appendf(nil, "stop binding %q %q %t", key.Namespace, key.ID, o.Purge)),
		Command: &replication.StopBinding{Key: key, Eval: eval},
	})
	if err != nil {
		return nil, err
	}
	answer := s.registered(result, key)
	if o.Purge {
		answer.Warnings = append(answer.Warnings, "it is forgotten some time after the last of its replicas has stopped")
	}
	return answer, nil
}

// holds is whether anything of a binding holds room.
func (s *Server) holds(key model.JobKey) bool {
	return slices.ContainsFunc(s.Snapshot().BindingAssignments(key), (*model.Assignment).HoldsCapacity)
}

func (s *Server) binding(ctx context.Context, key model.JobKey) (*model.Binding, error) {
	return logwriter.Find(ctx, s.writer, func(snap *state.Snapshot) *model.Binding { return snap.Binding(key) },
		"there is no binding %q in namespace %q", key.ID, key.Namespace)
}

// bindingEval is an evaluation of a binding.
func (s *Server) bindingEval(b *model.Binding, trigger model.Trigger) *model.Evaluation {
	now := s.writer.Now()
	return &model.Evaluation{
		ID: s.cfg.NewID(), Namespace: b.Namespace, JobID: b.ID, Type: model.JobBinding, Priority: b.Priority,
		TriggeredBy: trigger, CreateTime: now, ModifyTime: now,
	}
}

// anotherEval is an evaluation of the job or the binding under a key; nil when
// there is neither.
func (s *Server) anotherEval(key model.JobKey, trigger model.Trigger) *model.Evaluation {
	snap := s.Snapshot()
	if j := snap.Job(key); j != nil {
		return s.newEval(j, trigger)
	}
	if b := snap.Binding(key); b != nil {
		return s.bindingEval(b, trigger)
	}
	return nil
}
