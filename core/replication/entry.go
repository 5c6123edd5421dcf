package replication

import "github.com/cede-scheduler/cede/core/model"

// An Entry is one entry of the log. An entry that was proposed must not be changed,
// since observers share it.
type Entry struct {
	// Time is when everything in the entry happens, by the leader's clock, in Unix
	// nanoseconds.
	Time int64
	// Key is the idempotency key of the request that the entry answers: a second
	// entry with the same key has no effect. "" means none.
	Key string
	// Hash identifies the request. An entry with the same key and another hash is
	// refused as a conflict.
	Hash    [32]byte
	Command Command
	// Audit describes a change by an operator, without index and time, which are those of
	// the entry. It is stored if the command takes effect. nil: the entry is not audited.
	Audit *model.AuditRecord
}

// A Command is the effect of an entry: a pointer to one of the types of
// commands.go. A command that cannot be applied yields a Refusal in its Result
// and leaves the state unchanged. KindOf returns its kind.
type Command interface{ kind() Kind }
