package raftlog_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
)

// counting is a state machine that counts commands.
type counting struct{ n int }

func (c *counting) Apply(*raft.Log) any { c.n++; return nil }

func (c *counting) Snapshot() (raft.FSMSnapshot, error) { return counted(c.n), nil }

func (c *counting) Restore(r io.ReadCloser) error {
	_, err := fmt.Fscan(r, &c.n)
	return err
}

type counted int

func (c counted) Persist(sink raft.SnapshotSink) error {
	if _, err := fmt.Fprintln(sink, int(c)); err != nil {
		return err
	}
	return sink.Close()
}

func (counted) Release() {}

// startRaft starts a single-server Raft cluster on a store.
func startRaft(t *testing.T, s *storage.Store, fsm raft.FSM) *raft.Raft {
	t.Helper()
	c := raft.DefaultConfig()
	c.LocalID = "a"
	c.Logger = hclog.NewNullLogger()
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 500*time.Millisecond, 500*time.Millisecond, 250*time.Millisecond
	c.TrailingLogs = 10
	c.RestoreCommittedLogs = true
	addr, transport := raft.NewInmemTransport("a")
	t.Cleanup(func() { _ = transport.Close() })
	log := raftlog.WithDeadline(s.Log(), 10*time.Second, func(op string) { t.Errorf("%s hangs", op) })
	known, err := raft.HasExistingState(log, log, s.Snapshots())
	if err != nil {
		t.Fatal(err)
	}
	if !known {
		members := raft.Configuration{Servers: []raft.Server{{ID: "a", Address: addr}}}
		if err := raft.BootstrapCluster(c, log, log, s.Snapshots(), transport, members); err != nil {
			t.Fatal(err)
		}
	}
	r, err := raft.NewRaft(c, fsm, log, log, s.Snapshots(), transport)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
