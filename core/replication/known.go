package replication

import (
	"cmp"
	"errors"
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
// What is committed whoever leads in this term or a later one has as it is here; and two
// logs that have an entry of the same term at an index are the same up to there. So the
// answer is that this server has it.
//
// Not all that is applied is committed. A leader that restores what an operator brings
// has it in its state before any other server does; where it is lost meanwhile, the others
// go on without. Such a server, when it is back, gets a newer snapshot of theirs; where
// there is none, it stops before it puts their entries on a state that is not theirs.

// known is up to where this server has what the cluster has, as far as it can tell.
func (b *inbox) known() uint64 { return min(b.raft.AppliedIndex(), b.raft.CommitIndex()) }

// errContradicted is of a server that has to be made anew.
var errContradicted = errors.New("the snapshot that this server's state stands on is not what the cluster has there: a restore by an operator " +
	"was not completed, and the others went on without it; remove this server from the cluster (cede operator raft remove), and start it with an empty data directory")

// contradicts is whether entries that came would go on to a state of this server on which
// the cluster does not stand: a snapshot that is not committed, in whose place the leader
// has another entry. A leader that has gone back behind it has the entries, and will send no
// snapshot.
func (b *inbox) contradicts(asked *raft.AppendEntriesRequest) bool {
	committed := b.raft.CommitIndex()
	if b.raft.AppliedIndex() <= committed || asked.Term < b.raft.CurrentTerm() {
		return false
	}
	metas, err := b.snapshots.List()
	if err != nil || len(metas) == 0 || metas[0].Index <= committed {
		return false
	}
	at, term := metas[0].Index, metas[0].Term
	if asked.PrevLogEntry == at && asked.PrevLogTerm != term {
		b.other = at
	}
	for _, l := range asked.Entries {
		if l.Index == at && l.Term != term {
			b.other = at
		}
	}
	return b.other == at && len(asked.Entries) > 0 && asked.Entries[0].Index <= at
}

// unknown is what Raft has to look at of entries that came: those behind what is known. Without
// any it is a sign of life. And no more is committed than they show to be the same here:
// Raft would commit all that the leader has, up to the end of a log that may go on with
// other entries.
func (b *inbox) unknown(asked *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	rest, shown := *asked, asked.PrevLogEntry
	if n := len(asked.Entries); n > 0 {
		shown = asked.Entries[n-1].Index
	}
	rest.LeaderCommitIndex = min(asked.LeaderCommitIndex, shown)
	known := b.known()
	if asked.PrevLogEntry > known || asked.Term != b.raft.CurrentTerm() {
		return &rest
	}
	rest.PrevLogEntry, rest.PrevLogTerm = 0, 0 // there is nothing to compare any more
	rest.Entries = nil
	if behind := slices.IndexFunc(asked.Entries, func(l *raft.Log) bool { return l.Index > known }); behind >= 0 {
		rest.Entries = asked.Entries[behind:]
	}
	return &rest
}

// knows is whether this server has what a snapshot holds.
func (b *inbox) knows(asked *raft.InstallSnapshotRequest) bool {
	if asked.Term < b.raft.CurrentTerm() {
		return false // Raft refuses it
	}
	if asked.LastLogIndex <= b.known() {
		return true
	}
	var l raft.Log
	return b.logs.GetLog(asked.LastLogIndex, &l) == nil && l.Term == asked.LastLogTerm
}

// older is whether a snapshot is older than the newest here, without being known: Raft
// would go back to it and the state would not. The leader sends a newer one in time.
func (b *inbox) older(asked *raft.InstallSnapshotRequest) bool {
	metas, err := b.snapshots.List()
	return err == nil && len(metas) > 0 && asked.LastLogIndex < metas[0].Index
}

// errOlder is the answer to such a snapshot.
var errOlder = errors.New("this server has a newer snapshot, of which it does not know yet whether the cluster stands on it")

// passOver answers a snapshot without taking it.
func (b *inbox) passOver(rpc raft.RPC, refused error) {
	_, err := io.Copy(io.Discard, rpc.Reader) // the next request comes behind it
	err = cmp.Or(refused, err)
	rpc.Respond(&raft.InstallSnapshotResponse{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}, Term: b.raft.CurrentTerm(), Success: err == nil,
	}, err)
}
