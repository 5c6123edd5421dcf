// Package raftshim starts hashicorp/raft v1.8.0 with remedies for its defects.
// Each remedy and the defect behind it is a section of UPSTREAM.md.
//
// The interface is Start, which replaces raft.NewRaft, and the methods of Raft,
// which replace those of raft.Raft that are affected: Do for every call that
// returns a future, Leadership for raft.Raft.LeaderCh, Close for Shutdown. Everything
// else is reached through Raft.Raft, except that raft.Raft.Restore must not be called. Safety (terms, persisted votes, the comparison of logs) remains
// Raft's own: no remedy grants a vote or confirms an entry that Raft's paper
// would not.
//
// The package never reads an entry's data and never writes to the log on its
// own, apart from the deletions described at logStore. It imports nothing of
// this project, so that it can be dropped once the defects are fixed upstream:
// replace Start by raft.NewRaft.
//
// A Raft is safe for concurrent use.
package raftshim
