package replication

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// A leader that is gone is replaced within a timeout and a bit, whoever has the
// longer log and whoever is first in line; Raft by itself takes up to five.
func TestElections_BeginWhenTheLeaderIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, 3)
		defer c.close()
		var worst time.Duration
		for round := range 20 {
			lead := c.leader()
			c.settle()
			behind := c.members[round%3]
			if behind != lead { // it lacks the newest entries
				c.cut(true, behind)
				c.send(&Entry{Time: 1, Command: &RegisterJob{Job: countedJob("web", round)}})
				c.cut(false, behind)
			}
			gone := time.Now()
			c.halt(lead)
			for c.led(lead) == nil {
				time.Sleep(time.Millisecond)
			}
			worst = max(worst, time.Since(gone))
			c.start(lead)
			c.settle()
		}
		if worst > time.Second {
			t.Errorf("a leader was missing for %v", worst)
		}
	})
}

// led is who leads beside a server; nil: nobody.
func (c *cluster) led(beside *member) *member {
	for _, m := range c.members {
		if node := c.up(m); m != beside && node != nil && node.IsLeader() {
			return m
		}
	}
	return nil
}

// A server that was cut off, and asks for votes when it is back, gets none: the
// leader was heard all the time.
func TestElections_LeaveALeaderThatIsHeardAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, 3)
		defer c.close()
		lead := c.leader()
		term := lead.node.Term()
		for range 20 {
			for _, m := range c.members {
				if m != lead {
					c.cut(true, m)
					time.Sleep(5 * time.Second)
					c.cut(false, m)
					time.Sleep(200 * time.Millisecond)
				}
			}
		}
		if now := c.leader(); now != lead || now.node.Term() != term {
			t.Errorf("%s leads in term %d, it was %s in term %d", now.id, now.node.Term(), lead.id, term)
		}
	})
}

// What a request for a vote says is left alone while the leader is heard, and the
// request that was sent always is.
func TestBallots_AreFreeWhenTheLeaderIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 3)
		defer c.close()
		lead := c.leader()
		follower := c.members[0]
		if follower == lead {
			follower = c.members[1]
		}
		time.Sleep(time.Second)
		b := (Timing{}).judged(follower.trans)
		b.raft = follower.node.raft
		vote, before := &raft.RequestVoteRequest{}, &raft.RequestPreVoteRequest{}
		if b.judge(vote) != any(vote) || b.judge(before) != any(before) {
			t.Error("a request is changed though the leader is heard")
		}
		c.cut(true, follower)
		time.Sleep(quiet(500*time.Millisecond, 250*time.Millisecond))
		free, ok := b.judge(vote).(*raft.RequestVoteRequest)
		if !ok || !free.LeadershipTransfer || vote.LeadershipTransfer {
			t.Errorf("a vote: %+v, and %+v was sent", free, vote)
		}
		freeBefore, ok := b.judge(before).(*raft.RequestPreVoteRequest)
		if !ok || string(freeBefore.Addr) != lead.id || len(before.Addr) != 0 {
			t.Errorf("a pre-vote: %+v, and %+v was sent", freeBefore, before)
		}
	})
}
