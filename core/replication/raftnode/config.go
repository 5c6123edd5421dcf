package raftnode

import (
	"log/slog"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/fsm"
	"github.com/cede-scheduler/cede/core/state"
)

// Config holds the dependencies of a Node. The stores remain the caller's to close.
type Config struct {
	ServerID  string // unique forever: an ID is never reused
	Log       raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
	Transport raft.Transport
	Store     *state.Store
	Modules   fsm.Modules
	// Observe is called with applied entries on the goroutine that applies them, in
	// the order of the log. It must not block. The first call may precede the return
	// of Open. nil: no observer.
	Observe func([]replication.Applied)
	// Timer is called before an entry is applied; the function that it returns is
	// called afterwards. nil: nothing is measured.
	Timer    func() func()
	Logger   *slog.Logger // nil: nothing is logged
	Timing   Timing
	Versions replication.Versions // that this server understands; zero: replication.Ours
}

func (c *Config) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

// raft returns Raft's configuration.
func (c *Config) raft() *raft.Config {
	conf := c.Timing.raft()
	conf.LocalID = raft.ServerID(c.ServerID)
	conf.Logger = NewLogger(c.logger())
	return conf
}

// fsm returns a new FSM. A replay uses it too, so that it applies entries exactly as a
// server does.
func (c *Config) fsm() *fsm.FSM {
	return fsm.New(&fsm.Config{
		Store: c.Store, Modules: c.Modules, Observe: c.Observe, Timer: c.Timer, Versions: c.Versions.OrOurs(), Logger: c.logger(),
	})
}
