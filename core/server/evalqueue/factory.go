package evalqueue

import (
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A Factory creates evaluations that are not written yet. Both fields are required.
type Factory struct {
	NewID func() string
	Clock clock.Clock
}

// ForJob returns a new evaluation of a job.
func (f Factory) ForJob(j *model.Job, trigger model.Trigger) *model.Evaluation {
	now := f.Clock.Now().UnixNano()
	return &model.Evaluation{
		ID: f.NewID(), Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority,
		TriggeredBy: trigger, CreateTime: now, ModifyTime: now,
	}
}

// ForBinding returns a new evaluation of a binding.
func (f Factory) ForBinding(b *model.Binding, trigger model.Trigger) *model.Evaluation {
	now := f.Clock.Now().UnixNano()
	return &model.Evaluation{
		ID: f.NewID(), Namespace: b.Namespace, JobID: b.ID, Type: model.JobBinding, Priority: b.Priority,
		TriggeredBy: trigger, CreateTime: now, ModifyTime: now,
	}
}

// ForKey returns a new evaluation of the job or the binding with a key, or nil if the
// state holds neither.
func (f Factory) ForKey(snap *state.Snapshot, key model.JobKey, trigger model.Trigger) *model.Evaluation {
	if j := snap.Job(key); j != nil {
		return f.ForJob(j, trigger)
	}
	if b := snap.Binding(key); b != nil {
		return f.ForBinding(b, trigger)
	}
	return nil
}
