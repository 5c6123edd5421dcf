package endpoint

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
	"github.com/cede-scheduler/cede/core/server/admission"
	"github.com/cede-scheduler/cede/core/server/evaltrace"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
)

// Bindings registers and stops bindings of replicas to member clusters.
type Bindings struct {
	common
	limits *admission.Checker
}

// RegisterBinding stores a binding, or a new version of it, and creates an evaluation.
// The error lists all problems.
func (e *Bindings) RegisterBinding(ctx context.Context, b *model.Binding, o RegisterOptions) (*Registered, error) {
	ctx, span := e.traces.StartSpan(ctx, evaltrace.SpanRegisterBinding)
	r, err := e.registerBinding(ctx, b, o)
	if span.IsRecording() {
		span.SetAttributes(registrationAttributes(cmp.Or(b.Namespace, model.DefaultNamespace), "cede.binding_id", b.ID, r)...)
	}
	evaltrace.EndSpan(span, err)
	return r, err
}

func (e *Bindings) registerBinding(ctx context.Context, b *model.Binding, o RegisterOptions) (*Registered, error) {
	if err := e.writer.CheckLeader(); err != nil {
		return nil, err
	}
	entry := &replication.Entry{Key: o.Key, Hash: bindingHash(b, o)}
	id := model.JobKey{Namespace: cmp.Or(b.Namespace, model.DefaultNamespace), ID: b.ID}
	if first, err := e.replay(ctx, entry.Key, entry.Hash, id); first != nil || err != nil {
		return first, err
	}
	binding, warnings, err := e.resolve(e.writer.Snapshot(), e.writer.Now(), b, o)
	if err != nil {
		return nil, err
	}
	eval := e.evals.ForBinding(binding, model.TriggerJobRegister)
	e.traces.Assign(ctx, eval.ID)
	entry.Command = &replication.UpsertBinding{Binding: binding, Check: o.Check, Eval: eval}
	result, err := e.writer.CommitEntry(ctx, entry)
	if err != nil {
		return nil, err
	}
	answer := registered(result, binding.Key())
	answer.Warnings = warnings
	return answer, nil
}

// bindingHash distinguishes requests with the same idempotency key.
func bindingHash(b *model.Binding, o RegisterOptions) [32]byte {
	spec := *b
	spec.SubmitTime = 0
	text, _ := json.Marshal(&spec) // plain values only: cannot fail
	h := sha256.New()
	_, _ = h.Write([]byte("binding"))
	_, _ = h.Write(text)
	_ = binary.Write(h, binary.BigEndian, [2]bool{o.ExplicitPriority, o.ExplicitPreemption})
	if o.Check != nil {
		_ = binary.Write(h, binary.BigEndian, *o.Check)
	}
	return [32]byte(h.Sum(nil))
}

// resolve returns a copy of a binding with everything that depends on the state
// filled in, and warnings. It returns an error that lists all problems.
func (e *Bindings) resolve(snap *state.Snapshot, now int64, b *model.Binding, o RegisterOptions) (*model.Binding, []string, error) {
	binding := *b
	binding.Stopped = false
	binding.Constraints = slices.Clone(b.Constraints) // the state compiles them in place
	binding.Namespace = cmp.Or(binding.Namespace, model.DefaultNamespace)
	binding.SubmitTime = cmp.Or(binding.SubmitTime, now)
	warnings, problems := resolveBindingPriority(snap, &binding, o)
	problems = append(problems, binding.Validate()...)
	if strings.ContainsAny(binding.ID+binding.Namespace, "/ \t\n") {
		problems = append(problems, "ID and namespace must not contain spaces or slashes")
	}
	if snap.Job(binding.Key()) != nil {
		problems = append(problems, "a job with this ID exists: jobs and bindings share one namespace of IDs")
	}
	if len(problems) == 0 {
		problems = e.limits.Binding(snap, &binding)
	}
	if err := invalid(problems, "binding %q", binding.ID); err != nil {
		return nil, nil, err
	}
	for _, id := range binding.Clusters {
		if snap.Cluster(id) == nil {
			warnings = append(warnings, fmt.Sprintf("cluster %q does not exist yet", id))
		}
	}
	return &binding, append(warnings, namespaceWarnings(snap, binding.Namespace)...), nil
}

// resolveBindingPriority gives a binding the priority of its class. A missing class is
// not an error, because it may have been deleted since: the class of a pod template falls
// back to the global default, and one that the binding names itself means priority 0
// without preemption.
func resolveBindingPriority(snap *state.Snapshot, b *model.Binding, o RegisterOptions) (warnings, problems []string) {
	explicit := o.ExplicitPriority || b.Priority != 0
	class := findClass(snap, b.PriorityClass)
	missing := b.PriorityClass != "" && class == nil
	switch {
	case b.PriorityClass != "" && explicit && (missing || class.Value != b.Priority):
		return nil, []string{fmt.Sprintf("priority %d differs from that of class %s: omit one of the two", b.Priority, b.PriorityClass)}
	case missing && snap.Config().StrictClasses():
		return nil, []string{fmt.Sprintf("unknown priority class %q, and StrictPriorityClasses is on: %s", b.PriorityClass, classRemedy(snap, b.PriorityClass))}
	case missing:
		warnings = append(warnings, fmt.Sprintf("unknown priority class %q: %s", b.PriorityClass, classRemedy(snap, b.PriorityClass)))
	}
	if class == nil && !explicit && (!missing || b.ClassSource == model.PodPriorityClass) {
		class = model.DefaultClass(snap.PriorityClasses())
	}
	if class == nil { // a missing one keeps its name: model.Binding.HasMissingClass
		if b.ClassSource != model.FederatedPriorityClass { // Validate reports that problem
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

// StopBinding stops a binding and its assignments. With Purge it is removed at once if
// no assignment of it holds capacity.
func (e *Bindings) StopBinding(ctx context.Context, key model.JobKey, o StopOptions) (*Registered, error) {
	if err := e.writer.CheckLeader(); err != nil {
		return nil, err
	}
	entry := &replication.Entry{Key: o.Key, Hash: sha256.Sum256(fmt.Appendf(nil, "stop binding %q %q %t", key.Namespace, key.ID, o.Purge))}
	answer, err := e.replay(ctx, entry.Key, entry.Hash, key)
	if answer == nil && err == nil {
		answer, err = e.stopBinding(ctx, entry, key, o.Purge)
	}
	switch {
	case err != nil:
		return nil, err
	case answer.EvalID == "": // the binding was deleted
		answer.JobModifyIndex = 0
	case o.Purge:
		answer.Warnings = append(answer.Warnings, "the binding is removed some time after the last of its replicas has stopped")
	}
	return answer, nil
}

func (e *Bindings) stopBinding(ctx context.Context, entry *replication.Entry, key model.JobKey, purge bool) (*Registered, error) {
	b, err := logwriter.Find(ctx, e.writer, func(snap *state.Snapshot) *model.Binding { return snap.Binding(key) },
		"no binding %q in namespace %q", key.ID, key.Namespace)
	if err != nil {
		return nil, err
	}
	entry.Command = &replication.DeleteBinding{Key: key}
	if !purge || holdsCapacity(e.writer.Snapshot(), key) {
		eval := e.evals.ForBinding(b, model.TriggerJobStop)
		e.traces.Assign(ctx, eval.ID)
		entry.Command = &replication.StopBinding{Key: key, Eval: eval}
	}
	result, err := e.writer.CommitEntry(ctx, entry)
	if err != nil {
		return nil, err
	}
	return registered(result, key), nil
}

// holdsCapacity reports whether an assignment of a binding holds capacity.
func holdsCapacity(snap *state.Snapshot, key model.JobKey) bool {
	return slices.ContainsFunc(snap.BindingAssignments(key), (*model.Assignment).HoldsCapacity)
}
