package apply

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// RerunFrom is the first cluster version in which completed instances run again, and an instance
// that completes while its replacement is planned is not replaced. Servers of an older release
// would derive another state.
const RerunFrom = 3

// NextVersion makes j the version of a job after old. After a stop, another run begins with it.
func NextVersion(v *state.View, old, j *model.Job, now int64) {
	j.Version, j.SubmitTime = old.Version+1, old.SubmitTime
	if v.Meta().Version < RerunFrom {
		return
	}
	if j.Succeed(old); old.Stopped {
		j.SubmitTime = now
	}
}
