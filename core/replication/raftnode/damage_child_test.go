package raftnode_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/storage"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/doctor"
	"github.com/cede-scheduler/cede/core/storage/history"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
)

// The test binary runs itself to open damaged directories, because a database may end the
// process or hang.
const childVariable = "CEDE_RAFTNODE_TEST_DIRS"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	in := json.NewDecoder(os.Stdin)
	for {
		var dir string
		if in.Decode(&dir) != nil {
			return
		}
		r := examineAndStart(dir)
		if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
			panic(err)
		}
	}
}

// A result describes what doctor and a start make of one directory.
type result struct {
	Doctor  []doctor.Finding
	Refused string // error of the start; "" if the server started
	Remedy  string
	State   string // index and hash
	ID      string
	Cluster string // ID in the state
	Modules string // digests of the modules that can be read, or the error
	History string // digest of all records, or the error
	Log     string // lines of level Info and higher
	Error   string // of the child itself
	dir     string
}

// findings reports whether doctor found damage or a warning.
func (r *result) findings() bool {
	for _, f := range r.Doctor {
		if f.Severity != doctor.Info {
			return true
		}
	}
	return false
}

// examineAndStart runs doctor on a directory, and then starts a server on it.
func examineAndStart(dir string) (r result) {
	report, err := doctor.Run(context.Background(), dir)
	if err != nil {
		r.Error = "doctor: " + err.Error()
	} else {
		r.Doctor = report.Findings
	}
	var logged bytes.Buffer
	s := &testServer{dir: dir, timeout: 20 * time.Millisecond, log: slog.New(slog.NewTextHandler(&logged, nil))}
	err = s.start()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err = s.lead(ctx); err == nil {
			snap := s.state.Snapshot()
			r.State = fmt.Sprintf("index %d, hash %v", snap.Index(), snapshot.Hash(snap))
			r.ID, r.Cluster = s.id, snap.Meta().ClusterID
			r.Modules, r.History = s.modules(), s.records()
		} else {
			r.Error = "start: " + err.Error()
			err = nil
		}
	}
	if d, ok := errors.AsType[*datadir.DamageError](err); ok {
		r.Remedy = d.Remedy
	}
	if err != nil {
		r.Refused = err.Error()
	}
	if err := s.stop(); err != nil && r.Refused == "" {
		r.Error += " stop: " + err.Error()
	}
	r.Log = logged.String()
	return r
}

// A testServer is the part of a server that owns the data directory.
type testServer struct {
	dir, id string
	log     *slog.Logger
	disk    *storage.Store
	node    *raftnode.Node
	state   *state.Store
	cluster string
	timeout time.Duration // of elections
}

func (s *testServer) start() (err error) {
	s.disk, err = storage.Open(storage.Config{
		Dir: s.dir, NewestCluster: replication.Newest, Log: raftlog.Config{MinFree: -1}, Logger: s.log,
	})
	if err != nil {
		return err
	}
	if s.id, err = s.disk.ServerID(func() string { return "another" }); err != nil {
		return err
	}
	if s.cluster, err = s.disk.ClusterID(); err != nil {
		return err
	}
	if _, err = s.disk.DecisionKey(); err != nil {
		return err
	}
	s.state = state.New()
	_, transport := raft.NewInmemTransport("s")
	s.node, err = raftnode.Open(raftnode.Config{
		ServerID: s.id, Log: s.disk.Log(), Stable: s.disk.Log(), Snapshots: s.disk.Snapshots(), Modules: s.disk.Blobs(),
		Transport: transport, Store: s.state, Logger: s.log,
		Timing: raftnode.Timing{TrailingLogs: 5, Heartbeat: s.timeout, Lease: s.timeout},
	})
	return err
}

// lead waits until the server leads and has applied its log. On a busy machine it may lose
// its leadership before that.
func (s *testServer) lead(ctx context.Context) error {
	for {
		select {
		case <-s.node.Leadership():
		case <-s.node.Done():
			return s.node.Err()
		case <-ctx.Done():
			return errors.New("the server does not become the leader")
		}
		if s.node.Barrier(ctx) == nil {
			return nil
		}
	}
}

func (s *testServer) stop() (err error) {
	if s.node != nil {
		err = s.node.Close()
	}
	if s.disk != nil {
		err = errors.Join(err, s.disk.Close())
	}
	return err
}

// modules returns the digest of every module that the state refers to, or an error.
func (s *testServer) modules() (text string) {
	for _, v := range s.state.Snapshot().PolicyVersions() {
		if _, err := s.disk.Blobs().Get(v.Digest); err != nil {
			return "error: " + err.Error()
		}
		text += v.Digest + "\n"
	}
	return text
}

// records returns a digest of the history, or an error.
func (s *testServer) records() string {
	h, n := sha256.New(), 0
	for q := (history.Query{Limit: 1000}); ; {
		list, err := s.disk.History().List(q)
		if err != nil {
			return "error: " + err.Error()
		}
		for i := range list {
			fmt.Fprintln(h, list[i].Index, list[i].Topic, string(list[i].Data))
		}
		if n += len(list); len(list) < q.Limit {
			return fmt.Sprintf("%d records, %x", n, h.Sum(nil)[:8])
		}
		q.After = &list[len(list)-1]
	}
}

// fill makes the history of a server that was in use for some time: snapshots, a log that
// starts after entry 1, modules, records, and entries that are in no snapshot.
func (s *testServer) fill(ctx context.Context) error {
	apply := func(c replication.Command) error {
		r, err := s.node.Apply(ctx, &replication.Entry{Command: c})
		if err == nil && r.Err != nil {
			err = r.Err
		}
		return err
	}
	module := bytes.Repeat([]byte("module "), 20_000)
	v := replicationtest.PolicyVersion(module, "v1")
	commands := []replication.Command{
		&replication.Bootstrap{ClusterID: "cluster", Version: 1},
		&replication.PutChunk{Digest: v.Digest, Data: module}, &replication.LoadPolicy{Version: v},
	}
	for _, c := range commands {
		if err := apply(c); err != nil {
			return err
		}
	}
	for round := range 3 {
		for n := range 20 {
			if err := apply(&replication.RegisterJob{Job: replicationtest.NumberedJob(fmt.Sprint("job", round), n)}); err != nil {
				return err
			}
			index := s.state.Snapshot().Index()
			if err := s.disk.History().Append("event", index, 0, bytes.Repeat([]byte{byte(n)}, 300)); err != nil {
				return err
			}
		}
		if round < 2 {
			if err := s.node.TakeSnapshot(ctx); err != nil {
				return err
			}
		}
	}
	return errors.Join(s.disk.StoreClusterID("cluster"), s.disk.RecordClusterVersion(1))
}
