package apply

import (
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// FollowUpID returns the ID of the evaluation that is derived for a job or binding at
// an index. There is at most one, whatever the number of reasons. It is a hash, so that
// every server that applies the entry derives the same ID without agreement; a random
// ID would make states differ. The two halves differ by their first byte.
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

// followUps collects the jobs and bindings that need another evaluation. It is filled
// while an entry is applied and written once at its end, so that a job that loses many
// allocations gets one evaluation.
type followUps struct {
	trigger  model.Trigger
	previous string // ID of the evaluation that caused them; "" if none did
	wait     int64  // nanoseconds before the evaluations may run
	jobs     map[model.JobKey]*model.Job
	bindings map[model.JobKey]*model.Binding
}

func newFollowUps(trigger model.Trigger, previous string) *followUps {
	return &followUps{trigger: trigger, previous: previous, jobs: map[model.JobKey]*model.Job{}, bindings: map[model.JobKey]*model.Binding{}}
}

// addJob adds a job. The version supplies type and priority if the job was
// deleted meanwhile.
func (f *followUps) addJob(version *model.Job) { f.jobs[version.Key()] = version }

// addBinding adds a binding.
func (f *followUps) addBinding(version *model.Binding) { f.bindings[version.Key()] = version }

// typeAndPriority returns the type and priority of the evaluation of a key.
func (f *followUps) typeAndPriority(v *state.View, key model.JobKey) (model.JobType, int32) {
	if b := f.bindings[key]; b != nil {
		return model.JobBinding, b.Priority
	}
	job := v.Job(key)
	if job == nil {
		job = f.jobs[key]
	}
	return job.Type, job.Priority
}

// write marks the jobs and bindings dirty and stores one evaluation for each that
// has none of this index yet. It returns the stored evaluations, ascending by key.
func (f *followUps) write(t *state.Txn, now int64) []*model.Evaluation {
	keys := make([]model.JobKey, 0, len(f.jobs)+len(f.bindings))
	for key := range f.jobs {
		keys = append(keys, key)
	}
	for key := range f.bindings {
		keys = append(keys, key)
	}
	// Map order must not reach the log's observers.
	slices.SortFunc(keys, model.JobKey.Compare)
	var evals []*model.Evaluation
	for _, key := range keys {
		t.JobWriter().MarkDirty(key)
		id := FollowUpID(t.Index(), key)
		// Another part of the same entry derived it.
		if t.Eval(id) != nil {
			continue
		}
		kind, priority := f.typeAndPriority(&t.View, key)
		e := &model.Evaluation{
			ID: id, Namespace: key.Namespace, JobID: key.ID, Type: kind, Priority: priority,
			TriggeredBy: f.trigger, Status: model.EvalPending, Previous: f.previous,
			CreateTime: now, ModifyTime: now,
		}
		if f.wait > 0 {
			e.WaitUntil = now + f.wait
		}
		t.EvalWriter().Upsert(e)
		evals = append(evals, e)
	}
	return evals
}
