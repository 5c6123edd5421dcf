package replication

import (
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/state"
)

// Modules keeps policy modules on this server: storage.Blobs. Putting what is
// there already does nothing.
type Modules interface {
	PutChunk(digest string, offset int64, data []byte) error
	// Finish checks that all of a module is there and is what its digest says.
	Finish(digest string, size int64) error
	Get(digest string) ([]byte, error)
	Delete(digest string) error
}

// Config is what a Node works with.
type Config struct {
	ServerID  string // unique for all time
	Log       raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
	Transport raft.Transport
	Store     *state.Store
	Modules   Modules
	Observe   func([]Applied) // nil: nobody is told; the first call may come before Open returns
	Timer     func() func()   // is called before an entry is applied, and what it gives after that; nil: nobody measures
	Logger    *slog.Logger    // nil: nothing is logged
	Timing    Timing
	Versions  Versions // that this server understands; zero: Ours
}

// Timing is how patient the servers are with each other, and when the log is
// cut. A zero field means the default.
type Timing struct {
	Heartbeat time.Duration // without word of the leader before an election; default: 500ms
	Election  time.Duration // how long an election may take; default: Heartbeat
	Lease     time.Duration // a leader that reaches no majority steps down; default: Heartbeat / 2
	Commit    time.Duration // an idle leader sends what is committed; default: 20ms
	Apply     time.Duration // how long an entry waits for its turn to be written; default: 10s

	SnapshotInterval  time.Duration // how often it is looked whether a snapshot is due; default: 2m
	SnapshotThreshold uint64        // entries that make one due; default: 8192
	TrailingLogs      uint64        // entries that stay in the log behind a snapshot; default: 10240
}
