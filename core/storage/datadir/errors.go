package datadir

import (
	"errors"
	"fmt"
)

// ErrLocked means that another process uses the data directory.
var ErrLocked = errors.New("the data directory is in use")

// ErrNoSpace means that a write was refused before it began, since the disk is
// nearly full. It may be tried again once there is room.
var ErrNoSpace = errors.New("too little space on the disk")

// ErrFailed means that an earlier write failed, so that nobody knows what is on
// the disk: nothing more is written until the directory was opened again.
var ErrFailed = errors.New("the storage takes no more writes since one failed; restart once the disk is well")

// ErrNewer means that something was written by a later release, in a form that
// this one does not know. Nothing is wrong with it.
var ErrNewer = errors.New("a later release wrote it")

// ErrClosed means that the storage was closed.
var ErrClosed = errors.New("the storage is closed")

// DamageError says which part of a data directory is not as it was written,
// and the way back.
type DamageError struct {
	Part    string // what is damaged: raft log, snapshot, ...
	Path    string // where it is
	Problem string // what is wrong with it
	Remedy  string // what to do
	Err     error  // what the disk or the engine said; may be nil
}

func (e *DamageError) Error() string {
	what := e.Problem
	if e.Err != nil {
		what += ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s at %s: %s; %s", e.Part, e.Path, what, e.Remedy)
}

func (e *DamageError) Unwrap() error { return e.Err }

// The ways back. The id of a server goes with its directory, so that whoever
// comes back without its votes comes back as somebody else.
const (
	RemedyRejoin = "do not start this server on it: it may have forgotten votes and entries that others rely on. " +
		"Where other servers hold a quorum, move the whole data directory aside and start with an empty one: it comes back as a new server and gets everything from them. " +
		"A lone server restores a saved snapshot into an empty directory"
	RemedyGuard = "if `cede operator doctor` finds nothing else, truncate that file to no bytes: the log is then taken as it stands. Otherwise, and where others hold a quorum, " +
		"move the whole data directory aside and start with an empty one"
	RemedyStore = "the modules and the history are not needed to elect or to replicate: move that folder aside and start; " +
		"modules come back from other servers or by loading the policies again, the history begins anew"
	RemedyNewer = "start the release that wrote it, or a later one"
)
