package replication

import (
	"io"
	"slices"

	"github.com/hashicorp/raft"
)

// What a server has already does not get to its Raft. What a leader sent may come late, by
// a connection that it has long given up; and where a disk fails for a while, the
// leader goes back further and further, up to a snapshot of what is there. Raft takes such a
// snapshot: it empties the log behind it, of entries too that this server said it has,
// and wants to apply again what it had applied and finds no more, which ends the
// process. Of entries it looks in the log alone for the one before, which is not there
// where a snapshot ended with it.
//
// What is applied is committed, so whoever leads in this term or a later one has it as
// it is here; and two logs that have an entry of the same term at an index are the same up to
// there. So the answer is that this server has it.

// unknown is what Raft has to look at of entries that came: those behind what is applied. Without
// any it is a sign of life. And no more is committed than they show to be the same here:
// Raft would commit all that the leader has, up to the end of a log that may go on with
// other entries.
func (b *inbox) unknown(asked *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	rest, shown := *asked, asked.PrevLogEntry
	if n := len(asked.Entries); n > 0 {
		shown = asked.Entries[n-1].Index
	}
	rest.LeaderCommitIndex = min(asked.LeaderCommitIndex, shown)
	applied := b.raft.AppliedIndex()
	if asked.PrevLogEntry > applied || asked.Term != b.raft.CurrentTerm() {
		return &rest
	}
	rest.PrevLogEntry, rest.PrevLogTerm = 0, 0 // there is nothing to compare any more
	rest.Entries = nil
	if behind := slices.IndexFunc(asked.Entries, func(l *raft.Log) bool { return l.Index > applied }); behind >= 0 {
		rest.Entries = asked.Entries[behind:]
	}
	return &rest
}

// knows is whether this server has what a snapshot holds.
func (b *inbox) knows(asked *raft.InstallSnapshotRequest) bool {
	if asked.Term < b.raft.CurrentTerm() {
		return false // Raft refuses it
	}
	if asked.LastLogIndex <= b.raft.AppliedIndex() {
		return true
	}
	var l raft.Log
	return b.logs.GetLog(asked.LastLogIndex, &l) == nil && l.Term == asked.LastLogTerm
}

func (b *inbox) hasSnapshot(rpc raft.RPC) {
	_, err := io.Copy(io.Discard, rpc.Reader) // the next request comes behind it
	rpc.Respond(&raft.InstallSnapshotResponse{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}, Term: b.raft.CurrentTerm(), Success: err == nil,
	}, err)
}
