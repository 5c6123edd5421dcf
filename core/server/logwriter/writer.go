// Package logwriter writes commands into the replicated log and reads the state
// with the guarantee that only the leader can give.
//
// Every error that a Writer returns is an *apierror.Error with a text for users. It never
// retries: if the outcome is unknown, it reports that.
//
// A Writer is safe for concurrent use.
package logwriter

import (
	"context"
	"errors"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/state"
)

// Log is the part of the replicated log that a Writer uses: *raftnode.Node.
type Log interface {
	Apply(ctx context.Context, e *replication.Entry) (*replication.Result, error)
	IsLeader() bool
	Leader() (id, addr string)
	Term() uint64
	VerifyLeader(ctx context.Context) error
}

// A Writer proposes commands to the log of one server. All fields except Storage are
// required.
type Writer struct {
	ServerID string
	Log      Log
	Store    *state.Store
	Clock    clock.Clock
	// Established returns the term of leadership that this server has established. It
	// returns false if this server does not lead, or has been elected and has not yet
	// applied the entries of earlier leaders.
	Established func() (term uint64, ok bool)
	// Storage returns the reason why this server cannot write to its disk, or nil. A server
	// that cannot write cannot lead. nil: the storage cannot fail.
	Storage func() error
}

// Now returns the time that entries are stamped with, in Unix nanoseconds.
func (w *Writer) Now() int64 { return w.Clock.Now().UnixNano() }

// Snapshot returns the newest state of this server.
func (w *Writer) Snapshot() *state.Snapshot { return w.Store.Snapshot() }

// Propose writes a command to the log and waits until it is applied here. If the
// state refuses the command, the refusal is in the result. An error means that the
// command was not written, or that its outcome is unknown.
func (w *Writer) Propose(ctx context.Context, c replication.Command) (*replication.Result, error) {
	return w.ProposeEntry(ctx, &replication.Entry{Command: c})
}

// ProposeEntry is Propose for an entry. It sets the time of the entry.
func (w *Writer) ProposeEntry(ctx context.Context, e *replication.Entry) (*replication.Result, error) {
	e.Time = w.Now()
	result, err := w.Log.Apply(ctx, e)
	if err != nil {
		return nil, w.Unwritten(err)
	}
	return result, nil
}

// Commit is Propose, but returns a refusal as an error.
func (w *Writer) Commit(ctx context.Context, c replication.Command) (*replication.Result, error) {
	return w.CommitEntry(ctx, &replication.Entry{Command: c})
}

// CommitEntry is Commit for an entry. It sets the time of the entry.
func (w *Writer) CommitEntry(ctx context.Context, e *replication.Entry) (*replication.Result, error) {
	result, err := w.ProposeEntry(ctx, e)
	if err != nil {
		return nil, err
	}
	return result, Refusal(result)
}

// CommitIndex is Commit, but returns only the index of the entry. It returns the index of
// an entry that was refused together with the refusal.
func (w *Writer) CommitIndex(ctx context.Context, c replication.Command) (uint64, error) {
	result, err := w.Propose(ctx, c)
	if err != nil {
		return 0, err
	}
	return result.Index, Refusal(result)
}

// Refusal returns the refusal in a result as an error, or nil if the command took
// effect.
func Refusal(result *replication.Result) error {
	if result.Err == nil {
		return nil
	}
	return apierror.Refused(result.Err)
}

// Unwritten translates an error of the log for users.
func (w *Writer) Unwritten(err error) error {
	return w.explain(Unwritten(w.ServerID, w.Log, err))
}

// explain returns err, with the state of the disk as the reason if there is no leader and
// this server cannot write. A lone server would otherwise report an election that cannot
// succeed.
func (w *Writer) explain(err error) error {
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok || e.Code != apierror.CodeNoLeader || w.Storage == nil {
		return err
	}
	if problem := w.Storage(); problem != nil {
		return apierror.New(apierror.CodeNoLeader, "no cluster leader, and this server cannot lead: %v", problem).WithCause(err).
			WithHint("repair the storage of server %s; its requests then succeed again", w.ServerID)
	}
	return err
}

// Unwritten translates an error that the log of a server returned for users.
func Unwritten(serverID string, log interface{ Leader() (id, addr string) }, err error) error {
	switch {
	case errors.Is(err, replication.ErrUnknownOutcome): // first: it may wrap the reason, such as a context that ended
		return apierror.UnknownOutcome(err)
	case errors.Is(err, replication.ErrNotLeader):
		return notLeader(serverID, log, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return apierror.Interrupted(err)
	case errors.Is(err, replication.ErrTooLarge):
		return apierror.New(apierror.CodeTooLarge, "request is larger than the largest log entry").WithCause(err)
	case errors.Is(err, replication.ErrBusy):
		return apierror.New(apierror.CodeUnavailable, "log is overloaded: nothing was written").WithCause(err).
			WithHint("the disk or the other servers are behind: try again in a moment")
	default:
		return apierror.New(apierror.CodeUnavailable, "log does not accept writes: %v", err).WithCause(err)
	}
}

// notLeader returns the error that redirects a client to the leader.
func notLeader(serverID string, log interface{ Leader() (id, addr string) }, err error) *apierror.Error {
	id, addr := log.Leader()
	if id == "" || id == serverID {
		return apierror.New(apierror.CodeNoLeader, "no cluster leader").WithCause(err).
			WithHint("the servers are electing one, or too few of them can reach each other: try again")
	}
	return apierror.New(apierror.CodeNotLeader, "server %s is not the leader; the leader is %s at %s", serverID, id, addr).WithCause(err).
		WithDetails(map[string]any{"LeaderID": id, "LeaderAddr": addr})
}

// CheckLeader returns nil on the leader once it has applied everything that earlier
// leaders wrote. Every call that depends on the leader's state starts with it: a
// server that was just elected may lack entries acknowledged a moment ago.
func (w *Writer) CheckLeader() error {
	_, err := w.leaderTerm()
	return err
}

// leaderTerm returns the term of leadership that this server has established.
func (w *Writer) leaderTerm() (uint64, error) {
	if !w.Log.IsLeader() {
		return 0, w.explain(notLeader(w.ServerID, w.Log, replication.ErrNotLeader))
	}
	term, ok := w.Established()
	if !ok || term != w.Log.Term() {
		return 0, apierror.New(apierror.CodeNoLeader, "server %s was elected and has not established leadership yet", w.ServerID).
			WithHint("it is applying the entries of earlier leaders: try again in a moment")
	}
	return term, nil
}

// Consistent returns a state that contains everything that was written before the
// call: a majority confirms that this server leads in a term that it has
// established. It fails on every other server.
func (w *Writer) Consistent(ctx context.Context) (*state.Snapshot, error) {
	term, err := w.leaderTerm()
	if err != nil {
		return nil, err
	}
	if err := w.Log.VerifyLeader(ctx); err != nil {
		return nil, w.Unwritten(err)
	}
	// This server may have lost the lead and won it again, with entries of others in
	// between.
	if now := w.Log.Term(); now != term {
		return nil, w.Unwritten(replication.ErrNotLeader)
	}
	return w.Snapshot(), nil
}

// Check returns nil if check accepts the newest state. A failed check counts only on
// a consistent state: a deposed leader that has not noticed lacks the entries of its
// successor. Check is a hint for better errors; the state decides when the command is
// applied.
func (w *Writer) Check(ctx context.Context, check func(*state.Snapshot) error) error {
	if check(w.Snapshot()) == nil {
		return nil
	}
	snap, err := w.Consistent(ctx)
	if err != nil {
		return err
	}
	return check(snap)
}

// Find returns the object that get returns from the state. It returns an error with
// CodeNotFound and the formatted message if get returns nil on a consistent state.
func Find[T any](ctx context.Context, w *Writer, get func(*state.Snapshot) *T, format string, args ...any) (*T, error) {
	var x *T
	err := w.Check(ctx, func(snap *state.Snapshot) error {
		if x = get(snap); x == nil {
			return apierror.New(apierror.CodeNotFound, format, args...)
		}
		return nil
	})
	return x, err
}
