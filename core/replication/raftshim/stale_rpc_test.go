package raftshim_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/replication/replicationtest"
)

// transit is a snapshot on its way between servers.
type transit struct {
	meta *raft.SnapshotMeta
	data []byte
}

// takeSnapshot takes a snapshot of a member and returns it.
func takeSnapshot(t *testing.T, m *replicationtest.Member) transit {
	t.Helper()
	if err := m.Node.Raft().Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	list, err := m.Snapshots.List()
	if err != nil {
		t.Fatal(err)
	}
	meta, r, err := m.Snapshots.Open(list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return transit{meta, data}
}

// direct returns a connection to a member that no fault affects.
func direct(to *replicationtest.Member) *raft.InmemTransport {
	_, transport := raft.NewInmemTransport("direct")
	transport.Connect(raft.ServerAddress(to.ID), to.Transport)
	return transport
}

func header(m *replicationtest.Member) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(m.ID), Addr: []byte(m.ID)}
}

// install sends a snapshot on behalf of the leader.
func install(s transit, leader, to *replicationtest.Member) (resp raft.InstallSnapshotResponse, err error) {
	transport := direct(to)
	defer transport.DisconnectAll()
	err = transport.InstallSnapshot(raft.ServerID(to.ID), raft.ServerAddress(to.ID), &raft.InstallSnapshotRequest{
		RPCHeader: header(leader), SnapshotVersion: s.meta.Version, Term: leader.Node.Term(),
		LastLogIndex: s.meta.Index, LastLogTerm: s.meta.Term, Configuration: raft.EncodeConfiguration(s.meta.Configuration),
		ConfigurationIndex: s.meta.ConfigurationIndex, Size: int64(len(s.data)),
	}, &resp, bytes.NewReader(s.data))
	return resp, err
}

// resend sends a member an entry that it has, on behalf of the leader.
func resend(t *testing.T, c *replicationtest.Cluster, to *replicationtest.Member, index, termBefore uint64) {
	t.Helper()
	var l raft.Log
	if err := to.Disk.GetLog(index, &l); err != nil {
		t.Fatal(err)
	}
	leader, transport := c.Leader(), direct(to)
	defer transport.DisconnectAll()
	var resp raft.AppendEntriesResponse
	err := transport.AppendEntries(raft.ServerID(to.ID), raft.ServerAddress(to.ID), &raft.AppendEntriesRequest{
		RPCHeader: header(leader), Term: leader.Node.Term(), PrevLogEntry: index - 1, PrevLogTerm: termBefore,
		Entries: []*raft.Log{&l}, LeaderCommitIndex: leader.Node.Raft().CommitIndex(),
	}, &resp)
	if err != nil || !resp.Success {
		t.Fatalf("an entry that the server has: %+v, %v", resp, err)
	}
}

// logRange returns the first and last index on a member's disk.
func logRange(t *testing.T, m *replicationtest.Member) (first, last uint64) {
	t.Helper()
	first, err := m.Disk.FirstIndex()
	if err != nil {
		t.Fatal(err)
	}
	if last, err = m.Disk.LastIndex(); err != nil {
		t.Fatal(err)
	}
	return first, last
}

// A snapshot arrives that was in transit for long. Raft would empty the log,
// including entries that this server has acknowledged, and then panic when it needs
// them again, or lose them. UPSTREAM.md, section 9.
func TestStaleRPC_LateSnapshotLeavesTheLogUnchanged(t *testing.T) {
	for name, gapless := range map[string]bool{"log with gaps": false, "gapless log": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := replicationtest.NewCluster(t, replicationtest.Options{Gapless: gapless})
				defer c.Close()
				c.Register(10)
				leader, follower := c.Leader(), c.Follower()
				c.WaitConverged()
				old := takeSnapshot(t, leader)
				c.Register(3)
				c.WaitConverged()
				time.Sleep(time.Second)
				first, last := logRange(t, follower)
				for range 2 {
					if resp, err := install(old, leader, follower); err != nil || !resp.Success {
						t.Fatalf("a snapshot that the server has: %+v, %v", resp, err)
					}
				}
				if f, l := logRange(t, follower); f > first && f > old.meta.Index+1 || l < last {
					t.Errorf("the log holds %d to %d, want %d to %d", f, l, first, last)
				}
				c.Register(30)
				time.Sleep(10 * time.Second) // snapshots are taken and logs truncated
				for range 2 {
					if _, err := install(old, leader, follower); err != nil {
						t.Fatal(err)
					}
				}
				c.Register(2)
				c.WaitConverged()
				c.Stop(follower)
				c.Start(follower)
				c.WaitConverged()
			})
		})
	}
}

// A leader that has backed off far sends entries that the server already has, with its
// commit index. Raft would commit the entries behind those up to that index, although they
// may differ from the entries of the leader. UPSTREAM.md, section 10.
func TestStaleRPC_CommitsOnlyMatchingEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{Gapless: true})
		defer c.Close()
		c.Register(5)
		c.WaitConverged()
		isolated := c.Leader()
		common, term := isolated.Node.Raft().LastIndex(), isolated.Node.Term()
		c.Isolate(isolated)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for i := range 3 { // few, so that the entry before them remains in the log
			go func() { _, _ = isolated.Node.Apply(ctx, register("alone", i)) }()
		}
		time.Sleep(5 * time.Second)
		if last := isolated.Node.Raft().LastIndex(); last <= common {
			t.Fatalf("the isolated log ends at %d, want more than %d", last, common)
		}
		c.Register(6) // other entries at the same indexes
		for range 2 { // the first one conveys the term
			resend(t, c, isolated, common, term)
		}
		if at := isolated.Node.Raft().CommitIndex(); at > common {
			t.Errorf("the commit index is %d, but the server shares entries up to %d only", at, common)
		}
		c.Rejoin(isolated)
		time.Sleep(time.Minute)
		c.WaitConverged()
	})
}

// A leader continues after the entry that a snapshot ended with. UPSTREAM.md,
// section 12.
func TestStaleRPC_ContinuesAfterASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{Gapless: true})
		defer c.Close()
		c.Register(10)
		c.WaitConverged()
		behind := c.Follower()
		c.Isolate(behind)
		c.Register(40)
		time.Sleep(5 * time.Second)
		s := takeSnapshot(t, c.Leader())
		c.Rejoin(behind)
		if resp, err := install(s, c.Leader(), behind); err != nil || !resp.Success {
			t.Fatalf("a snapshot that the server lacks: %+v, %v", resp, err)
		}
		c.Register(10)
		c.WaitConverged()
		first, last := logRange(t, behind)
		if first <= s.meta.Index || last != c.Leader().Node.Raft().LastIndex() {
			t.Fatalf("the log holds %d to %d after a snapshot of %d", first, last, s.meta.Index)
		}
		resend(t, c, behind, first, s.meta.Term)
	})
}

// A former leader has more entries of its own than the others retain behind their
// snapshot. It gets the snapshot and continues from there. Raft would send the
// snapshot in a loop until it reaches as far as that log did. UPSTREAM.md,
// section 9.
func TestLogStore_ReplacesLeftoverEntriesAfterASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := replicationtest.NewCluster(t, replicationtest.Options{Gapless: true})
		defer c.Close()
		c.Register(10)
		former := c.Leader()
		c.WaitConverged()
		c.Isolate(former)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for i := range 60 {
			go func() { _, _ = former.Node.Apply(ctx, register("alone", i)) }()
		}
		time.Sleep(5 * time.Second)
		own := former.Node.Raft().LastIndex()
		c.Register(20)
		time.Sleep(10 * time.Second) // the others take a snapshot
		leader := c.Leader()
		if leader == former || leader.Node.Stats().SnapshotAt == 0 || leader.Node.Raft().LastIndex() >= own {
			t.Fatalf("%s leads up to %d, the log of %s ends at %d", leader.ID, leader.Node.Raft().LastIndex(), former.ID, own)
		}
		c.Rejoin(former)
		time.Sleep(time.Minute) // Raft's back-off has grown
		c.Send(register("web", 1))
		time.Sleep(5 * time.Second)
		if got, want := former.Node.Raft().LastIndex(), leader.Node.Raft().LastIndex(); got != want {
			t.Errorf("the log ends at %d, want %d", got, want)
		}
		c.WaitConverged()
		c.Stop(former)
		c.Start(former)
		time.Sleep(5 * time.Second)
		c.WaitConverged()
	})
}
