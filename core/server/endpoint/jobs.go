package endpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/evalqueue"
	"github.com/cede-scheduler/cede/core/server/evaltrace"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/core/suggest"
)

// triggerOperator is the trigger of an evaluation that an operator requested.
const triggerOperator model.Trigger = "job-evaluate"

// Jobs registers, plans, evaluates and stops jobs.
type Jobs struct {
	common
	updates *evalqueue.Updates
	plans   jobPlanner
}

// RegisterJob stores a job, or a new version of it, and creates an evaluation. The
// caller has applied every default that does not depend on the state. With the token of
// a plan exactly that plan is committed together with the job, in one entry, or nothing
// at all: the Details of the conflict then list the differences.
func (e *Jobs) RegisterJob(ctx context.Context, j *model.Job, o RegisterOptions) (*Registered, error) {
	ctx, span := e.traces.StartSpan(ctx, evaltrace.SpanRegister)
	r, err := e.registerJob(ctx, j, o)
	if span.IsRecording() {
		span.SetAttributes(registrationAttributes(j.Namespace, "cede.job_id", j.ID, r)...)
	}
	evaltrace.EndSpan(span, err)
	return r, err
}

// registrationAttributes returns the span attributes of a registration.
func registrationAttributes(namespace, key, id string, r *Registered) []attribute.KeyValue {
	list := []attribute.KeyValue{attribute.String("cede.namespace", namespace), attribute.String(key, id)}
	if r != nil {
		list = append(list, attribute.String("cede.eval_id", r.EvalID), attribute.Int64("cede.index", int64(r.Index)))
	}
	return list
}

func (e *Jobs) registerJob(ctx context.Context, j *model.Job, o RegisterOptions) (*Registered, error) {
	if err := e.writer.CheckLeader(); err != nil {
		return nil, err
	}
	entry := &replication.Entry{Key: o.Key, Hash: registrationHash(j, o)}
	id := model.JobKey{Namespace: cmp.Or(j.Namespace, model.DefaultNamespace), ID: j.ID}
	if first, err := e.replay(ctx, entry.Key, entry.Hash, id); first != nil || err != nil {
		return first, err
	}
	job, err := e.plans.resolve(j, originOfPriority(o.ExplicitPriority), true)
	if err != nil {
		return nil, err
	}
	command := &replication.RegisterJob{Job: job, Check: o.Check}
	entry.Command = command
	if o.Token != "" {
		return e.commitPlan(ctx, entry, command, o)
	}
	return e.commitJob(ctx, entry, command)
}

// commitJob commits the registration of a job with an evaluation.
func (e *Jobs) commitJob(ctx context.Context, entry *replication.Entry, command *replication.RegisterJob) (*Registered, error) {
	command.Eval = e.evals.ForJob(command.Job, model.TriggerJobRegister)
	e.traces.Assign(ctx, command.Eval.ID)
	warnings, err := registrationWarnings(e.writer.Snapshot(), command.Job)
	if err != nil {
		return nil, err
	}
	result, err := e.writer.CommitEntry(ctx, entry)
	if err != nil {
		return nil, err
	}
	answer := registered(result, command.Job.Key())
	answer.Warnings = warnings
	return answer, nil
}

// registrationWarnings returns the warnings about a registration of a job, with or without a plan.
func registrationWarnings(snap *state.Snapshot, job *model.Job) ([]string, error) {
	warnings := namespaceWarnings(snap, job.Namespace)
	old := snap.Job(job.Key())
	if old == nil {
		return warnings, nil
	}
	next, err := nextVersion(snap, old, job)
	if err != nil {
		return nil, err
	}
	return append(warnings, doneWarnings(snap, next)...), nil
}

// nextVersion returns the version of a stored job that a registration stores. It is not compiled
// if it is new.
func nextVersion(snap *state.Snapshot, old, job *model.Job) (*model.Job, error) {
	if !specChanged(old, job) {
		return old, nil
	}
	next, err := cloneJob(job)
	if err != nil {
		return nil, err
	}
	apply.NextVersion(&snap.View, old, next, job.SubmitTime)
	next.CreateIndex = old.CreateIndex
	for _, g := range next.Groups {
		g.Job = next
	}
	return next, nil
}

// doneWarnings returns a warning if the registration of a version of a job runs nothing, because
// every instance of the job has completed. Of a job that runs on every node, those on nodes that
// were added since may run.
func doneWarnings(snap *state.Snapshot, next *model.Job) []string {
	if !slices.ContainsFunc(next.Groups, func(g *model.Group) bool { return g.Count > 0 }) {
		return nil
	}
	allocs := snap.AppendJobAllocs(nil, next.Key())
	what := "all instances of job %s have completed, and do not run again"
	if next.Type.PerNode() && isDoneOnNodes(next, allocs) {
		what = "all instances of job %s have completed, and do not run again on their nodes"
	} else if !next.IsDone(allocs) {
		return nil
	}
	remedy := "change its tasks or resources, or stop the job and run it"
	if snap.Meta().Version < apply.RerunFrom {
		remedy = "run it under another ID until all servers are upgraded"
	}
	return []string{fmt.Sprintf(what+": "+remedy, next.ID)}
}

// isDoneOnNodes reports whether each group of a job that runs on every node has completed
// wherever it was placed.
func isDoneOnNodes(j *model.Job, allocs []*model.Allocation) bool {
	return !slices.ContainsFunc(allocs, (*model.Allocation).Live) && !slices.ContainsFunc(j.Groups, func(g *model.Group) bool {
		return g.Count > 0 && !slices.ContainsFunc(allocs, func(a *model.Allocation) bool { return a.Group.Name == g.Name && a.IsDone(j) })
	})
}

// ChangeJob registers a new version of a stored job, which retains its priority. change
// returns that version from the current one; it is not called if the request is repeated.
// If another caller changes the job meanwhile, the result is a conflict.
func (e *Jobs) ChangeJob(ctx context.Context, key model.JobKey, o ChangeOptions, change func(*state.Snapshot, *model.Job) (*model.Job, error)) (*Registered, error) {
	if err := e.writer.CheckLeader(); err != nil {
		return nil, err
	}
	if first, err := e.replay(ctx, o.Key, o.Request, key); first != nil || err != nil {
		return first, err
	}
	current, err := findJob(ctx, e.writer, key)
	if err != nil {
		return nil, err
	}
	next, err := change(e.writer.Snapshot(), current)
	if err != nil {
		return nil, err
	}
	job, err := e.plans.resolve(next, priorityStored, true)
	if err != nil {
		return nil, err
	}
	command := &replication.RegisterJob{Job: job, Check: &current.ModifyIndex}
	return e.commitJob(ctx, &replication.Entry{Key: o.Key, Hash: o.Request, Command: command}, command)
}

// registrationHash distinguishes requests with the same idempotency key.
func registrationHash(j *model.Job, o RegisterOptions) [32]byte {
	h := sha256.New()
	spec := codec.JobHash(j)
	_, _ = h.Write(spec[:])
	_ = binary.Write(h, binary.BigEndian, o.ExplicitPriority)
	if o.Check != nil {
		_ = binary.Write(h, binary.BigEndian, *o.Check)
	}
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(o.Token))
	return [32]byte(h.Sum(nil))
}

// resolve returns a copy of a job with everything that depends on the state filled in.
// It returns an error that lists all problems. Every write of a job passes here; register
// distinguishes one from a plan, which uses nothing of its namespace.
func (p *jobPlanner) resolve(j *model.Job, priority priorityOrigin, register bool) (*model.Job, error) {
	job := *j
	job.Stopped = false
	job.Namespace = cmp.Or(job.Namespace, model.DefaultNamespace)
	job.SubmitTime = p.writer.Now() // a caller must not appear to wait for longer
	snap := p.writer.Snapshot()
	var problems []string
	if priority != priorityStored {
		problems = resolvePriority(snap, &job, priority == priorityExplicit)
	}
	if job.ID == "" {
		problems = append(problems, "ID is required")
	}
	if len(job.Groups) == 0 {
		problems = append(problems, "at least one group is required")
	}
	if job.Policy != "" {
		set := p.policies.Pin()
		_, err := set.Select(job.Policy, "")
		set.Unpin()
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	problems = append(problems, p.limits.Job(snap, &job, register && len(problems) == 0)...)
	if err := invalid(problems, "job %q", job.ID); err != nil {
		return nil, err
	}
	return &job, nil
}

// A priorityOrigin describes where the priority of a job comes from.
type priorityOrigin int

const (
	priorityDefault  priorityOrigin = iota // 0 means that the request omits it
	priorityExplicit                       // 0 is set
	priorityStored                         // from a stored version, to which the class was applied
)

func originOfPriority(explicit bool) priorityOrigin {
	if explicit {
		return priorityExplicit
	}
	return priorityDefault
}

// resolvePriority gives a job the priority of its class. A job with neither gets the
// global default class, or else the default priority. It returns the problems.
func resolvePriority(snap *state.Snapshot, j *model.Job, explicit bool) []string {
	if j.PriorityClass == "" {
		if explicit || j.Priority != 0 {
			return nil
		}
		j.Priority = model.DefaultPriority
		if c := model.DefaultClass(snap.PriorityClasses()); c != nil {
			inheritClass(j, c)
		}
		return nil
	}
	c := findClass(snap, j.PriorityClass)
	switch {
	case c == nil:
		return []string{fmt.Sprintf("unknown priority class %q: %s", j.PriorityClass, classRemedy(snap, j.PriorityClass))}
	case (explicit || j.Priority != 0) && j.Priority != c.Value:
		return []string{fmt.Sprintf("priority %d differs from that of class %s, which is %d: omit one of the two", j.Priority, c.Name, c.Value)}
	}
	inheritClass(j, c)
	return nil
}

func inheritClass(j *model.Job, c *model.PriorityClass) {
	j.PriorityClass, j.Priority = c.Name, c.Value
	j.NeverPreempts = j.NeverPreempts || c.NeverPreempts
}

// classRemedy returns the remedy for an unknown priority class.
func classRemedy(snap *state.Snapshot, name string) string {
	var names []string
	for _, c := range model.WithSystemClasses(snap.PriorityClasses()) {
		names = append(names, c.Name)
	}
	return suggest.DidYouMean(name, names, "create it, or use one of "+strings.Join(names, ", "))
}

// StopJob stops a job and its allocations.
func (e *Jobs) StopJob(ctx context.Context, key model.JobKey, o StopOptions) (*Registered, error) {
	if err := e.writer.CheckLeader(); err != nil {
		return nil, err
	}
	entry := &replication.Entry{Key: o.Key, Hash: sha256.Sum256(fmt.Appendf(nil, "stop %q %q %t", key.Namespace, key.ID, o.Purge))}
	answer, err := e.replay(ctx, entry.Key, entry.Hash, key)
	if answer == nil && err == nil {
		answer, err = e.stopJob(ctx, entry, key, o.Purge)
	}
	if err == nil && o.Purge {
		answer.JobModifyIndex = 0
	}
	return answer, err
}

func (e *Jobs) stopJob(ctx context.Context, entry *replication.Entry, key model.JobKey, purge bool) (*Registered, error) {
	job, err := findJob(ctx, e.writer, key)
	if err != nil {
		return nil, err
	}
	eval := e.evals.ForJob(job, model.TriggerJobStop)
	e.traces.Assign(ctx, eval.ID)
	entry.Command = &replication.StopJob{Key: key, Purge: purge, Eval: eval}
	result, err := e.writer.CommitEntry(ctx, entry)
	if err != nil {
		return nil, err
	}
	return registered(result, key), nil
}

// findJob returns a stored job.
func findJob(ctx context.Context, w *logwriter.Writer, key model.JobKey) (*model.Job, error) {
	return logwriter.Find(ctx, w, func(snap *state.Snapshot) *model.Job { return snap.Job(key) },
		"no job %q in namespace %q", key.ID, key.Namespace)
}

// Evaluate creates an evaluation of a job or a binding.
func (e *Jobs) Evaluate(ctx context.Context, key model.JobKey) (*Registered, error) {
	if err := e.writer.CheckLeader(); err != nil {
		return nil, err
	}
	var evaluated uint64 // ModifyIndex of the job or the binding
	eval, err := logwriter.Find(ctx, e.writer, func(snap *state.Snapshot) *model.Evaluation {
		evaluated = modifyIndex(snap, key)
		return e.evals.ForKey(snap, key, triggerOperator)
	}, "no job or binding %q in namespace %q", key.ID, key.Namespace)
	if err != nil {
		return nil, err
	}
	e.traces.Assign(ctx, eval.ID)
	result, err := e.updates.Write(ctx, eval)
	if err != nil {
		return nil, err
	}
	if err := logwriter.Refusal(result); err != nil {
		return nil, err
	}
	answer := registered(result, key)
	answer.EvalID = eval.ID // the entry may hold evaluations of other callers
	answer.JobModifyIndex = evaluated
	return answer, nil
}

// modifyIndex returns the ModifyIndex of a job or a binding, or 0 if there is none.
func modifyIndex(snap *state.Snapshot, key model.JobKey) uint64 {
	if j := snap.Job(key); j != nil {
		return j.ModifyIndex
	}
	if b := snap.Binding(key); b != nil {
		return b.ModifyIndex
	}
	return 0
}

// StopAlloc stops one allocation; its job replaces it.
func (e *Jobs) StopAlloc(ctx context.Context, id string) (*Registered, error) {
	if err := e.writer.CheckLeader(); err != nil {
		return nil, err
	}
	a, err := logwriter.Find(ctx, e.writer, func(snap *state.Snapshot) *model.Allocation { return snap.Alloc(id) }, "no allocation %q", id)
	if err != nil {
		return nil, err
	}
	result, err := e.writer.Commit(ctx, &replication.StopAllocs{IDs: []string{id}, Reason: "stopped by an operator"})
	if err != nil {
		return nil, err
	}
	return registered(result, a.Job.Key()), nil
}

// planConflict returns the error of a plan that differs from the current state.
func planConflict(differences []string) error {
	return apierror.New(apierror.CodeConflict, "the plan no longer applies: %s", strings.Join(differences, "; ")).
		WithHint("plan again and review the new plan").WithDetails(map[string]any{"Difference": differences})
}
