package raftshim

import "github.com/hashicorp/raft"

// RewriteVote rewrites a request as the filter of a follower does.
func RewriteVote(r *raft.Raft, transport raft.Transport, conf *raft.Config, command any) any {
	t := newTransportFilter(&Config{Raft: conf, Transport: transport}, nil, nil)
	t.raft = r
	return t.rewriteVote(command)
}

// For tests.
var VoteAfter = voteAfter
