package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/rpc"
	"github.com/cede-scheduler/cede/core/server/membership"
)

func TestMembership_BootstrapsExpectedServers(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		id := w.snap().Meta().ClusterID
		time.Sleep(time.Minute)
		for _, m := range w.leader().server.Members() {
			if m.ClusterID != id || id == "" {
				t.Errorf("server %s has cluster ID %q, want %q", m.ID, m.ClusterID, id)
			}
		}
	})
}

func TestMembership_DoesNotBootstrapBeforeAllArePresent(t *testing.T) {
	runServersInPool(t, newMemberPool, 2, nil, func(w *harness) {
		time.Sleep(10 * time.Minute)
		for _, m := range w.members {
			if m.server.HasLog() {
				t.Fatalf("server %s has a log although a server is missing", m.id)
			}
		}
		late := w.member(w.cluster.Add("s0")) // with the lowest ID
		late.start()
		w.waitVoters("s0", "s1", "s2")
	})
}

func TestMembership_DoesNotBootstrapWithDifferentExpect(t *testing.T) {
	change := func(c *Config) {
		if c.ID == "s2" {
			c.Membership.(*poolGossip).p.setExpect("s2", 2)
			c.Expect = 2
		}
	}
	runServersInPool(t, newMemberPool, 3, change, func(w *harness) {
		time.Sleep(10 * time.Minute)
		for _, m := range w.members {
			if m.server.HasLog() {
				t.Errorf("server %s has a log", m.id)
			}
		}
		m := w.members[1]
		m.halt()
		w.change = nil
		m.start()
		w.waitVoters("s1", "s2", "s3")
	})
}

func (p *memberPool) setExpect(id string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[id]
	m.Expect = n
	p.members[id] = m
}

func TestMembership_PromotesStableServers(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		time.Sleep(time.Minute)
		w.pool.expect = 0
		fourth := w.member(w.cluster.Add("s4"))
		fourth.start()
		for range 100 {
			if _, ok := w.leader().server.RaftServer("s4"); ok {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if slices.Contains(w.leader().server.Voters(), "s4") {
			t.Error("a new server votes at once")
		}
		w.waitVoters("s1", "s2", "s3", "s4")
	})
}

func TestMembership_RestartedServerStaysAndDeadServerIsRemoved(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		m := w.follower()
		m.halt()
		time.Sleep(4 * time.Minute)
		if n := len(w.leader().server.Voters()); n != 3 {
			t.Errorf("%d voters after a short absence of a server", n)
		}
		m.start()
		time.Sleep(time.Minute)
		w.waitVoters("s1", "s2", "s3")
		m.halt()
		time.Sleep(7 * time.Minute)
		if slices.Contains(w.leader().server.Voters(), m.id) {
			t.Errorf("failed server %s still votes", m.id)
		}
		// The next server that fails stays: two voters are the intended minimum.
		other := w.follower()
		other.halt()
		time.Sleep(10 * time.Minute)
		other.start()
		m.start()
		w.waitVoters("s1", "s2", "s3")
	})
}

// A server that failed and is removed is no longer a member on any server, and does not
// block changes of keys. A failed server that may come back still is a member.
func TestMembership_RemovedServerLeavesGossip(t *testing.T) {
	runServersInPool(t, newMemberPool, 4, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3", "s4")
		down := w.follower()
		down.halt()
		lists := func() (n int) {
			for _, m := range w.members {
				if m != down && slices.ContainsFunc(m.server.Members(), func(l membership.Member) bool { return l.ID == down.id }) {
					n++
				}
			}
			return n
		}
		time.Sleep(time.Minute)
		if n := lists(); n != 3 {
			t.Errorf("%d servers list the failed server", n)
		}
		if err := w.leader().server.RemovePeer(w.ctx, down.id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if n := lists(); n != 0 {
			t.Errorf("%d servers list the removed server", n)
		}
		answers, err := w.leader().server.Keyring(w.ctx, rpc.KeyList, nil)
		if err != nil || len(answers) != 3 || slices.ContainsFunc(answers, func(a membership.KeyringAnswer) bool { return a.Err != nil }) {
			t.Errorf("keys: %+v, %v", answers, err)
		}
		down.start()
		w.waitVoters("s1", "s2", "s3", "s4")
		if n := lists(); n != 3 {
			t.Errorf("%d servers list the returned server", n)
		}
	})
}

func TestMembership_LeavingServerIsRemovedAtOnce(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		lead := w.leader()
		if err := lead.server.LeavePool(w.ctx); err != nil {
			t.Fatal(err)
		}
		lead.halt()
		var rest []string
		for _, m := range w.members {
			if m != lead {
				rest = append(rest, m.id)
			}
		}
		w.waitVoters(rest...)
		if err := w.leader().server.LeavePool(w.ctx); err != nil {
			t.Fatal(err)
		}
	})
}

// Raft tries only once to send a server the entry that removes it.
func TestMembership_LeavingServerConfirmsRemoval(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		w.pool.onLeave = func(id string) {
			for _, m := range w.members {
				m.Transport.Disconnect(raft.ServerAddress(id))
			}
		}
		lead := w.leader()
		if err := lead.server.LeavePool(w.ctx); err != nil {
			t.Error(err)
		}
		if _, ok := lead.server.RaftServer(lead.id); !ok {
			t.Error("Raft reported the removal, so the test shows nothing")
		}
		lead.halt()
	})
}

// A server that returns at another address is updated in the configuration of Raft.
func TestMembership_UpdatesAddressOfServer(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		m := w.follower()
		m.halt()
		m.Address = "moved"
		m.start()
		for range 600 {
			if r, _ := w.leader().server.RaftServer(m.id); r.Address == m.Address {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		r, ok := w.leader().server.RaftServer(m.id)
		if !ok || r.Address != m.Address || r.Suffrage != raft.Voter {
			t.Errorf("Raft's configuration has %+v", r)
		}
		time.Sleep(time.Minute)
		if got, want := m.server.Snapshot().Index(), w.snap().Index(); got != want {
			t.Errorf("the server has applied entry %d at its new address, and the leader entry %d", got, want)
		}
	})
}

// Workers of followers process evaluations, even if those of the leader are disabled.
func TestEvalQueue_FollowersProcessEvaluations(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		lead := w.leader()
		none := 0
		if err := lead.server.Reload(Reloadable{Workers: &none}); err != nil {
			t.Fatal(err)
		}
		w.addNodes(20)
		for i := range 20 {
			w.registerJob(coretest.Job(fmt.Sprint("job", i)).Priority(50).Count(2).Ask(300, 300, 0))
		}
		w.waitIdle()
		for i := range 20 {
			w.expectLiveCount(fmt.Sprint("job", i), 2)
		}
		if lead == w.leader() && w.pool.count(lead.id+" plan") < 20 {
			t.Errorf("%d plans came from other servers", w.pool.count(lead.id+" plan"))
		}
	})
}

// The leader changes while followers process evaluations, and the network loses responses.
// Everything that was registered is placed exactly once, and every evaluation terminates.
func TestEvalQueue_ChangesOfLeaderLoseNothing(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		w.addNodes(20)
		stop := make(chan struct{})
		var chaos sync.WaitGroup
		chaos.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(700 * time.Millisecond):
				}
				lead := w.leaderOrNil()
				if lead == nil {
					continue
				}
				if i%2 == 0 {
					ctx, cancel := context.WithTimeout(w.ctx, time.Second)
					_ = lead.cfg.Log.Transfer(ctx)
					cancel()
					continue
				}
				id := w.members[i/2%3].id
				w.pool.setCut(id, true)
				time.Sleep(time.Second)
				w.pool.setCut(id, false)
			}
		})
		for i := range 60 {
			w.registerJob(coretest.Job(fmt.Sprint("job", i)).Priority(50).Count(2).Ask(100, 100, 0))
		}
		close(stop)
		chaos.Wait()
		w.waitIdle()
		for i := range 60 {
			w.expectLiveCount(fmt.Sprint("job", i), 2)
		}
	})
}

func TestRPCHandler_RequiresLeaderAndServerCommands(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		lead, other := w.leader(), w.follower()
		_, err := other.server.RPCHandler().Dequeue(w.ctx, 1, time.Second)
		var away *rpc.NotLeaderError
		if !errors.As(err, &away) || away.LeaderID != lead.id || away.Term == 0 {
			t.Errorf("follower returns %v, want NotLeaderError with the leader and term", err)
		}
		entry := codec.Encode(&replication.Entry{Command: &replication.DeleteNodes{IDs: []string{"n1"}}})
		if _, err := lead.server.RPCHandler().Apply(w.ctx, entry); err == nil {
			t.Error("the leader accepted a node deletion from a server")
		}
		// A waiting call ends when leadership is lost.
		done := make(chan error, 1)
		go func() {
			_, err := lead.server.RPCHandler().Dequeue(w.ctx, 1, time.Hour)
			done <- err
		}()
		time.Sleep(time.Second)
		if err := lead.node.Transfer(w.ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-done; !errors.As(err, &away) {
			t.Errorf("the waiting call returned %v", err)
		}
	})
}

// A server that lags behind, for example because its disk is full, leaves evaluations to
// other servers.
func TestEvalQueue_LaggingServerDequeuesNothing(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		behind := w.follower()
		for _, m := range w.members {
			if m != behind {
				m.server.pool.Resize(0)
			}
		}
		if _, err := behind.server.queue.States().WaitIndex(w.ctx, w.snap().Index()+3); err == nil {
			t.Error("the state reached an index that does not exist")
		}
		time.Sleep(time.Minute) // waiting calls return
		key := func(n int) string { return fmt.Sprint("job", n) }
		w.registerJob(coretest.Job(key(0)).Ask(10, 10, 0))
		time.Sleep(time.Minute)
		stats := w.leader().server.broker.Stats()
		if total := stats.Total(); total.Ready != 1 {
			t.Errorf("counts for one evaluation: %+v", total)
		}
		for n := 1; n < 4; n++ { // the missing entries
			w.registerJob(coretest.Job(key(n)).Ask(10, 10, 0))
		}
		w.waitIdle()
	})
}

// A worker that lost its delivery, for example because of a change of leader, reports that
// everything is placed, based on an old snapshot. Blocked evaluations of the job must stay
// blocked.
func TestRPCHandler_RejectsResultsOfVoidDelivery(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		w.registerJob(coretest.Job("waits").Ask(500, 500, 0)) // there is no node
		w.waitIdle()
		key := model.JobKey{Namespace: model.DefaultNamespace, ID: "waits"}
		for _, e := range w.snap().EvalsOfJob(key) {
			late := *e
			late.Status, late.Failed, late.Queued = model.EvalComplete, nil, nil
			err := w.leader().server.RPCHandler().WriteEvals(w.ctx, rpc.EvalResults{
				EvalID: e.ID, Token: 7, Evals: codec.EncodeEvals([]*model.Evaluation{&late}),
			})
			if !errors.Is(err, broker.ErrNotOutstanding) {
				t.Errorf("results of a void delivery: %v", err)
			}
		}
		w.waitIdle()
		if !w.hasBlockedEval(key) {
			t.Error("the job has no blocked evaluation")
		}
	})
}

func TestPolicies_RequireChecksOfAllVoters(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		for _, m := range w.members {
			if got := slices.Sorted(slices.Values(m.server.policyConfig().Voters())); !slices.Equal(got, []string{"s1", "s2", "s3"}) {
				t.Errorf("server %s requires checks of %v", m.id, got)
			}
		}
		other := w.follower()
		result, err := other.server.policyConfig().Log.Apply(w.ctx, &replication.Entry{
			Command: &replication.CheckPolicy{Version: "sha256:none", Server: other.id, Check: model.PolicyCheck{OK: true}},
		})
		if err != nil || result.Err == nil || result.Err.Code != replication.CodeNotFound {
			t.Errorf("check of an unknown version: %+v, %v", result, err)
		}
	})
}

// A failed voter counts as a voter, but not as alive.
func TestMembership_CountsVotersAlive(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		expect := func(voters, alive int) {
			t.Helper()
			if v, a := w.leader().server.CountVoters(); v != voters || a != alive {
				t.Errorf("%d voters, %d of them alive, want %d and %d", v, a, voters, alive)
			}
		}
		expect(3, 3)
		gone := w.follower()
		gone.halt()
		expect(3, 2)
		gone.start()
		w.leader()
		expect(3, 3)
	})
}

// A new member gossips before it serves calls. It is added soon after it responds, not only
// at the next periodic comparison.
func TestMembership_RetriesUnresponsiveNewMember(t *testing.T) {
	runServersInPool(t, newMemberPool, 3, nil, func(w *harness) {
		w.waitVoters("s1", "s2", "s3")
		time.Sleep(90 * time.Second)
		w.pool.expect = 0
		w.pool.refuseCalls("s4", 6*time.Second)
		fourth := w.member(w.cluster.Add("s4"))
		began := time.Now()
		fourth.start()
		for {
			if _, ok := w.leader().server.RaftServer("s4"); ok {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took < 6*time.Second || took > 9*time.Second {
			t.Errorf("server that responds after 6s was added after %v", took)
		}
		w.waitVoters("s1", "s2", "s3", "s4")
	})
}

// refuseCalls makes a server that is alive refuse calls for a while.
func (p *memberPool) refuseCalls(id string, within time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusedUntil[id] = time.Now().Add(within)
}
