package raftshim

import (
	"time"

	"github.com/hashicorp/raft"
)

// SetHeartbeatHandler implements raft.Transport. It stores Raft's handler, which run
// installs behind handleHeartbeat.
func (t *transportFilter) SetHeartbeatHandler(handle func(raft.RPC)) { t.heartbeat = handle }

// handleHeartbeat handles a heartbeat on the goroutine of its connection.
//
// Raft's handler runs there too, so that a follower answers while its main thread waits for
// the disk. A heartbeat of a newer term changes the term and the state, however, while the
// main thread of a leader or a candidate continues in its role until an event wakes it. If
// that event is a proposal, the former leader writes an entry with the term of the new
// leader, and the logs of both count as identical although they differ. A leader that was
// paused receives such a heartbeat when it continues.
//
// Raft's handler therefore receives only heartbeats that change neither term nor state. All
// others take the path of ordinary requests, to the main thread.
func (t *transportFilter) handleHeartbeat(rpc raft.RPC, stop <-chan struct{}) {
	if t.isRoutine(rpc.Command) {
		t.heartbeat(rpc)
		return
	}
	t.forward(rpc, stop)
}

// isRoutine reports whether a heartbeat comes from the leader that this server follows and
// has heard recently. The main thread does not start an election at the same moment: it
// requires a longer silence.
func (t *transportFilter) isRoutine(command any) bool {
	req, ok := command.(*raft.AppendEntriesRequest)
	return ok && req.Term == t.raft.CurrentTerm() && t.raft.State() == raft.Follower &&
		time.Since(t.raft.LastContact()) < t.silence //nolint:forbidigo // Raft uses the real clock
}
