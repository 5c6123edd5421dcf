package app

import "github.com/hashicorp/raft"

// untracked is a log that does not tell Raft what was committed. Raft 1.8 applies
// what it is told of before it looks for the cluster's configuration, and then looks
// only behind it: a server that was stopped cleanly would come back without knowing
// who its servers are, and never lead. Without being told, it replays the log when
// it leads or hears a leader.
type untracked struct{ raft.LogStore }

// IsMonotonic is whether the log has no gaps.
func (u untracked) IsMonotonic() bool {
	m, ok := u.LogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}
