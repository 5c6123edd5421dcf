package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
)

// Instances that fail. After the first failure an instance is replaced at once,
// since its node may have been the cause. One that keeps failing would be replaced
// several times a second, each time with a plan and a retained allocation, so its
// delay doubles with every failure in a row.
//
// The delay is computed from the allocations in the state, so that every
// evaluation of the job arrives at the same time. Garbage collection may remove
// the oldest failures, but never so many that the delay shrinks below its maximum.
const (
	minRetryDelay = 5 * time.Second // after the second failure in a row
	maxRetryDelay = 5 * time.Minute
	// retryReset is how long an instance has to run for its next failure to be the
	// first one in a row again.
	retryReset = 10 * time.Minute
)

// A Retry is an instance that failed more than once in a row.
type Retry struct {
	Last     *model.Allocation // the last one that failed
	Failures int               // in a row
	At       int64             // when it is replaced, in Unix nanoseconds
}

// Retries returns the instances of a job that failed at least twice in a row, ascending by group and index.
func Retries(job *model.Job, allocs []*model.Allocation) (list []Retry) {
	var current []*model.Allocation
	for _, a := range allocs {
		if a.Job.Version == job.Version && a.Job.IsSameJob(job) {
			current = append(current, a)
		}
	}
	slices.SortFunc(current, func(a, b *model.Allocation) int {
		return cmp.Or(cmp.Compare(a.Group.Position, b.Group.Position), cmp.Compare(a.Index, b.Index),
			cmp.Compare(b.Incarnation, a.Incarnation), cmp.Compare(a.ID, b.ID))
	})
	for len(current) > 0 {
		n := 1
		for n < len(current) && current[n].Group.Position == current[0].Group.Position && current[n].Index == current[0].Index {
			n++
		}
		if failures := failuresInARow(current[:n]); failures > 1 {
			list = append(list, Retry{current[0], failures, current[0].EndTime + int64(retryDelay(failures))})
		}
		current = current[n:]
	}
	return list
}

// failuresInARow counts the failures of one instance from its allocations, newest first. Allocations that were stopped, evicted or lost are neither a
// failure nor a recovery.
func failuresInARow(allocs []*model.Allocation) (n int) {
	if !hasFailed(allocs[0]) {
		return 0
	}
	for _, a := range allocs {
		if hasFailed(a) {
			n++
		}
		if a.Age(a.EndTime) >= int64(retryReset) {
			break
		}
	}
	return n
}

func hasFailed(a *model.Allocation) bool {
	return a.Client == model.ClientFailed && a.Desired == model.DesiredRun
}

// retryDelay returns the delay after so many failures in a row, of which there are
// at least two.
func retryDelay(failures int) time.Duration {
	delay := minRetryDelay
	for ; failures > 2 && delay < maxRetryDelay; failures-- {
		delay *= 2
	}
	return min(delay, maxRetryDelay)
}

// maxDescribed is the number of instances that DescribeRetries names.
const maxDescribed = 5

// DescribeRetries formats retries as the status text of an evaluation.
func DescribeRetries(list []Retry) string {
	var parts []string
	for i, x := range list {
		if i == maxDescribed {
			parts = append(parts, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s failed %d times in a row: again at %s", model.AllocName(x.Last.Group, x.Last.Index, 0),
			x.Failures, time.Unix(0, x.At).UTC().Format(time.RFC3339)))
	}
	return strings.Join(parts, "; ")
}

// retry returns the successor of an instance that has ended, or false if it
// failed and has to wait.
func (r *Reconciler) retry(in *instance) (Missing, bool) {
	at := r.retryAt(in.last)
	if at > r.now {
		return Missing{}, false
	}
	ended := in.ended
	if ended == nil {
		ended = in.last // it is disconnected
	}
	m := r.successor(ended, in.last)
	m.Since = max(m.Since, at)
	return m, true
}

// RetriesLater reports whether the last allocation of an instance failed and is
// not to be replaced yet. The job is then reconciled again at that time.
func (r *Reconciler) RetriesLater(last *model.Allocation) bool { return r.retryAt(last) > r.now }

// retryAt returns when the last allocation of an instance is replaced, 0 if at once.
func (r *Reconciler) retryAt(last *model.Allocation) int64 {
	if !hasFailed(last) || last.Incarnation == 0 {
		return 0
	}
	if !r.retriesKnown {
		r.retriesKnown = true
		r.findRetries()
	}
	at := r.retries[last]
	if at > r.now {
		r.recheckBy(at)
	}
	return at
}

func (r *Reconciler) findRetries() {
	for _, x := range Retries(r.job, r.allocs) {
		if x.At > r.now+int64(maxRetryDelay) {
			continue // its end time was recorded by a clock that was ahead
		}
		if r.retries == nil {
			r.retries = map[*model.Allocation]int64{}
		}
		if r.retries[x.Last] = x.At; x.At > r.now {
			r.waiting = append(r.waiting, x)
		}
	}
}
