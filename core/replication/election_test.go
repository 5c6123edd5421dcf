package replication

import (
	"context"
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
		b := (Timing{}).inbox(follower.trans, nil, nil, nil)
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

// A server was made a voter, and who did it was lost before the others heard of it. They
// vote for it all the same: theirs are the older logs, so it is the only one they can elect.
func TestElections_OfAVoterThatIsNotKnownAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4, 3)
		defer c.close()
		lead := c.leader()
		fresh := &member{
			id: "s3", disk: raft.NewInmemCommitTrackingStore(), snaps: raft.NewInmemSnapshotStore(), keeps: newMemModules(),
		}
		c.members = append(c.members, fresh)
		c.start(fresh)
		if err := lead.node.Raft().AddNonvoter("s3", "s3", 0, 0).Error(); err != nil {
			t.Fatal(err)
		}
		c.settle()
		var others []*member
		for _, m := range c.members[:3] {
			if m != lead {
				others = append(others, m)
			}
		}
		knows, ignorant := others[0], others[1]
		c.part(lead, ignorant)
		if err := lead.node.Raft().AddVoter("s3", "s3", 0, 0).Error(); err != nil {
			t.Fatal(err)
		}
		c.part(lead, knows)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, _ = lead.node.Apply(ctx, &Entry{Time: 1, Command: &RegisterJob{Job: countedJob("web", 0)}}) // nobody knows
		c.halt(lead)
		if fresh.node.Raft().LastIndex() <= knows.node.Raft().LastIndex() || knows.node.Raft().LastIndex() <= ignorant.node.Raft().LastIndex() {
			t.Fatal("the logs are not what the test is about")
		}
		time.Sleep(10 * time.Second)
		if now := c.led(lead); now != fresh {
			t.Fatalf("%+v leads, want the new voter", now)
		}
		c.send(&Entry{Time: 1, Command: &RegisterJob{Job: countedJob("web", 1)}})
	})
}

// part cuts a server off from some others.
func (c *cluster) part(m *member, others ...*member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range others {
		m.trans.Disconnect(raft.ServerAddress(o.id))
		o.trans.Disconnect(raft.ServerAddress(m.id))
	}
}
