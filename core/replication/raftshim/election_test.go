package raftshim_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftshim"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
)

func register(job string, n int) *replication.Entry {
	return &replication.Entry{Time: 1, Command: &replication.RegisterJob{Job: replicationtest.NumberedJob(job, n)}}
}

// A failed leader is replaced within little more than a heartbeat timeout,
// whichever follower has the longer log. Raft takes up to five timeouts.
// UPSTREAM.md, section 7.
func TestElections_ReplaceFailedLeaderWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{})
		defer c.Close()
		var worst time.Duration
		for round := range 20 {
			leader := c.Leader()
			c.WaitConverged()
			if behind := c.Members[round%3]; behind != leader { // it lacks the newest entries
				c.Isolate(behind)
				c.Send(register("web", round))
				c.Rejoin(behind)
			}
			stopped := time.Now()
			c.Stop(leader)
			for c.LeaderOtherThan(leader) == nil {
				time.Sleep(time.Millisecond)
			}
			worst = max(worst, time.Since(stopped))
			c.Start(leader)
			c.WaitConverged()
		}
		if worst > time.Second {
			t.Errorf("the cluster had no leader for %v", worst)
		}
	})
}

// A server that was isolated and requests votes when it returns gets none: the
// leader was heard all the time.
func TestElections_DoNotReplaceAHealthyLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{})
		defer c.Close()
		leader := c.Leader()
		term := leader.Node.Term()
		for range 20 {
			for _, m := range c.Members {
				if m != leader {
					c.Isolate(m)
					time.Sleep(5 * time.Second)
					c.Rejoin(m)
					time.Sleep(200 * time.Millisecond)
				}
			}
		}
		if now := c.Leader(); now != leader || now.Node.Term() != term {
			t.Errorf("%s leads in term %d, want %s in term %d", now.ID, now.Node.Term(), leader.ID, term)
		}
	})
}

// Vote requests are unchanged while the leader is heard. The original request is
// never modified.
func TestRewriteVote_OnlyWhileTheLeaderIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{})
		defer c.Close()
		leader, follower := c.Leader(), c.Follower()
		time.Sleep(time.Second)
		conf := raft.DefaultConfig()
		conf.HeartbeatTimeout, conf.LeaderLeaseTimeout = 500*time.Millisecond, 250*time.Millisecond
		rewrite := func(command any) any {
			return raftshim.RewriteVote(follower.Node.Raft(), follower.Transport, conf, command)
		}
		vote, preVote := &raft.RequestVoteRequest{}, &raft.RequestPreVoteRequest{}
		if rewrite(vote) != any(vote) || rewrite(preVote) != any(preVote) {
			t.Error("a request is changed although the leader is heard")
		}
		c.Isolate(follower)
		time.Sleep(raftshim.VoteAfter(conf.HeartbeatTimeout, conf.LeaderLeaseTimeout))
		got, ok := rewrite(vote).(*raft.RequestVoteRequest)
		if !ok || !got.LeadershipTransfer || vote.LeadershipTransfer {
			t.Errorf("vote request %+v from %+v", got, vote)
		}
		gotPre, ok := rewrite(preVote).(*raft.RequestPreVoteRequest)
		if !ok || string(gotPre.Addr) != leader.ID || len(preVote.Addr) != 0 {
			t.Errorf("pre-vote request %+v from %+v", gotPre, preVote)
		}
	})
}

// A server was made a voter, and the leader that did it was lost before the others
// received the change. They vote for the new voter nevertheless: their logs are
// older, so that it is the only one they can elect. UPSTREAM.md, section 8.
func TestElections_ElectAVoterMissingFromOtherConfigurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{})
		defer c.Close()
		leader := c.Leader()
		added := c.AddMember("s3")
		if err := leader.Node.Raft().AddNonvoter("s3", "s3", 0, 0).Error(); err != nil {
			t.Fatal(err)
		}
		c.WaitConverged()
		var others []*replicationtest.Member
		for _, m := range c.Members[:3] {
			if m != leader {
				others = append(others, m)
			}
		}
		informed, uninformed := others[0], others[1]
		c.Disconnect(leader, uninformed)
		if err := leader.Node.Raft().AddVoter("s3", "s3", 0, 0).Error(); err != nil {
			t.Fatal(err)
		}
		c.Disconnect(leader, informed)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, _ = leader.Node.Apply(ctx, register("web", 0)) // the outcome is unknown
		c.Stop(leader)
		last := func(m *replicationtest.Member) uint64 { return m.Node.Raft().LastIndex() }
		if last(added) <= last(informed) || last(informed) <= last(uninformed) {
			t.Fatalf("logs end at %d, %d and %d: the test requires each to be longer than the next", last(added), last(informed), last(uninformed))
		}
		time.Sleep(10 * time.Second)
		if now := c.LeaderOtherThan(leader); now != added {
			t.Fatalf("%+v leads, want the new voter", now)
		}
		c.Send(register("web", 1))
	})
}
