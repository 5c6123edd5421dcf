package raftshim

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"github.com/hashicorp/raft"
)

// Requests that this server does not need are acknowledged without Raft. They
// arrive late on a connection that the leader has given up, or because the leader
// backs off further and further, up to a snapshot, while a disk fails for some
// time. Raft installs such a snapshot: it empties the log, including entries that
// this server has acknowledged, and later panics when it needs an applied entry
// again and does not find it. For entries, Raft compares the preceding entry with
// the log only, and fails if a snapshot ended with that entry.
//
// Acknowledging is safe. A committed entry is the same under every leader of this
// term or a later one; and two logs with an entry of the same term at an index
// are identical up to that index.

// errOlderSnapshot refuses a snapshot that is older than the newest one here
// and may not be committed.
var errOlderSnapshot = errors.New("this server has a newer snapshot, which may not be committed yet")

// safeIndex returns the index up to which this server agrees with the
// cluster.
func (t *transportFilter) safeIndex() uint64 {
	return min(t.raft.AppliedIndex(), t.raft.CommitIndex())
}

// trimAppend returns the part of a request that Raft has to process: the entries
// beyond safeIndex, or none, which makes the request a heartbeat.
//
// It also lowers the leader's commit index to the last entry that the request
// shows to be identical. Raft would commit up to the end of its own log, which
// may continue with other entries than the leader's.
func (t *transportFilter) trimAppend(req *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	rest, shown := *req, req.PrevLogEntry
	if n := len(req.Entries); n > 0 {
		shown = req.Entries[n-1].Index
	}
	rest.LeaderCommitIndex = min(req.LeaderCommitIndex, shown)
	safe := t.safeIndex()
	if req.PrevLogEntry > safe || req.Term != t.raft.CurrentTerm() {
		return &rest
	}
	rest.PrevLogEntry, rest.PrevLogTerm = 0, 0 // nothing is left to compare
	rest.Entries = nil
	if i := slices.IndexFunc(req.Entries, func(l *raft.Log) bool { return l.Index > safe }); i >= 0 {
		rest.Entries = req.Entries[i:]
	}
	return &rest
}

// hasSnapshot reports whether this server has everything that a snapshot holds.
func (t *transportFilter) hasSnapshot(req *raft.InstallSnapshotRequest) bool {
	if req.Term < t.raft.CurrentTerm() {
		return false // Raft refuses it
	}
	if req.LastLogIndex <= t.safeIndex() {
		return true
	}
	var l raft.Log
	return t.logs.GetLog(req.LastLogIndex, &l) == nil && l.Term == req.LastLogTerm
}

// isOlder reports whether a snapshot is older than the newest one here. Raft would
// return to it while the state would not. The leader sends a newer one in time.
func (t *transportFilter) isOlder(req *raft.InstallSnapshotRequest) bool {
	metas, err := t.snapshots.List()
	return err == nil && len(metas) > 0 && req.LastLogIndex < metas[0].Index
}

// ackStale answers a snapshot without installing it: with success, or with the
// given refusal.
func (t *transportFilter) ackStale(rpc raft.RPC, refusal error) {
	_, err := io.Copy(io.Discard, rpc.Reader) // the connection's next request follows
	err = cmp.Or(refusal, err)
	rpc.Respond(&raft.InstallSnapshotResponse{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}, Term: t.raft.CurrentTerm(), Success: err == nil,
	}, err)
}
