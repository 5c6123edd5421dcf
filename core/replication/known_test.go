package replication

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// sent is a snapshot on its way, with what there is of it.
type sent struct {
	meta *raft.SnapshotMeta
	data []byte
}

// snapshotOf takes a snapshot of a server.
func (c *cluster) snapshotOf(m *member) sent {
	c.t.Helper()
	if err := m.node.raft.Snapshot().Error(); err != nil {
		c.t.Fatal(err)
	}
	list, err := m.snaps.List()
	if err != nil {
		c.t.Fatal(err)
	}
	meta, r, err := m.snaps.Open(list[0].ID)
	if err != nil {
		c.t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return sent{meta, data}
}

// late is a connection to a server that nobody cuts.
func late(to *member) *raft.InmemTransport {
	_, trans := raft.NewInmemTransport("late")
	trans.Connect(raft.ServerAddress(to.id), to.trans)
	return trans
}

func headerOf(m *member) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(m.id), Addr: []byte(m.id)}
}

// install sends a snapshot in the name of who leads.
func (c *cluster) install(s sent, from, to *member) (resp raft.InstallSnapshotResponse, err error) {
	trans := late(to)
	defer trans.DisconnectAll()
	err = trans.InstallSnapshot(raft.ServerID(to.id), raft.ServerAddress(to.id), &raft.InstallSnapshotRequest{
		RPCHeader: headerOf(from), SnapshotVersion: s.meta.Version, Term: from.node.raft.CurrentTerm(), LastLogIndex: s.meta.Index, LastLogTerm: s.meta.Term,
		Configuration: raft.EncodeConfiguration(s.meta.Configuration), ConfigurationIndex: s.meta.ConfigurationIndex, Size: int64(len(s.data)),
	}, &resp, bytes.NewReader(s.data))
	return resp, err
}

// shows sends a server an entry that it has, in the name of who leads.
func (c *cluster) shows(to *member, index, termBefore uint64) {
	c.t.Helper()
	var l raft.Log
	if err := to.disk.GetLog(index, &l); err != nil {
		c.t.Fatal(err)
	}
	from := c.leader()
	trans := late(to)
	defer trans.DisconnectAll()
	var resp raft.AppendEntriesResponse
	err := trans.AppendEntries(raft.ServerID(to.id), raft.ServerAddress(to.id), &raft.AppendEntriesRequest{
		RPCHeader: headerOf(from), Term: from.node.raft.CurrentTerm(),
		PrevLogEntry: index - 1, PrevLogTerm: termBefore, Entries: []*raft.Log{&l}, LeaderCommitIndex: from.node.raft.CommitIndex(),
	}, &resp)
	if err != nil || !resp.Success {
		c.t.Fatalf("an entry that this server has: %+v, %v", resp, err)
	}
}

// logged is the entries that a server's disk holds.
func (m *member) logged(t *testing.T) (first, last uint64) {
	first, err := m.disk.FirstIndex()
	if err != nil {
		t.Fatal(err)
	}
	if last, err = m.disk.LastIndex(); err != nil {
		t.Fatal(err)
	}
	return first, last
}

func (c *cluster) register(n int) {
	for i := range n {
		c.send(&Entry{Time: 1, Command: &RegisterJob{Job: countedJob("web", i)}})
	}
}

// follower is a server that does not lead.
func (c *cluster) follower() *member {
	lead := c.leader()
	for _, m := range c.members {
		if m != lead {
			return m
		}
	}
	return nil
}

// A snapshot that was under way for long comes when the server has more already. Raft
// would empty the log, entries that this server said it has among them, and either
// want them again to apply them, and panic as they are gone, or lose them.
func TestKnown_LateSnapshotsLeaveTheLogAlone(t *testing.T) {
	for name, gapless := range map[string]bool{"log with gaps": false, "log without gaps": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cluster{t: t, gapless: gapless, hashes: map[uint64][32]byte{}}
				c.fill(3)
				defer c.close()
				c.register(10)
				lead, late := c.leader(), c.follower()
				c.settle()
				old := c.snapshotOf(lead)
				c.register(3)
				c.settle()
				time.Sleep(time.Second)
				first, last := late.logged(t)
				for range 2 {
					if resp, err := c.install(old, lead, late); err != nil || !resp.Success {
						t.Fatalf("a snapshot of what this server has: %+v, %v", resp, err)
					}
				}
				if f, l := late.logged(t); f > first && f > old.meta.Index+1 || l < last {
					t.Errorf("the log held %d to %d, and holds %d to %d", first, last, f, l)
				}
				c.register(30)
				time.Sleep(10 * time.Second) // snapshots are taken, and logs cut
				for range 2 {
					if _, err := c.install(old, lead, late); err != nil {
						t.Fatal(err)
					}
				}
				c.register(2)
				c.settle()
				c.halt(late)
				c.start(late)
				c.settle()
			})
		})
	}
}

// A leader that went back far sends what a server has, and says how much is committed. Raft
// would commit up to there what it has behind, which may be other entries.
func TestKnown_CommitsNoMoreThanIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, gapless: true, hashes: map[uint64][32]byte{}}
		c.fill(3)
		defer c.close()
		c.register(5)
		c.settle()
		alone := c.leader()
		common, term := alone.node.raft.LastIndex(), alone.node.Term()
		c.cut(true, alone)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for i := range 3 { // few, so that the entry before them stays in the log
			go func() {
				_, _ = alone.node.Apply(ctx, &Entry{Time: 1, Command: &RegisterJob{Job: countedJob("alone", i)}})
			}()
		}
		time.Sleep(5 * time.Second)
		if own := alone.node.raft.LastIndex(); own <= common {
			t.Fatalf("its log ends at %d, as the others did at %d", own, common)
		}
		c.register(6) // its entries are others
		for range 2 { // the first tells of the term
			c.shows(alone, common, term)
		}
		if at := alone.node.raft.CommitIndex(); at > common {
			t.Errorf("it takes %d for committed, it has nothing of that beyond %d", at, common)
		}
		c.cut(false, alone)
		time.Sleep(time.Minute)
		c.settle()
	})
}

// A snapshot ended with the entry behind which a leader goes on, and entries that
// nobody else has follow it here.
func TestKnown_GoesOnBehindASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, gapless: true, hashes: map[uint64][32]byte{}}
		c.fill(3)
		defer c.close()
		c.register(10)
		c.settle()
		behind := c.follower()
		c.cut(true, behind)
		c.register(40)
		time.Sleep(5 * time.Second)
		s := c.snapshotOf(c.leader())
		c.cut(false, behind)
		if resp, err := c.install(s, c.leader(), behind); err != nil || !resp.Success {
			t.Fatalf("a snapshot of what is new here: %+v, %v", resp, err)
		}
		c.register(10)
		c.settle()
		first, last := behind.logged(t)
		if first <= s.meta.Index || last != c.leader().node.raft.LastIndex() {
			t.Fatalf("the log holds %d to %d behind a snapshot of %d", first, last, s.meta.Index)
		}
		c.shows(behind, first, s.meta.Term)
	})
}
