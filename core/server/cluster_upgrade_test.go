package server

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/state"
)

// previousRelease stands for a release that lacks some commands of this one.
var previousRelease = replication.Versions{Oldest: 1, Newest: 1}

// runUpgrade starts a pool of the previous release, with clients and agents.
func runUpgrade(t *testing.T, story func(c *simCluster)) {
	synctest.Test(t, func(t *testing.T) {
		runSim(t, 1, simSize{nodes: 3, clients: 2, requests: 12}, previousRelease, func(c *simCluster) {
			c.must(func(ctx context.Context, s *Server) error {
				_, err := s.SetConfig(ctx, simConfig(""), nil)
				return err
			})
			c.addAgents()
			story(c)
		})
	})
}

// replaceRelease stops a server and starts it with another release.
func (s *simServer) replaceRelease(release replication.Versions) {
	s.crash()
	s.release = release
	s.start()
}

// lead returns the server that leads.
func (c *simCluster) lead() *Server {
	var lead *Server
	c.must(func(_ context.Context, s *Server) error {
		lead = s
		return s.writer.CheckLeader()
	})
	return lead
}

// waitVersion waits until the cluster has a version, and fails if it does not get there.
func (c *simCluster) waitVersion(want uint32) {
	c.t.Helper()
	for range 300 {
		if at, _ := c.lead().Versions(); at == want {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	at, ours := c.lead().Versions()
	c.t.Fatalf("cluster version is %d, want %d; the leader supports %s", at, want, ours)
}

// A pool is upgraded one server at a time, under load. New features are refused until the
// last server is upgraded, and work everywhere afterwards.
func TestUpgrade_RollingUpgrade(t *testing.T) {
	runUpgrade(t, func(c *simCluster) {
		c.waitVersion(previousRelease.Newest)
		done := make(chan struct{})
		go func() {
			defer close(done)
			newSimClient(c, 0).run()
		}()
		key := model.JobKey{Namespace: model.DefaultNamespace, ID: "none"}
		for i, s := range c.servers {
			time.Sleep(3 * time.Second)
			c.waitVersion(previousRelease.Newest)
			if _, ours := c.lead().Versions(); ours == replication.Ours() {
				result, err := c.lead().writer.Propose(c.ctx, &replication.StopBinding{Key: key})
				if err != nil || result.Err == nil || result.Err.Code != replication.CodeConflict ||
					!strings.Contains(result.Err.Message, "wait until every server runs the new release") {
					t.Errorf("after %d servers, the new command returned %+v, %v", i, result, err)
				}
			}
			s.replaceRelease(replication.Versions{})
		}
		c.waitVersion(replication.Newest)
		<-done
		result, err := c.lead().writer.Propose(c.ctx, &replication.StopBinding{Key: key})
		if err != nil || result.Err == nil || result.Err.Code != replication.CodeNotFound {
			t.Errorf("the new command returned %+v, %v", result, err)
		}
		c.checkDowngradeRefused(c.servers[0])
	})
}

// checkDowngradeRefused checks that the previous release does not start on the data of a
// server. A log that starts with the bootstrap configuration is not replayed before the
// leader sends the commit index (see trackCommits in replication), so the server has a
// snapshot.
func (c *simCluster) checkDowngradeRefused(s *simServer) {
	c.t.Helper()
	r := s.run.Load()
	for range 300 {
		if at, _ := r.server.Versions(); at == replication.Newest {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err := r.node.TakeSnapshot(c.ctx); err != nil {
		c.t.Fatal(err)
	}
	s.crash()
	_, trans := raft.NewInmemTransport(raft.ServerAddress(s.id))
	n, err := raftnode.Open(raftnode.Config{
		ServerID: s.id, Log: s.disk, Stable: s.disk, Snapshots: s.disk, Modules: simModules{s.disk}, Transport: trans,
		Store: state.New(), Versions: previousRelease,
	})
	if err == nil {
		select {
		case <-n.Done():
			err = n.Err()
		case <-time.After(time.Minute):
		}
		if e := n.Close(); e != nil {
			c.t.Error(e)
		}
	}
	var format *replication.FormatError
	if !errors.As(err, &format) || !strings.Contains(err.Error(), "the cluster does not go back") {
		c.t.Errorf("the previous release starts on data of the new one: %v", err)
	}
	s.start()
}

// The leader does not add a server whose release does not understand the version of the
// cluster.
func TestUpgrade_RejectsIncompatibleServer(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		leader := w.leader().server
		for _, c := range []struct {
			versions replication.Versions
			want     string
		}{
			{replication.Ours(), ""},
			{replication.Versions{Oldest: replication.Newest, Newest: replication.Newest + 1}, ""},
			{previousRelease, "install the release that the other servers run"},
			{replication.Versions{Oldest: replication.Newest + 1, Newest: replication.Newest + 2}, "upgrade one release at a time"},
		} {
			st, err := leader.RPCHandler().Status(w.ctx, "")
			if err != nil {
				t.Fatal(err)
			}
			st.Oldest, st.Newest = c.versions.Oldest, c.versions.Newest
			err = leader.CheckVersions(st)
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("server that supports %s: %v", c.versions, err)
			}
		}
	})
}

// A policy that a server of the previous release cannot run is activated only after all
// servers are upgraded.
func TestUpgrade_PolicyRequiringNewRelease(t *testing.T) {
	runUpgrade(t, func(c *simCluster) {
		for _, s := range c.servers[1:] {
			s.replaceRelease(replication.Versions{})
			time.Sleep(5 * time.Second)
		}
		module := policy.LoadRequest{Module: []byte{laterModules}}
		var id string
		c.must(func(ctx context.Context, s *Server) error {
			v, err := s.LoadPolicy(ctx, module)
			if err == nil {
				id = v.ID
			}
			return err
		})
		activate := func() error {
			ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
			defer cancel()
			_, err := c.lead().ActivatePolicy(ctx, simPolicy, id)
			return err
		}
		err := activate()
		if apierror.CodeOf(err) != apierror.CodeConflict || !strings.Contains(err.Error(), "server s1 rejected it: requires interface 2") {
			t.Errorf("activation while one server cannot run it: %v", err)
		}
		c.servers[0].replaceRelease(replication.Versions{})
		for range 100 {
			if err = activate(); err == nil {
				break
			}
			time.Sleep(500 * time.Millisecond)
		}
		if err != nil {
			t.Errorf("activation when every server can run it: %v", err)
		}
	})
}

// A snapshot of one cluster is restored into another pool. Its nodes register there and
// keep their allocations, and nothing is placed twice.
func TestSnapshot_RestoresIntoAnotherPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saved bytes.Buffer
		var before *state.Snapshot
		size := simSize{nodes: 3}
		fill := func(c *simCluster) {
			c.must(func(ctx context.Context, s *Server) error {
				_, err := s.SetConfig(ctx, simConfig(""), nil)
				return err
			})
			c.addAgents()
			client := newSimClient(c, 0)
			for _, key := range []string{"low", "mid", "high"} {
				client.write(key, "first")
			}
			time.Sleep(30 * time.Second)
		}
		var nodes []*simAgent
		var history *simHistory
		runSim(t, 1, size, replication.Versions{}, func(c *simCluster) {
			fill(c)
			var lead *simRun
			for lead == nil {
				for _, s := range c.servers {
					if r := s.run.Load(); r.node.IsLeader() {
						lead = r
					}
				}
			}
			if err := lead.node.SaveSnapshot(c.ctx, &saved); err != nil {
				t.Fatal(err)
			}
			before = lead.server.Snapshot()
			nodes, history = c.agents, c.history
		})
		info, err := snapshot.Inspect(bytes.NewReader(saved.Bytes()))
		if err != nil || info.ClusterID != before.Meta().ClusterID || info.Version != replication.Newest || info.Allocs != before.AllocCount() {
			t.Fatalf("snapshot info is %+v, %v", info, err)
		}
		runSim(t, 2, size, replication.Versions{}, func(c *simCluster) {
			other := c.lead().Snapshot().Meta().ClusterID
			c.checks.reset()
			c.must(func(ctx context.Context, s *Server) error {
				_, err := s.RestoreSnapshot(ctx, bytes.NewReader(saved.Bytes()))
				return err
			})
			for _, a := range nodes { // the nodes in the snapshot
				a.c = c
				c.agents = append(c.agents, a)
				c.group.Go(a.run)
			}
			time.Sleep(2 * time.Minute)
			now := c.lead().Snapshot()
			if id := now.Meta().ClusterID; id != info.ClusterID || id == other {
				t.Errorf("cluster ID is %q; it was %q, the snapshot has %q", id, other, info.ClusterID)
			}
			for a := range before.Allocs() {
				if same := now.Alloc(a.ID); same == nil || same.NodeID != a.NodeID || same.Live() != a.Live() {
					t.Errorf("allocation %s of %s on %s is now %+v", a.ID, a.Job.ID, a.NodeID, same)
				}
			}
			if now.AllocCount() != before.AllocCount() {
				t.Errorf("%d allocations before, %d after", before.AllocCount(), now.AllocCount())
			}
			c.history = history // writes before the snapshot are read here
			newSimClient(c, 1).write("gang", "second")
		})
	})
}
