package process

import (
	"runtime"
	"sync"
)

// spawner starts processes from one thread that lives as long as the host.
//
// The kernel can end a process together with its parent, but treats the starting thread as
// the parent. Go's threads end at any time, so a process started from an arbitrary thread
// could be killed at any time.
type spawner struct {
	mu      sync.Mutex
	jobs    chan func()
	stopped bool
}

// run calls f on that thread. It returns ErrClosed if the spawner is stopped.
func (s *spawner) run(f func() error) error {
	jobs := s.queue()
	if jobs == nil {
		return ErrClosed
	}
	answer := make(chan error, 1)
	jobs <- func() { answer <- f() }
	return <-answer
}

// queue returns the job queue and starts the thread if necessary. It returns nil after
// stop.
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

// stop ends the thread. The caller ensures that run is no longer called and no process is
// alive.
func (s *spawner) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.jobs != nil {
		close(s.jobs)
		s.jobs = nil
	}
}
