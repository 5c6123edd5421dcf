package server

import "github.com/cede-scheduler/cede/core/clock"

// ticks returns how long this server has existed, in nanoseconds. Unlike the wall clock
// it does not jump: a leader whose clock is set forward must not declare every node
// down at once.
func (s *Server) ticks() int64 { return int64(clock.Since(s.cfg.Clock, s.start)) }

// establishedTerm returns the term of leadership that this server has established.
func (s *Server) establishedTerm() (number uint64, ok bool) {
	if t := s.term.Load(); t != nil {
		return t.number, true
	}
	return 0, false
}
