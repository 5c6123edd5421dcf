package replication

import (
	"sync"
	"time"
)

// answerWithin bounds how long Close waits for what Raft was asked: a leader that
// reaches nobody steps down before, and answers; one whose disk hangs never does.
const answerWithin = 2 * time.Second

// questions is what Raft was asked and has not answered. It never answers what lies in
// its queues when it is shut down, and whoever waits for that waits for ever. So Close takes no
// more questions, and lets those be answered first that are under way.
type questions struct {
	mu    sync.Mutex
	open  int
	ended bool
	none  chan struct{} // closed once the last is answered; nil before end
}

// begin is whether a question may be asked. Then answered must be called.
func (q *questions) begin() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return false
	}
	q.open++
	return true
}

func (q *questions) answered() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open--
	if q.ended && q.open == 0 {
		close(q.none)
	}
}

// end takes no more questions, and waits a while for the answers to those that were asked.
func (q *questions) end(within time.Duration) {
	q.mu.Lock()
	if q.ended {
		q.mu.Unlock()
		return
	}
	q.ended, q.none = true, make(chan struct{})
	if q.open == 0 {
		close(q.none)
	}
	q.mu.Unlock()
	select {
	case <-q.none:
	case <-time.After(within): //nolint:forbidigo // Raft goes by the real clock
	}
}
