package process

import (
	"fmt"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
)

// backoff counts consecutive losses of a module's processes.
//
// Several processes of a module run concurrently, and one cause often kills all of them.
// That counts as one failure: a loss only counts if the process was started in the current
// epoch, that is after the previous failure.
type backoff struct {
	restart Restart

	mu        sync.Mutex
	failures  int
	epoch     int
	notBefore time.Time // earliest time of the next start
	lastErr   error
}

// currentEpoch returns the epoch of a process that is started now.
func (b *backoff) currentEpoch() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.epoch
}

// reset clears the failures: a process of the epoch has answered a call.
func (b *backoff) reset(epoch int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if epoch == b.epoch {
		b.failures = 0
	}
}

// recordFailure counts a loss. It returns the delay of the next start, and how many more
// failures are tolerated.
func (b *backoff) recordFailure(epoch int, why error) (wait time.Duration, left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if epoch == b.epoch {
		b.epoch++
		b.failures++
		b.lastErr = why
		if b.failures > 1 {
			wait = min(b.restart.MaxDelay, b.restart.FirstDelay<<min(b.failures-2, 20))
		}
		b.notBefore = time.Now().Add(wait)
	}
	return wait, max(0, b.restart.MaxFailures-b.failures)
}

// wait waits until a process may be started. It returns ErrTooManyFailures after too many
// failures, and ends early if done is closed.
func (b *backoff) wait(done <-chan struct{}) *policy.Error {
	b.mu.Lock()
	count, until, last := b.failures, b.notBefore, b.lastErr
	b.mu.Unlock()
	if count >= b.restart.MaxFailures {
		return &policy.Error{
			Fault: policy.FaultGuest, Hint: "fix the policy and load it again",
			Err: fmt.Errorf("%w: %d times in a row, last: %w", ErrTooManyFailures, count, last),
		}
	}
	wait := time.NewTimer(time.Until(until))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-done:
		return closedFault()
	}
}
