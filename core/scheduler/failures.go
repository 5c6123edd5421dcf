package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// Instances that fail. What failed once is replaced at once: it may have been the node.
// What fails again and again would be replaced several times a second for ever, each
// time at the cost of a plan and of an allocation that is kept for a while. So it waits
// ever longer. How long is told by the allocations that the state has of the instance,
// so that every evaluation of the job comes to the same time. Of an instance that fails
// for hours the first ones are forgotten meanwhile, but enough are left for it to wait
// for longest.
const (
	firstRetry   = 5 * time.Second // after the second failure in a row; doubled after each
	longestRetry = 5 * time.Minute
	// workedWell is how long an instance has to work for its failure to be the first
	// of a row again.
	workedWell = 10 * time.Minute
)

// Retry is an instance that failed more than once in a row, and is replaced at a time.
type Retry struct {
	Last     *model.Allocation // that failed
	Failures int               // in a row
	At       int64             // Unix nanoseconds
}

// Retries are those of a job's instances whose last allocation failed, and was not the
// first to, ascending by group and index.
func Retries(job *model.Job, allocs []*model.Allocation) (list []Retry) {
	var mine []*model.Allocation
	for _, a := range allocs {
		if a.Job.Version == job.Version && (a.EndTime >= job.SubmitTime || !a.Client.Terminal()) {
			mine = append(mine, a)
		}
	}
	slices.SortFunc(mine, func(a, b *model.Allocation) int {
		return cmp.Or(cmp.Compare(a.Group.Position, b.Group.Position), cmp.Compare(a.Index, b.Index),
			cmp.Compare(b.Incarnation, a.Incarnation), cmp.Compare(a.ID, b.ID))
	})
	for len(mine) > 0 {
		n := 1
		for n < len(mine) && mine[n].Group.Position == mine[0].Group.Position && mine[n].Index == mine[0].Index {
			n++
		}
		if failures := inARow(mine[:n]); failures > 1 {
			list = append(list, Retry{mine[0], failures, mine[0].EndTime + int64(retryAfter(failures))})
		}
		mine = mine[n:]
	}
	return list
}

// inARow is how often one instance failed in a row; its allocations are given newest
// first. What was stopped, evicted or lost meanwhile has not failed, and shows no
// recovery either.
func inARow(allocs []*model.Allocation) (n int) {
	if !failed(allocs[0]) {
		return 0
	}
	for _, a := range allocs {
		if failed(a) {
			n++
		}
		if a.Age(a.EndTime) >= int64(workedWell) {
			break
		}
	}
	return n
}

func failed(a *model.Allocation) bool {
	return a.Client == model.ClientFailed && a.Desired == model.DesiredRun
}

// retryAfter is how long an instance waits that failed so often in a row.
func retryAfter(failures int) time.Duration {
	wait := firstRetry
	for ; failures > 2 && wait < longestRetry; failures-- {
		wait *= 2
	}
	return min(wait, longestRetry)
}

// TellRetries says of instances why they are not there and when they will be.
func TellRetries(list []Retry) string {
	var said []string
	for i, x := range list {
		if i == retriesTold {
			said = append(said, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		said = append(said, fmt.Sprintf("%s failed %d times in a row: again at %s", model.AllocName(x.Last.Group, x.Last.Index, 0),
			x.Failures, time.Unix(0, x.At).UTC().Format(time.RFC3339)))
	}
	return strings.Join(said, "; ")
}

// retriesTold is how many instances a text names.
const retriesTold = 5

// retryAt is when the allocation is replaced that was the last one of its instance; 0:
// at once. Until then the instance is not wanted, and the job is looked at again then.
func (r *run) retryAt(last *model.Allocation) int64 {
	if !failed(last) || last.Incarnation == 0 {
		return 0
	}
	if !r.counted {
		r.counted = true
		for _, x := range Retries(r.job, r.s.allocs) {
			if x.At > r.now+int64(longestRetry) {
				continue // it failed by a clock that was wrong
			}
			if r.retries == nil {
				r.retries = map[*model.Allocation]int64{}
			}
			if r.retries[x.Last] = x.At; x.At > r.now {
				r.out.Retries = append(r.out.Retries, x)
			}
		}
	}
	at := r.retries[last]
	if at > r.now {
		r.leavesAt(at)
	}
	return at
}
