package raftshim

import (
	"time"

	"github.com/hashicorp/raft"
)

// voteAfter returns how long a leader must be silent before a follower votes for
// another server. It is longer than the leader's lease, so that a leader without a
// majority has stepped down by then. It is shorter than the heartbeat timeout,
// since this follower may have heard from the leader later than the candidate.
func voteAfter(heartbeat, lease time.Duration) time.Duration { return max(lease, heartbeat*3/4) }

// rewriteVote returns a copy of a vote request without the reasons for which Raft would
// refuse it although no leader is heard: that a leader is set, or that the candidate is
// not a voter in this server's configuration. The candidate may be the only
// remaining server that has the entry which made it a voter. If its log is at
// least as new as this server's, it belongs to the cluster: a removed server has
// an older log than those that removed it.
//
// Other requests, and requests while a leader is heard, are returned unchanged.
func (t *transportFilter) rewriteVote(command any) any {
	leader, silent := t.leaderSilent()
	if leader != "" && !silent {
		return command
	}
	switch req := command.(type) {
	case *raft.RequestVoteRequest:
		rewritten := *req
		rewritten.LeadershipTransfer = req.LeadershipTransfer || silent
		if _, voter := t.voter(req.ID); !voter {
			rewritten.ID = nil // Raft skips the check without an ID
		}
		return &rewritten
	case *raft.RequestPreVoteRequest:
		rewritten := *req
		if silent {
			// Raft refuses unless the candidate's address is the leader's. It uses
			// the address for nothing else.
			rewritten.Addr = []byte(leader)
		}
		if other, voter := t.voter(req.ID); !voter {
			rewritten.ID = other
		}
		return &rewritten
	}
	return command
}

// voter reports whether a server is a voter in this server's configuration. If it
// is not, other is the ID of a server that is.
func (t *transportFilter) voter(id []byte) (other []byte, ok bool) {
	other = id
	f := t.raft.GetConfiguration()
	if f.Error() != nil {
		return other, true
	}
	for _, s := range f.Configuration().Servers {
		switch {
		case s.Suffrage != raft.Voter:
		case string(s.ID) == string(id):
			return id, true
		default:
			other = []byte(s.ID)
		}
	}
	return other, false
}

// leaderSilent returns the leader of this follower, and reports whether it
// has been silent for long enough to vote for another server.
func (t *transportFilter) leaderSilent() (address raft.ServerAddress, silent bool) {
	leader, _ := t.raft.LeaderWithID()
	return leader, leader != "" && t.raft.State() == raft.Follower && time.Since(t.raft.LastContact()) >= t.silence //nolint:forbidigo // Raft uses the real clock
}
