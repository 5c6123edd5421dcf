package raftnode_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func register(job string, n int) *replication.Entry {
	return &replication.Entry{Time: 1, Command: &replication.RegisterJob{Job: replicationtest.NumberedJob(job, n)}}
}

// Under faults no acknowledged entry is lost or applied twice, and every server
// derives the same state.
func TestCluster_LosesNothingUnderFaults(t *testing.T) {
	seeds := soak.Count(6, 300)
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testFaults(t, uint64(seed)) })
		})
	}
}

func testFaults(t *testing.T, seed uint64) {
	c, random := replicationtest.NewCluster(t, replicationtest.Options{}), rand.New(rand.NewPCG(seed, 1))
	defer c.Close()
	const clients, entries = 4, 25
	var done sync.WaitGroup
	for client := range clients {
		done.Go(func() {
			for n := range entries {
				e := register(fmt.Sprint("job", client), n)
				e.Time, e.Key, e.Hash = int64(n), fmt.Sprint(client, "/", n), [32]byte{byte(n)}
				if r := c.Send(e); r.Err != nil {
					t.Errorf("refused: %v", r.Err)
				}
				time.Sleep(time.Duration(n%5) * 20 * time.Millisecond)
			}
		})
	}
	for range 30 {
		time.Sleep(200 * time.Millisecond)
		c.InjectFault(random)
	}
	c.Rejoin(c.Members...)
	done.Wait()
	c.WaitConverged()
	for client := range clients {
		key := model.JobKey{Namespace: "default", ID: fmt.Sprint("job", client)}
		if j := c.Members[0].Store.Snapshot().Job(key); j == nil || j.Version != entries-1 || j.Meta["n"] != fmt.Sprint(entries-1) {
			t.Errorf("%s: %+v, want version %d", key, j, entries-1)
		}
	}
}

func TestNode_LeadershipAndLeaderHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{})
		defer c.Close()
		leader := c.Leader()
		if isLeader := <-leader.Node.Leadership(); !isLeader {
			t.Error("the leader received false first")
		}
		e := &replication.Entry{Command: &replication.Bootstrap{ClusterID: "x"}}
		for _, m := range c.Members {
			if m == leader {
				continue
			}
			_, err := m.Node.Apply(t.Context(), e)
			var hint *replication.LeaderError
			if !errors.Is(err, replication.ErrNotLeader) || !errors.As(err, &hint) || hint.ID != leader.ID {
				t.Errorf("%s: apply: %v", m.ID, err)
			}
			for name, err := range map[string]error{
				"barrier": m.Node.Barrier(t.Context()),
				"verify":  m.Node.VerifyLeader(t.Context()),
			} {
				if !errors.Is(err, replication.ErrNotLeader) {
					t.Errorf("%s: %s: %v", m.ID, name, err)
				}
			}
		}
		result, err := leader.Node.Apply(t.Context(), e)
		if err != nil || result.Index != leader.Store.Snapshot().Index() {
			t.Errorf("result %+v, %v", result, err)
		}
		s := leader.Node.Stats()
		if s.State != "Leader" || s.Term == 0 || len(s.Servers) != 3 {
			t.Errorf("stats %+v", s)
		}
		if err := leader.Node.Transfer(t.Context()); err != nil {
			t.Error(err)
		}
		if isLeader := <-leader.Node.Leadership(); isLeader {
			t.Error("the former leader did not receive false")
		}
		next := c.Leader()
		if next == leader {
			t.Error("leadership was not transferred")
		}
		changes := next.Node.Leadership()
		c.Stop(next)
		for range changes { // what was not received yet, until the channel is closed
		}
	})
}

// The members are known after all servers restart, with and without a snapshot.
// raftshim/UPSTREAM.md, section 2.
func TestNode_KeepsMembersWhenAllServersRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{})
		defer c.Close()
		for round := range 3 {
			for n := range 10 {
				c.Send(register("j", n+round))
			}
			c.WaitConverged()
			for _, m := range c.Members {
				c.Stop(m)
			}
			for _, m := range c.Members {
				c.Start(m)
				if s := m.Node.Stats(); len(s.Servers) != 3 {
					t.Fatalf("round %d: %s has members %v", round, m.ID, s.Servers)
				}
			}
			if err := c.Leader().Node.TakeSnapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		c.WaitConverged()
	})
}

// An isolated leader's entries have an unknown outcome, and are lost.
func TestNode_OutcomeIsUnknownWithoutAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{})
		defer c.Close()
		leader := c.Leader()
		c.Isolate(leader)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := leader.Node.Apply(ctx, &replication.Entry{Command: &replication.SetVersion{Version: 1}})
		if !errors.Is(err, replication.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a deadline: %v", err)
		}
		_, err = leader.Node.Apply(t.Context(), &replication.Entry{Command: &replication.SetVersion{Version: 2}})
		if !errors.Is(err, replication.ErrUnknownOutcome) {
			t.Errorf("until leadership is lost: %v", err)
		}
		if r := c.Send(&replication.Entry{Command: &replication.Bootstrap{ClusterID: "of the others"}}); r.Err != nil {
			t.Error(r.Err)
		}
		c.Rejoin(leader)
		c.WaitConverged()
		if v := leader.Store.Snapshot().Meta().Version; v != 0 {
			t.Errorf("an entry without a majority is in the state: version %d", v)
		}
	})
}

func TestNode_RestoresTheSnapshotOfAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := replicationtest.NewCluster(t, replicationtest.Options{Members: 1})
		defer from.Close()
		module := []byte("module")
		v := replicationtest.PolicyVersion(module, "v1")
		for _, command := range []replication.Command{
			&replication.Bootstrap{ClusterID: "old", Version: 1},
			&replication.RegisterJob{Job: replicationtest.WebJob(50), Eval: replicationtest.Eval("e1", replicationtest.WebKey)},
			&replication.PutChunk{Digest: v.Digest, Data: module}, &replication.LoadPolicy{Version: v},
		} {
			from.Send(&replication.Entry{Command: command})
		}
		var file bytes.Buffer
		if err := from.Leader().Node.SaveSnapshot(t.Context(), &file); err != nil {
			t.Fatal(err)
		}
		info, err := snapshot.Inspect(bytes.NewReader(file.Bytes()))
		if err != nil || info.ClusterID != "old" || info.Jobs != 1 || info.Evals != 1 || info.Mods != 1 || info.Bytes != int64(file.Len()) {
			t.Fatalf("info %+v, %v", info, err)
		}

		to := replicationtest.NewCluster(t, replicationtest.Options{})
		defer to.Close()
		for n := range 20 {
			to.Send(register("other", n))
		}
		leader := to.Leader()
		before := leader.Store.Snapshot().Index()
		to.Restore(file.Bytes())
		to.WaitConverged()
		for _, m := range to.Members {
			sn := m.Store.Snapshot()
			if sn.Job(replicationtest.WebKey) == nil || sn.Meta().ClusterID != "old" || sn.Index() <= before {
				t.Errorf("%s: job %v of cluster %s at index %d, before %d", m.ID, sn.Job(replicationtest.WebKey), sn.Meta().ClusterID, sn.Index(), before)
			}
			if got, err := m.Modules.Get(v.Digest); err != nil || !bytes.Equal(got, module) {
				t.Errorf("%s has no module: %v", m.ID, err)
			}
		}
		for _, m := range to.Members { // a restart does not lose it
			to.Stop(m)
			to.Start(m)
		}
		to.WaitConverged()
	})
}

// The indexes of a restored state are later than those of the snapshot, and those of later
// writes are later still, also after a restart and on a server that applies the log later.
func TestNode_RestoreKeepsIndexesUnique(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := replicationtest.NewCluster(t, replicationtest.Options{Members: 1})
		defer from.Close()
		from.Register(40)
		var file bytes.Buffer
		if err := from.Leader().Node.SaveSnapshot(t.Context(), &file); err != nil {
			t.Fatal(err)
		}
		last := from.Leader().Store.Snapshot().Index()

		to := replicationtest.NewCluster(t, replicationtest.Options{Gapless: true})
		defer to.Close()
		late := to.Follower()
		to.Isolate(late)
		for range 2 { // the second one is behind the first one's indexes already
			restored := to.Restore(file.Bytes())
			if restored.Err != nil || restored.Index <= last {
				t.Fatalf("restored at index %d (%v), the snapshot is at %d", restored.Index, restored.Err, last)
			}
			next := to.Send(register("next", 1))
			if next.Index <= restored.Index || next.ModifyIndex != next.Index {
				t.Errorf("the entry after the restore at %d is at %d, and its job at %d", restored.Index, next.Index, next.ModifyIndex)
			}
			last = next.Index
		}
		to.Rejoin(late)
		to.Register(3)
		to.WaitConverged()
		for _, m := range to.Members {
			to.Stop(m)
			to.Start(m)
		}
		to.Register(20) // servers take snapshots of the restored state
		to.WaitConverged()
		if got := to.Leader().Store.Snapshot().Index(); got <= last {
			t.Errorf("the index is %d after %d", got, last)
		}
		to.Stop(late)
		to.Start(late)
		to.WaitConverged()
	})
}

// A leader that is cut off does not restore a snapshot that the others do not have.
func TestNode_RestoreIsLostWithItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{Gapless: true})
		defer c.Close()
		c.Register(5)
		var saved bytes.Buffer
		lost := c.Leader()
		if err := lost.Node.SaveSnapshot(t.Context(), &saved); err != nil {
			t.Fatal(err)
		}
		digest := replication.SnapshotDigest(sha256.Sum256(saved.Bytes()))
		c.Send(&replication.Entry{Command: &replication.PutChunk{Digest: digest, Data: saved.Bytes()}})
		c.Register(10)
		c.WaitConverged()
		before := snapshot.Hash(lost.Store.Snapshot())
		c.Isolate(lost)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := lost.Node.Apply(ctx, &replication.Entry{Command: &replication.RestoreState{Digest: digest}})
		if !errors.Is(err, replication.ErrUnknownOutcome) {
			t.Errorf("a restore that no other server has returned %v", err)
		}
		if snapshot.Hash(lost.Store.Snapshot()) != before {
			t.Error("the server that was cut off has replaced its state")
		}
		c.Register(60)
		c.Rejoin(lost)
		time.Sleep(time.Minute)
		c.Register(3)
		c.WaitConverged()
	})
}

// A server starts although its log has more entries than Raft can queue.
// raftshim/UPSTREAM.md, section 1.
func TestNode_StartsWithALongLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{Members: 1})
		defer c.Close()
		m := c.Members[0]
		c.Stop(m)
		last, err := m.Disk.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		data := codec.Encode(&replication.Entry{Command: &replication.SetVersion{Version: 1}})
		const entries = 200 * 128 // twice Raft's queue of batches
		logs := make([]*raft.Log, 0, entries)
		for i := range uint64(entries) {
			logs = append(logs, &raft.Log{Index: last + 1 + i, Term: 1, Type: raft.LogCommand, Data: data})
		}
		if err := errors.Join(m.Disk.StageCommitIndex(last+entries), m.Disk.StoreLogs(logs)); err != nil {
			t.Fatal(err)
		}
		c.Start(m)
		c.Leader()
		if err := m.Node.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		if at := m.Store.Snapshot().Index(); at != last+entries {
			t.Errorf("the state is at index %d, want %d", at, last+entries)
		}
	})
}

func TestNode_StopsWhenItCannotApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{Members: 1})
		defer c.Close()
		m := c.Leader()
		if err := m.Node.Raft().Apply([]byte{0xff}, time.Second).Error(); err != nil {
			t.Fatal(err)
		}
		<-m.Node.Done()
		synctest.Wait()
		time.Sleep(time.Second)
		if m.Node.Err() == nil || m.Node.IsLeader() {
			t.Errorf("the server continues: %v", m.Node.Err())
		}
		if _, err := m.Node.Apply(t.Context(), register("web", 0)); err == nil {
			t.Error("the server accepts entries")
		}
	})
}

func TestNode_SplitsLargeEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{Members: 1})
		defer c.Close()
		m := c.Leader()
		large := replicationtest.WebJob(50)
		large.Meta = map[string]string{"k": strings.Repeat("x", replication.MaxEntry)}
		_, err := m.Node.Apply(t.Context(), &replication.Entry{Command: &replication.RegisterJob{Job: large}})
		if !errors.Is(err, replication.ErrTooLarge) {
			t.Errorf("a large job: %v", err)
		}
		b := largeBatch(c, m, 100, 100)
		result, err := m.Node.Apply(t.Context(), &replication.Entry{Command: &replication.ApplyPlans{Batch: b}})
		if err != nil || len(result.Dropped) != 1 || result.Dropped[0] != (apply.DroppedGroup{Plan: 1, Group: 99}) {
			t.Fatalf("dropped %+v, %v", result, err)
		}
		sn := m.Store.Snapshot()
		if want := 2*100*100 - 100; sn.AllocCount() != want {
			t.Errorf("%d allocations, want %d", sn.AllocCount(), want)
		}
		evals := &replication.WriteEvals{}
		for i := range 12_000 {
			evals.Evals = append(evals.Evals, replicationtest.Eval(fmt.Sprintf("%08x-1f2e-4d3c-8b5a-%012x", 9, i), replicationtest.WebKey))
		}
		before := sn.Index()
		result, err = m.Node.Apply(t.Context(), &replication.Entry{Command: evals})
		if err != nil || len(result.Evals) != len(evals.Evals) || result.Index < before+2 {
			t.Errorf("%d evaluations at index %d after %d, %v", len(result.Evals), result.Index, before, err)
		}
		gang := largeBatch(c, m, 1, 25_000)
		if _, err := m.Node.Apply(t.Context(), &replication.Entry{Command: &replication.ApplyPlans{Batch: gang}}); !errors.Is(err, replication.ErrTooLarge) {
			t.Errorf("a gang that exceeds an entry: %v", err)
		}
	})
}

// largeBatch returns a batch of two plans with commit groups of placements on one
// node each. The node of the last group does not exist.
func largeBatch(c *replicationtest.Cluster, m *replicationtest.Member, groups, placements int) *apply.Batch {
	nodes := &replication.RegisterNodes{}
	for g := range groups {
		nodes.Nodes = append(nodes.Nodes, replicationtest.Node(fmt.Sprint("node", g)))
	}
	c.Send(&replication.Entry{Command: nodes})
	c.Send(register("large", groups))
	j := m.Store.Snapshot().Job(model.JobKey{Namespace: "default", ID: "large"})
	b := &apply.Batch{}
	for p := range 2 {
		plan := &model.Plan{EvalID: fmt.Sprint("e", p), Job: j.Key()}
		bp := apply.BatchPlan{Plan: plan}
		for g := range groups {
			var group model.CommitGroup
			for i := range placements {
				group.Placements = append(group.Placements, &model.Allocation{
					ID: fmt.Sprintf("%08x-%04x-4000-8000-%012x", p, g, i), Job: j, Group: j.Groups[0], NodeID: fmt.Sprint("node", g),
				})
			}
			plan.Groups = append(plan.Groups, group)
			bp.Groups = append(bp.Groups, g)
		}
		b.Plans = append(b.Plans, bp)
	}
	for _, a := range b.Plans[1].Plan.Groups[groups-1].Placements {
		a.NodeID = "missing"
	}
	return b
}

// gatedLog is a log that writes when the test permits it.
type gatedLog struct {
	*raft.InmemStore
	gate   chan struct{}
	writes int
}

func (s *gatedLog) StoreLogs(logs []*raft.Log) error {
	<-s.gate
	s.writes++
	return s.InmemStore.StoreLogs(logs)
}

// Entries that are proposed while the disk is busy are written together.
// raftshim/UPSTREAM.md, section 4.
func TestNode_GroupsEntriesIntoFewWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &gatedLog{InmemStore: raft.NewInmemStore(), gate: make(chan struct{}, 1000)}
		for range 2 { // the configuration, and the leader's first entry
			disk.gate <- struct{}{}
		}
		_, transport := raft.NewInmemTransport("s")
		node, err := raftnode.Open(raftnode.Config{
			ServerID: "s", Log: disk, Stable: disk.InmemStore, Snapshots: raft.NewInmemSnapshotStore(), Transport: transport, Store: state.New(),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := node.Close(); err != nil {
				t.Error(err)
			}
		}()
		if err := node.Bootstrap(raft.Server{ID: "s", Address: "s"}); err != nil {
			t.Fatal(err)
		}
		<-node.Leadership()
		const entries = 100
		results := make(chan error, entries)
		for range entries {
			go func() {
				_, err := node.Apply(t.Context(), &replication.Entry{Command: &replication.SetVersion{Version: 1}})
				results <- err
			}()
		}
		synctest.Wait()
		for range entries {
			disk.gate <- struct{}{}
		}
		for range entries {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if disk.writes > 8 {
			t.Errorf("%d entries took %d writes, want at most 8", entries, disk.writes)
		}
	})
}

// A server that does not support its cluster's version does not start.
func TestOpen_RefusesUnsupportedClusterVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, snaps := raft.NewInmemCommitTrackingStore(), raft.NewInmemSnapshotStore()
		open := func(v replication.Versions) (*raftnode.Node, error) {
			_, transport := raft.NewInmemTransport("s")
			return raftnode.Open(raftnode.Config{
				ServerID: "s", Log: disk, Stable: disk, Snapshots: snaps, Transport: transport, Store: state.New(), Versions: v,
			})
		}
		n, err := open(replication.Versions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Bootstrap(raft.Server{ID: "s", Address: "s"}); err != nil {
			t.Fatal(err)
		}
		<-n.Leadership()
		do := func(c replication.Command) {
			t.Helper()
			if r, err := n.Apply(t.Context(), &replication.Entry{Command: c}); err != nil || r.Err != nil {
				t.Fatalf("%v, %+v", err, r)
			}
		}
		do(&replication.Bootstrap{ClusterID: "c", Version: 1})
		r, err := n.Apply(t.Context(), &replication.Entry{Command: &replication.StopBinding{}})
		if err != nil || r.Err == nil || r.Err.Code != replication.CodeConflict {
			t.Errorf("a command that version 1 lacks: %+v, %v", r, err)
		}
		do(&replication.SetVersion{Version: replication.Newest})
		if err := n.TakeSnapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		for _, v := range []replication.Versions{
			{Oldest: 1, Newest: replication.Newest - 1}, {Oldest: replication.Newest + 1, Newest: replication.Newest + 2},
		} {
			n, err := open(v)
			if err == nil {
				_ = n.Close()
			}
			var format *replication.FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), fmt.Sprintf("the cluster is at version %d", replication.Newest)) {
				t.Errorf("versions %s: %v", v, err)
			}
		}
		if n, err = open(replication.Versions{}); err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
