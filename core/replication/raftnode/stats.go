package raftnode

import (
	"strconv"

	"github.com/hashicorp/raft"
)

// Stats describes a node at one moment.
type Stats struct {
	State        string // Leader, Follower, Candidate or Shutdown
	Term         uint64
	LastIndex    uint64 // of the log
	CommitIndex  uint64
	AppliedIndex uint64
	StateIndex   uint64 // of the last command in the state
	FSMPending   uint64 // batches that wait to be applied
	SnapshotAt   uint64 // index of the newest snapshot
	LastContact  string // since the last contact to the leader, in Raft's format
	Servers      []raft.Server
	Err          error // why this server stopped applying the log; nil: it did not
}

// Stats returns the node's current statistics.
func (n *Node) Stats() Stats {
	r := n.Raft()
	raw := r.Stats()
	number := func(key string) uint64 {
		v, _ := strconv.ParseUint(raw[key], 10, 64)
		return v
	}
	s := Stats{
		State: r.State().String(), Term: r.CurrentTerm(), LastIndex: r.LastIndex(), CommitIndex: r.CommitIndex(),
		AppliedIndex: r.AppliedIndex(), StateIndex: n.fsm.StateIndex(), FSMPending: number("fsm_pending"),
		SnapshotAt: number("last_snapshot_index"), LastContact: raw["last_contact"], Err: n.Err(),
	}
	if f := r.GetConfiguration(); f.Error() == nil {
		s.Servers = f.Configuration().Servers
	}
	return s
}
