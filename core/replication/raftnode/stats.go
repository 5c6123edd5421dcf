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
	SnapshotAt   uint64 // index of the newest snapshot
	LastContact  string // since the last contact to the leader, in Raft's format
	Servers      []raft.Server
}

// Stats returns the node's current statistics.
func (n *Node) Stats() Stats {
	r := n.Raft()
	raw := r.Stats()
	// Raft publishes some values as text only.
	number := func(key string) uint64 {
		v, _ := strconv.ParseUint(raw[key], 10, 64)
		return v
	}
	s := Stats{
		State: r.State().String(), Term: r.CurrentTerm(), LastIndex: r.LastIndex(), CommitIndex: r.CommitIndex(),
		AppliedIndex: r.AppliedIndex(),
		SnapshotAt:   number("last_snapshot_index"), LastContact: raw["last_contact"],
	}
	if f := r.GetConfiguration(); f.Error() == nil {
		s.Servers = f.Configuration().Servers
	}
	return s
}
