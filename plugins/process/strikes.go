package process

import (
	"fmt"
	"sync"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
)

// strikes counts how often in a row the processes of a module were lost.
//
// Several processes of one module run side by side, and what kills one is apt
// to kill them all at once. That is one strike: a loss counts only if the
// process was started after the strike before it, in the same round.
type strikes struct {
	restart Restart

	mu     sync.Mutex
	count  int
	rounds int
	until  time.Time // no start before
	last   error
}

// round is the round in which a process is started now.
func (s *strikes) round() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rounds
}

// answered clears the strikes: a process of the round has answered a call.
func (s *strikes) answered(round int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if round == s.rounds {
		s.count = 0
	}
}

// failed counts a loss. It returns when the next start may be, and how many
// more losses are borne.
func (s *strikes) failed(round int, why error) (wait time.Duration, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if round == s.rounds {
		s.rounds++
		s.count++
		s.last = why
		if s.count > 1 {
			wait = min(s.restart.Most, s.restart.First<<min(s.count-2, 20))
		}
		s.until = time.Now().Add(wait)
	}
	return wait, max(0, s.restart.Strikes-s.count)
}

// admit waits until a process may be started, and refuses after too many
// strikes. It ends early when done is closed.
func (s *strikes) admit(done <-chan struct{}) *policy.Error {
	s.mu.Lock()
	count, until, last := s.count, s.until, s.last
	s.mu.Unlock()
	if count >= s.restart.Strikes {
		return &policy.Error{
			Fault: policy.FaultGuest, Hint: "mend the policy and load it again",
			Err: fmt.Errorf("%w: %d times in a row, the last time because %w", ErrStruckOut, count, last),
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
