package replication

import (
	"errors"
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// ErrNotLeader means that this server cannot write: nothing was. LeaderError
// says who can.
var ErrNotLeader = errors.New("this server is not the leader")

// ErrUnknownOutcome means that the entry may be in the log or may come to be.
// Send it again under the same idempotency key to find out.
var ErrUnknownOutcome = errors.New("the leadership was lost before the outcome was known")

// ErrTooLarge means that the entry is larger than the log takes. Nothing was
// written.
var ErrTooLarge = errors.New("entry is too large")

// ErrBusy means that the log took no more entries for a while: nothing was
// written, and the disk or the other servers are behind.
var ErrBusy = errors.New("the log takes no more entries for now")

// ErrClosed means that the node was closed.
var ErrClosed = errors.New("replication is closed")

// LeaderError is ErrNotLeader with what is known of the leader.
type LeaderError struct {
	ID, Addr string // "" when nobody leads
}

func (e *LeaderError) Error() string {
	if e.ID == "" {
		return ErrNotLeader.Error() + ", and none is known"
	}
	return fmt.Sprintf("%s: %s at %s is", ErrNotLeader, e.ID, e.Addr)
}

// Is makes errors.Is find ErrNotLeader.
func (e *LeaderError) Is(target error) bool { return target == ErrNotLeader }

// Codes of a refusal.
const (
	CodeConflict = "conflict"  // a check, a plan or an idempotency key does not hold
	CodeNotFound = "not_found" // what the command is about is not there
	CodeInvalid  = "invalid"   // it can never be applied
	CodeExists   = "exists"    // what it wants to make is there
	CodeTooLarge = "too_large" // it is larger than what is kept
)

// Refusal is why a committed command did nothing. It is part of applying: every
// server refuses the same.
type Refusal struct{ Code, Message string } //nolint:errname // it is an answer, and an error only to those who want one

func (r *Refusal) Error() string { return r.Message }

func refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Result is what an entry did.
type Result struct {
	Index    uint64               // of the entry; when Replayed, of the one that did it
	Err      *Refusal             // nil: it was done
	Evals    []*model.Evaluation  // what it wrote or derived
	Dropped  []apply.DroppedGroup // commit groups that no longer held
	Rooms    []string             // nodes on which room may have come up, or somebody may be evicted now, ascending
	Returned []string             // nodes that were down and no longer are
	Placed   []string             // nodes on which work with labels was placed, ascending
	Replayed bool                 // the idempotency key was known: this is what its first entry did
}

// Applied is what Config.Observe is told of an entry.
type Applied struct {
	Index  uint64
	Entry  *Entry  // nil: the state was replaced by a snapshot
	Result *Result // nil without Entry
	Snap   *state.Snapshot
}
