package membership

import (
	"testing"
	"time"
)

// Two servers that see different lists must not both bootstrap a cluster.
func TestBootstrapVote_ExcludesOtherLists(t *testing.T) {
	v, now := &bootstrapVote{}, time.Now()
	if !v.grant("a", now) || !v.grant("a", now.Add(time.Second)) {
		t.Error("the first list gets no vote")
	}
	if v.grant("b", now.Add(voteHolds)) {
		t.Error("another list gets a vote while the first one has it")
	}
	if !v.grant("b", now.Add(voteHolds+2*time.Second)) {
		t.Error("the vote does not expire")
	}
	if bootstrapWithin >= voteHolds {
		t.Error("a list may be used after its votes have expired")
	}
}
