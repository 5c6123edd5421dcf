package replication

import (
	"errors"
	"fmt"
)

var (
	// ErrNotLeader means that this server cannot write. Nothing was written. A
	// LeaderError names the leader.
	ErrNotLeader = errors.New("this server is not the leader")
	// ErrUnknownOutcome means that the entry is, or may yet be, written. Sending it
	// again under the same idempotency key returns the outcome.
	ErrUnknownOutcome = errors.New("the entry was submitted and not confirmed")
	// ErrTooLarge means that the entry exceeds MaxEntry. Nothing was written.
	ErrTooLarge = errors.New("entry is too large")
	// ErrBusy means that the log accepted no entry for some time, because the disk
	// or the other servers are slow. Nothing was written.
	ErrBusy = errors.New("the log is busy")
	// ErrClosed means that the node was closed, or stopped applying the log.
	ErrClosed = errors.New("replication is closed")
)

// A LeaderError is ErrNotLeader with the current leader, if one is known.
type LeaderError struct {
	ID, Addr string // "" if there is no leader
}

// Error returns the message, with the leader if one is known.
func (e *LeaderError) Error() string {
	if e.ID == "" {
		return ErrNotLeader.Error() + ", and no leader is known"
	}
	return fmt.Sprintf("%s: the leader is %s at %s", ErrNotLeader, e.ID, e.Addr)
}

// Is reports whether the target is ErrNotLeader.
func (e *LeaderError) Is(target error) bool { return target == ErrNotLeader }

// A FormatError means that this server cannot read an entry or a snapshot, or does
// not understand it. The entry must not be skipped: a server that skips it no
// longer has the state of the others.
type FormatError struct{ What string }

// Error returns the message.
func (e *FormatError) Error() string { return e.What }

// FormatErrorf returns a FormatError with a formatted message.
func FormatErrorf(format string, args ...any) error {
	return &FormatError{What: fmt.Sprintf(format, args...)}
}
