package process

import (
	"runtime"
	"sync"
)

// spawner starts processes from one thread that lives as long as they do.
//
// The kernel ends a process with its parent, if asked to, but takes for the
// parent the thread that started it. Go's threads come and go, so a process
// that was started from just any of them could be killed at any time.
type spawner struct {
	mu      sync.Mutex
	jobs    chan func()
	stopped bool
}

// run calls f on that thread.
func (s *spawner) run(f func() error) error {
	jobs := s.queue()
	if jobs == nil {
		return ErrClosed
	}
	answer := make(chan error, 1)
	jobs <- func() { answer <- f() }
	return <-answer
}

// queue starts the thread with the first job, and is nil once it has ended.
func (s *spawner) queue() chan func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	if s.jobs == nil {
		s.jobs = make(chan func())
		go work(s.jobs)
	}
	return s.jobs
}

func work(jobs chan func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for job := range jobs {
		job()
	}
}

// stop ends the thread. Nobody calls run any longer, and no process is alive.
func (s *spawner) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.jobs != nil {
		close(s.jobs)
		s.jobs = nil
	}
}
