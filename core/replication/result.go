package replication

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// The codes of a refusal.
const (
	CodeConflict = "conflict"  // a check, a plan or an idempotency key does not match the state
	CodeNotFound = "not_found" // the subject of the command does not exist
	CodeInvalid  = "invalid"   // the command can never be applied
	CodeExists   = "exists"    // the command creates something that exists
	CodeTooLarge = "too_large" // a limit of the state would be exceeded
)

// A Refusal is the reason why a committed command had no effect. It is part of
// applying an entry: every server refuses the same entries. Code and Message are
// stored in the state if the entry has an idempotency key.
type Refusal struct{ Code, Message string } //nolint:errname // it is a result, and an error only to some callers

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Refuse returns a refusal with a formatted message.
func Refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// A Result is the effect of an entry.
type Result struct {
	Index uint64   // of the entry; if Replayed, of the entry that was applied first
	Err   *Refusal // nil: the command was applied
	// ModifyIndex is that of the job or the binding of the command, as the entry left it.
	// It is below Index if the entry changed nothing. 0: the command has no such subject,
	// or deleted it.
	ModifyIndex uint64

	Evals    []*model.Evaluation  // written or derived
	Dropped  []apply.DroppedGroup // commit groups that no longer matched the state
	Freed    []string             // nodes and clusters that may have more free or evictable capacity; ascending
	Left     []string             // nodes that ceased to be eligible or were removed; ascending
	Returned []string             // nodes that were down and are ready again
	Placed   []string             // nodes on which allocations with labels were placed; ascending
	Replayed bool                 // the idempotency key was used before: this is the first entry's result
}

// Applied is an entry that was applied, as observers receive it. It is shared and
// read-only.
type Applied struct {
	Index  uint64  // of Snap
	Entry  *Entry  // nil: the state was replaced by a snapshot
	Result *Result // nil: the snapshot is not of an entry, but of Raft
	Snap   *state.Snapshot
}
