package process

import (
	"fmt"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
)

// backoff counts how often in a row the processes of a module were lost.
//
// Several processes of one module run side by side, and what kills one is apt
// to kill them all at once. That is one strike: a loss counts only if the
// process was started after the strike before it, in the same round.
type backoff struct {
	restart Restart

	mu        sync.Mutex
	failures  int
	epoch     int
	notBefore time.Time // no start before
	lastErr   error
}

// currentEpoch is the round in which a process is started now.
func (s *backoff) currentEpoch() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

// reset clears the strikes: a process of the round has answered a call.
func (s *backoff) reset(round int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if round == s.epoch {
		s.failures = 0
	}
}

// recordFailure counts a loss. It returns when the next start may be, and how many
// more losses are borne.
func (s *backoff) recordFailure(round int, why error) (wait time.Duration, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if round == s.epoch {
		s.epoch++
		s.failures++
		s.lastErr = why
		if s.failures > 1 {
			wait = min(s.restart.MaxDelay, s.restart.FirstDelay<<min(s.failures-2, 20))
		}
		s.notBefore = time.Now().Add(wait)
	}
	return wait, max(0, s.restart.MaxFailures-s.failures)
}

// wait waits until a process may be started, and refuses after too many
// strikes. It ends early when done is closed.
func (s *backoff) wait(done <-chan struct{}) *policy.Error {
	s.mu.Lock()
	count, until, last := s.failures, s.notBefore, s.lastErr
	s.mu.Unlock()
	if count >= s.restart.MaxFailures {
		return &policy.Error{
			Fault: policy.FaultGuest, Hint: "mend the policy and load it again",
			Err: fmt.Errorf("%w: %d times in a row, the last time because %w", ErrTooManyFailures, count, last),
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
