package server

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/evaltrace"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
)

// RegisterJob stores a job, or another version of it, and has it scheduled. The
// caller has applied every default but those that depend on the state. With a
// plan's token exactly that plan is committed with the job, in one entry, or
// nothing at all: the conflict's Details say what differs now.
func (s *Server) RegisterJob(ctx context.Context, j *model.Job, o RegisterOptions) (*Registered, error) {
	ctx, span := s.traces.StartSpan(ctx, evaltrace.SpanRegister)
	r, err := s.registerJob(ctx, j, o)
	if span.IsRecording() {
		span.SetAttributes(aboutJob(j, r)...)
	}
	evaltrace.EndSpan(span, err)
	return r, err
}

func (s *Server) registerJob(ctx context.Context, j *model.Job, o RegisterOptions) (*Registered, error) {
	if err := s.writer.CheckLeader(); err != nil {
		return nil, err
	}
	job, err := s.resolve(j, o.ExplicitPriority)
	if err != nil {
		return nil, err
	}
	command := &replication.RegisterJob{Job: job, Check: o.Check}
	entry := &replication.Entry{Key: o.Key, Hash: registerHash(job, o), Command: command}
	if o.Token != "" {
		return s.runPlan(ctx, entry, command, o)
	}
	command.Eval = s.newEval(job, model.TriggerJobRegister)
	s.traces.Assign(ctx, command.Eval.ID)
	result, err := s.writer.CommitEntry(ctx, entry)
	if err != nil {
		return nil, err
	}
	return s.registered(result, job.Key()), nil
}

// registerHash tells requests apart that come under one idempotency key.
func registerHash(j *model.Job, o RegisterOptions) [32]byte {
	h := sha256.New()
	spec := replication.JobHash(j)
	_, _ = h.Write(spec[:])
	if o.Check != nil {
		_ = binary.Write(h, binary.BigEndian, *o.Check)
	}
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(o.Token))
	return [32]byte(h.Sum(nil))
}

// resolve fills in what depends on the state, and checks what only it can tell.
// It returns a copy.
func (s *Server) resolve(j *model.Job, explicit bool) (*model.Job, error) {
	job := *j
	job.Stopped = false
	if job.Namespace == "" {
		job.Namespace = model.DefaultNamespace
	}
	if job.SubmitTime == 0 {
		job.SubmitTime = s.writer.Now()
	}
	snap := s.Snapshot()
	problems := resolvePriority(snap, &job, explicit)
	if job.ID == "" {
		problems = append(problems, "it has no id")
	}
	if len(job.Groups) == 0 {
		problems = append(problems, "it has no groups")
	}
	if job.Policy != "" {
		set := s.policies.Pin()
		_, err := set.Select(job.Policy, "")
		set.Unpin()
		if err != nil {
			problems = append(problems, err.Error())
		}
	}
	if len(problems) > 0 {
		return nil, apierror.New(apierror.CodeInvalid, "job %q: %s", job.ID, strings.Join(problems, "; ")).
			WithDetails(map[string]any{"Problems": problems})
	}
	return &job, nil
}

// resolvePriority gives a job the priority of its class, or where it says
// nothing that of the global default. It returns what is wrong.
func resolvePriority(snap *state.Snapshot, j *model.Job, explicit bool) []string {
	if j.PriorityClass == "" {
		if explicit || j.Priority != 0 {
			return nil
		}
		j.Priority = model.DefaultPriority
		if c := model.DefaultClass(snap.PriorityClasses()); c != nil {
			inherit(j, c)
		}
		return nil
	}
	c := classNamed(snap, j.PriorityClass)
	switch {
	case c == nil:
		return []string{fmt.Sprintf("there is no priority class %q; there are %s", j.PriorityClass, classNames(snap))}
	case (explicit || j.Priority != 0) && j.Priority != c.Value:
		return []string{fmt.Sprintf("its priority is %d and that of its class %s is %d: leave one of the two out", j.Priority, c.Name, c.Value)}
	}
	inherit(j, c)
	return nil
}

func inherit(j *model.Job, c *model.PriorityClass) {
	j.PriorityClass, j.Priority = c.Name, c.Value
	j.NeverPreempts = j.NeverPreempts || c.NeverPreempts
}

func classNames(snap *state.Snapshot) string {
	var names []string
	for _, c := range model.WithSystemClasses(snap.PriorityClasses()) {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

// StopJob ends a job: what runs of it is stopped.
func (s *Server) StopJob(ctx context.Context, key model.JobKey, o StopOptions) (*Registered, error) {
	if err := s.writer.CheckLeader(); err != nil {
		return nil, err
	}
	job, err := s.job(ctx, key)
	if err != nil {
		if _, answered := s.Snapshot().IdempotencyRecord(o.Key); !answered {
			return nil, err
		}
		job = &model.Job{Namespace: key.Namespace, ID: key.ID} // this very request purged it, and the log knows the answer
	}
	eval := s.newEval(job, model.TriggerJobStop)
	s.traces.Assign(ctx, eval.ID)
	result, err := s.writer.CommitEntry(ctx, &replication.Entry{
		Key: o.Key, Hash: sha256.Sum256(fmt.Appendf(nil, "stop %q %q %t", key.Namespace, key.ID, o.Purge)),
		Command: &replication.StopJob{Key: key, Purge: o.Purge, Eval: eval},
	})
	if err != nil {
		return nil, err
	}
	return s.registered(result, key), nil
}

// Evaluate has a job or a binding looked at again.
func (s *Server) Evaluate(ctx context.Context, key model.JobKey) (*Registered, error) {
	if err := s.writer.CheckLeader(); err != nil {
		return nil, err
	}
	eval, err := logwriter.Find(ctx, s.writer, func(*state.Snapshot) *model.Evaluation { return s.anotherEval(key, triggerOperator) },
		"there is no job or binding %q in namespace %q", key.ID, key.Namespace)
	if err != nil {
		return nil, err
	}
	s.traces.Assign(ctx, eval.ID)
	result, err := s.evals.Add(ctx, s.endings(eval))
	if err != nil {
		return nil, err
	}
	if err := logwriter.Refusal(result); err != nil {
		return nil, err
	}
	answer := s.registered(result, key)
	answer.EvalID = eval.ID // the entry may hold those of others
	return answer, nil
}

// triggerOperator is of an evaluation that somebody asked for.
const triggerOperator model.Trigger = "job-evaluate"

// StopAlloc ends one instance; its job gets another in its place.
func (s *Server) StopAlloc(ctx context.Context, id string) (*Registered, error) {
	if err := s.writer.CheckLeader(); err != nil {
		return nil, err
	}
	a, err := logwriter.Find(ctx, s.writer, func(snap *state.Snapshot) *model.Allocation { return snap.Alloc(id) }, "there is no allocation %q", id)
	if err != nil {
		return nil, err
	}
	result, err := s.writer.Commit(ctx, &replication.StopAllocs{IDs: []string{id}, Reason: "stopped by an operator"})
	if err != nil {
		return nil, err
	}
	return s.registered(result, a.Job.Key()), nil
}

func (s *Server) job(ctx context.Context, key model.JobKey) (*model.Job, error) {
	return logwriter.Find(ctx, s.writer, func(snap *state.Snapshot) *model.Job { return snap.Job(key) },
		"there is no job %q in namespace %q", key.ID, key.Namespace)
}

// newEval is an evaluation of a job.
func (s *Server) newEval(j *model.Job, trigger model.Trigger) *model.Evaluation {
	now := s.writer.Now()
	return &model.Evaluation{
		ID: s.cfg.NewID(), Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority,
		TriggeredBy: trigger, CreateTime: now, ModifyTime: now,
	}
}

// registered is the answer to a write about a job.
func (s *Server) registered(result *replication.Result, key model.JobKey) *Registered {
	r := &Registered{Index: result.Index, Replayed: result.Replayed}
	for _, e := range result.Evals {
		if e.JobKey() == key {
			r.EvalID = e.ID
			break
		}
	}
	if j := s.Snapshot().Job(key); j != nil {
		r.JobModifyIndex = j.ModifyIndex
	}
	if b := s.Snapshot().Binding(key); b != nil {
		r.JobModifyIndex = b.ModifyIndex
	}
	return r
}
