package state

import (
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/cede-scheduler/cede/core/model"
)

// What the entries of the log do to the state. All of it is a pure function of
// the transaction and the arguments, time included, so that every server
// arrives at the same state.

// FollowUpID is the id of the evaluation that apply derives for a job at an
// index. There is at most one, however many reasons there are.
func FollowUpID(index uint64, key model.JobKey) string {
	var raw [16]byte
	for half := range 2 {
		h := xxhash.New()
		var head [17]byte
		head[0] = byte(half)
		binary.BigEndian.PutUint64(head[1:], index)
		binary.BigEndian.PutUint64(head[9:], uint64(len(key.Namespace)))
		_, _ = h.Write(head[:])
		_, _ = h.WriteString(key.Namespace)
		_, _ = h.WriteString(key.ID)
		binary.BigEndian.PutUint64(raw[half*8:], h.Sum64())
	}
	s := hex.EncodeToString(raw[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// followUps collects the jobs and bindings that must be looked at again.
type followUps struct {
	trigger  model.Trigger
	previous string
	wait     int64 // nanoseconds before the evaluations shall run
	jobs     map[model.JobKey]*model.Job
	bindings map[model.JobKey]*model.Binding
}

func newFollowUps(trigger model.Trigger, previous string) *followUps {
	return &followUps{trigger: trigger, previous: previous, jobs: map[model.JobKey]*model.Job{}, bindings: map[model.JobKey]*model.Binding{}}
}

// add notes a job; version serves when the job itself was deleted meanwhile.
func (f *followUps) add(version *model.Job) { f.jobs[version.Key()] = version }

// addBinding is add for a binding.
func (f *followUps) addBinding(version *model.Binding) { f.bindings[version.Key()] = version }

// of is the type and the priority of what is under a key.
func (f *followUps) of(t *Txn, key model.JobKey) (model.JobType, int32) {
	if b := f.bindings[key]; b != nil {
		return model.JobBinding, b.Priority
	}
	job := t.Job(key)
	if job == nil {
		job = f.jobs[key]
	}
	return job.Type, job.Priority
}

// write marks the jobs dirty and stores one evaluation for each that has none
// of this index yet. It returns what it stored, ascending by job.
func (f *followUps) write(t *Txn, now int64) []*model.Evaluation {
	keys := make([]model.JobKey, 0, len(f.jobs)+len(f.bindings))
	for key := range f.jobs {
		keys = append(keys, key)
	}
	for key := range f.bindings {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, model.JobKey.Compare)
	var evals []*model.Evaluation
	for _, key := range keys {
		t.MarkDirty(key)
		id := FollowUpID(t.index, key)
		if t.Eval(id) != nil {
			continue
		}
		kind, priority := f.of(t, key)
		e := &model.Evaluation{
			ID: id, Namespace: key.Namespace, JobID: key.ID, Type: kind, Priority: priority,
			TriggeredBy: f.trigger, Status: model.EvalPending, Previous: f.previous,
			CreateTime: now, ModifyTime: now,
		}
		if f.wait > 0 {
			e.WaitUntil = now + f.wait
		}
		t.upsertEval(e)
		evals = append(evals, e)
	}
	return evals
}
