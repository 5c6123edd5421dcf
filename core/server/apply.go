package server

import (
	"context"
	"errors"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/replication"
)

// now is the time that entries are made with.
func (s *Server) now() int64 { return s.cfg.Clock.Now().UnixNano() }

// ticks is how long this server has been there, in nanoseconds. It goes on as before
// when the clock is set: by now a leader whose clock is set forward would take every
// node for silent at once.
func (s *Server) ticks() int64 { return int64(clock.Since(s.cfg.Clock, s.start)) }

// commit writes a command to the log. What the command itself is refused for is
// in the result; an error is an *Error and means that it was not written, or
// that nobody knows.
func (s *Server) commit(ctx context.Context, c replication.Command) (*replication.Result, error) {
	return s.commitEntry(ctx, &replication.Entry{Command: c})
}

func (s *Server) commitEntry(ctx context.Context, e *replication.Entry) (*replication.Result, error) {
	e.Time = s.now()
	result, err := s.cfg.Log.Apply(ctx, e)
	if err != nil {
		return nil, s.unwritten(err)
	}
	return result, nil
}

// do is commit where a refusal is the caller's error.
func (s *Server) do(ctx context.Context, c replication.Command) (*replication.Result, error) {
	return s.doEntry(ctx, &replication.Entry{Command: c})
}

func (s *Server) doEntry(ctx context.Context, e *replication.Entry) (*replication.Result, error) {
	result, err := s.commitEntry(ctx, e)
	if err != nil {
		return nil, err
	}
	return result, refusal(result)
}

// refusal is that of a command as an error; nil when it was done.
func refusal(result *replication.Result) error {
	if result.Err == nil {
		return nil
	}
	return refused(result.Err)
}

// unwritten is why nothing was written, in words for the caller.
func (s *Server) unwritten(err error) error {
	switch {
	case errors.Is(err, replication.ErrNotLeader):
		return s.notLeader(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return interrupted(err)
	case errors.Is(err, replication.ErrUnknownOutcome):
		e := fail(CodeUnavailable, "the leader changed while the request was written: it may have been done")
		e.Err = err
		return e.hint("send it again with the same Idempotency-Key, or look whether it was done")
	case errors.Is(err, replication.ErrTooLarge):
		e := fail(CodeTooLarge, "the request is larger than the log takes")
		e.Err = err
		return e
	case errors.Is(err, replication.ErrBusy):
		e := fail(CodeUnavailable, "the log takes no more writes for now: nothing was done")
		e.Err = err
		return e.hint("the disk or the other servers are behind: try again in a moment")
	default:
		e := fail(CodeUnavailable, "the log does not take writes: %v", err)
		e.Err = err
		return e
	}
}

// notLeader says who to ask instead.
func (s *Server) notLeader(err error) *Error {
	id, addr := s.cfg.Log.Leader()
	if id == "" || id == s.cfg.ID {
		e := fail(CodeNoLeader, "there is no leader")
		e.Err = err
		return e.hint("the servers are electing one, or too few of them can reach each other: try again")
	}
	e := fail(CodeNotLeader, "server %s is not the leader, %s at %s is", s.cfg.ID, id, addr)
	e.Err = err
	return e.with(map[string]any{"LeaderID": id, "LeaderAddr": addr})
}

// leads is nil on the leader once it has everything that earlier leaders wrote; every
// call that depends on what only the leader knows begins with it. One that was just
// elected may lack what was acknowledged a moment ago.
func (s *Server) leads() error {
	_, err := s.inOffice()
	return err
}

// inOffice is the term of leadership that this server is in, and took over.
func (s *Server) inOffice() (*term, error) {
	if !s.cfg.Log.IsLeader() {
		return nil, s.notLeader(replication.ErrNotLeader)
	}
	t := s.term.Load()
	if t == nil || t.number != s.cfg.Log.Term() {
		return nil, fail(CodeNoLeader, "server %s was elected and has not taken over yet", s.cfg.ID).
			hint("it reads what the leader before it wrote: try again in a moment")
	}
	return t, nil
}
