package datadir

import (
	"errors"
	"fmt"
)

// ErrLocked means that another process uses the data directory.
var ErrLocked = errors.New("data directory is in use")

// ErrNoSpace means that a write was refused before it started because the disk is nearly
// full. Callers may retry once space is free.
var ErrNoSpace = errors.New("not enough disk space")

// ErrFailed means that an earlier write failed, so the contents of the disk are uncertain.
// No further writes are accepted until the directory is opened again.
var ErrFailed = errors.New("storage rejects writes after a failed write; repair the disk and restart")

// ErrNewer means that a later release wrote the data in a format that this release does not
// support. The data itself is intact.
var ErrNewer = errors.New("written by a later release")

// ErrClosed means that the storage was closed.
var ErrClosed = errors.New("storage is closed")

// A DamageError reports a part of a data directory with contents that differ from what was
// written, together with the remedy.
type DamageError struct {
	Part    string // damaged part: raft log, snapshot, ...
	Path    string // file or directory
	Problem string // description of the damage
	Remedy  string // next step for the operator
	Err     error  // error of the disk or of Badger; may be nil
}

func (e *DamageError) Error() string {
	// The order is fixed: part, path, problem, cause, remedy. Operators search for the part
	// first.
	what := e.Problem
	if e.Err != nil {
		what += ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s at %s: %s; %s", e.Part, e.Path, what, e.Remedy)
}

// Unwrap returns the cause, or nil.
func (e *DamageError) Unwrap() error { return e.Err }

// Remedies, the last part of a DamageError. The server ID belongs to the directory: a
// server that has lost its votes must rejoin under a new ID, because under the old one it
// could vote twice in the same term.
const (
	RemedyRejoin = "do not start this server on it: it may have lost votes and entries that other servers rely on. " +
		"If other servers hold a quorum, move the whole data directory aside and start with an empty one: the server joins under a new ID and receives the state. " +
		"If it is the only server, restore a saved snapshot into an empty directory"
	RemedyGuard = "if `cede operator doctor` reports no other damage, truncate that file to zero bytes to accept the log as it is. Otherwise, if other servers hold a quorum, " +
		"move the whole data directory aside and start with an empty one"
	RemedyStore = "modules and history are not needed to elect a leader or to replicate: move that directory aside and start; " +
		"modules are fetched from other servers or by loading the policies again, the history starts empty"
	RemedyVersion = "if no later release than this one has run on the directory, remove that file and start; otherwise start the release that ran last"
	RemedyNewer   = "start the release that wrote it, or a later one"
)
