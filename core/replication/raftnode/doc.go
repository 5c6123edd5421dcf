// Package raftnode runs one server's part in the replicated log: it encodes and
// proposes entries, applies committed ones through fsm, and takes, saves and
// restores snapshots. Raft itself runs in raftshim.
//
// It does not interpret commands, and it does not choose members: the server
// changes membership through Node.Raft.
//
// A Node is safe for concurrent use.
package raftnode
