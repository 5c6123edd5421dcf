package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/agent"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/storage/doctor"
	"github.com/cede-scheduler/cede/sdk/client"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// envSeed names the variable that repeats the random choices of an earlier run: the
// actions of each client and the number of acknowledged writes before each kill. The order
// of concurrent requests is not reproducible.
const envSeed = "CEDE_SEED"

// testSeed returns the seed in envSeed, or a random one, and logs it.
func testSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(envSeed); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d", envSeed, seed)
	return seed
}

// The server is killed repeatedly under load. After each kill every acknowledged write is
// present, the state equals the one that results from the log, and each entry of the log
// respects the rules of checkEntry.
func TestKill_PreservesAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	rounds := soak.Count(3, 200)
	seed := testSeed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	// The server snapshots frequently and keeps its whole log, so that the state can be
	// computed from either.
	d := newServer(t, "", `acl: {enabled: true}
server: {enabled: true, workers: 2, raft: {heartbeat: 100ms, election: 100ms, lease: 100ms, snapshot_interval: 100ms, snapshot_threshold: 60, trailing_logs: 1000000}}
`)
	d.start()
	d.readBootstrapToken()
	l := newLoad(t, 6, seed)
	l.nodes = startFleet(t, client.Config{Address: d.url, Token: d.token}, 12)
	l.prepare(d.client())
	h := &stateChecker{t: t, d: d}
	for round := range rounds {
		acks := l.acked.Load() + 20 + int64(rng.IntN(300))
		l.runUntilKill(d, acks, time.Duration(rng.IntN(20))*time.Millisecond)
		if sn := h.replay(round%20 == 0 || round == rounds-1); sn != nil {
			l.check(sn)
		}
		if t.Failed() {
			t.Fatalf("failed in round %d with data directory %s\n%s", round, d.dataDir, d.stderr.filtered())
		}
		d.start()
		h.recordHash()
	}
	waitIdle(t, d.client())
	h.recordHash()
	d.stop()
	if sn := h.replay(true); sn != nil {
		l.check(sn)
	}
	report, err := doctor.Run(t.Context(), d.serverDir())
	if err != nil || report.Damaged() {
		t.Errorf("%v: %+v", err, report)
	}
	if strings.Contains(d.allOutput.String(), d.token) {
		t.Error("log contains the token")
	}
	t.Logf("%d acknowledged writes; last log entry %d with %d evictions in total; %d replays of %d entries; %d state hashes compared",
		l.acked.Load(), h.last, h.evictions, h.replays, h.entries, h.compared)
	if h.compared == 0 || h.evictions == 0 {
		t.Error("no state hashes were compared, or no allocation was evicted")
	}
}

// runUntilKill runs the load until acks writes are acknowledged and delay has passed, and
// then kills the server.
func (l *load) runUntilKill(d *serverProcess, acks int64, delay time.Duration) {
	l.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(l.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(ctx, d.client)
	}()
	eventually(l.t, fmt.Sprint(acks, " writes are acknowledged"), func() bool {
		if d.hasExited() {
			stop()
			<-done
			l.t.Fatalf("server exited before it was killed: %v\n%s", d.result, d.stderr.filtered())
		}
		return l.acked.Load() >= acks
	})
	time.Sleep(delay)
	d.kill()
	stop()
	<-done
}

// startFleet runs simulated nodes against servers until the test ends and returns the IDs
// of the nodes.
func startFleet(t *testing.T, servers client.Config, nodes int) (ids []string) {
	t.Helper()
	c, err := client.New(servers)
	if err != nil {
		t.Fatal(err)
	}
	f, err := agent.NewFleet(agent.FleetConfig{
		Servers: agent.Remote(c.NodeAgent()), Nodes: nodes, Workers: 8, Poll: 100 * time.Millisecond, ReportWindow: 50 * time.Millisecond, Retry: 100 * time.Millisecond,
		Node: func(n int) agent.Node {
			return agent.Node{
				Name: fmt.Sprint("sim-", n), Datacenter: "dc1", Capacity: map[string]int64{"cpu": 4000, "memory": 1000},
				Attributes: map[string]string{"driver.sim": "1"},
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		c.Close()
	})
	born, stop := context.WithTimeout(ctx, testTimeout)
	defer stop()
	if err := f.WaitRegistered(born); err != nil {
		t.Fatal(err)
	}
	list, _, err := c.Nodes().List(ctx, nil)
	if err != nil || len(list) != nodes {
		t.Fatalf("got %d nodes, %v, want %d", len(list), err, nodes)
	}
	for _, n := range list {
		ids = append(ids, n.ID)
	}
	return ids
}

// A stateChecker compares the state hashes that a running server reported with the states
// that result from its data directory.
type stateChecker struct {
	t        *testing.T
	d        *serverProcess
	reported []*client.RaftStatus // since the last replay

	last, checked                                uint64 // index of the last entry, and of the last checked entry
	replays, entries, compared, evictions, moves int
}

// recordHash records the current state hash of the running server.
func (h *stateChecker) recordHash() {
	h.t.Helper()
	s, err := h.d.client().Operator().RaftStatusWithHash(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	h.reported = append(h.reported, s)
}

// replay computes the state of a stopped server from its log. It applies the rules to each
// entry and compares the recorded hashes. If whole is true the replay starts at the first
// entry, otherwise at a snapshot. It returns nil if a check failed.
func (h *stateChecker) replay(whole bool) (sn *state.Snapshot) {
	h.t.Helper()
	err := doctor.Inspect(h.d.serverDir(), func(s *doctor.Offline) (err error) {
		first, last, _ := s.Range()
		if first != 1 || last < h.last {
			return fmt.Errorf("log has entries %d to %d, want 1 to at least %d", first, last, h.last)
		}
		h.last = last
		newest, err := h.replayFrom(s, last)
		if err != nil {
			return err
		}
		sn = newest
		// Start at a snapshot before the first recorded hash, or at the first entry.
		until := last
		if len(h.reported) > 0 {
			until = h.reported[0].StateIndex
		}
		if whole {
			until = 0
		}
		older, err := h.replayFrom(s, until)
		if err != nil {
			return err
		}
		if snapshot.Hash(newest) != snapshot.Hash(older) {
			h.t.Errorf("state at index %d depends on the snapshot the replay started from", newest.Index())
		}
		return nil
	})
	if err != nil {
		h.t.Error(err)
		return nil
	}
	h.checked = h.last
	h.reported = nil
	return sn
}

// replayFrom replays the log from the newest snapshot whose index is at most until.
func (h *stateChecker) replayFrom(s *doctor.Offline, until uint64) (*state.Snapshot, error) {
	first, last, _ := s.Range()
	r := &raftnode.Replay{From: first, To: last, Entry: s.Entry}
	for _, snap := range s.Snapshots() {
		if snap.Index <= until {
			begin, err := snap.Open()
			if err != nil {
				return nil, err
			}
			defer func(c io.Closer) { _ = c.Close() }(begin) // opened for reading only
			r.Snapshot, r.From = begin, snap.Index+1
			break
		}
	}
	h.replays, h.entries = h.replays+1, h.entries+int(last-r.From)+1
	var before *state.Snapshot
	r.Observe = func(a *replication.Applied) error {
		for _, r := range h.reported {
			if r.StateIndex != a.Index {
				continue
			}
			if hash := snapshot.Hash(a.Snap); r.StateHash != hex.EncodeToString(hash[:]) {
				return fmt.Errorf("server reported state hash %s, want %x", r.StateHash, hash)
			}
			h.compared++
		}
		evictions, err := checkEntry(before, a, a.Index > h.checked)
		moves, moveErr := checkMoves(before, a)
		if a.Index > h.checked {
			h.moves += moves
		}
		before, h.evictions = a.Snap, h.evictions+evictions
		return errors.Join(err, moveErr)
	}
	sn, err := r.Run(h.t.Context())
	if err == nil {
		err = checkState(sn)
	}
	return sn, err
}

// checkEntry applies the rules to one entry and returns the number of its evictions.
// before is the state before the entry, or nil if unknown. The entry is only checked if
// isNew is true.
func checkEntry(before *state.Snapshot, a *replication.Applied, isNew bool) (evictions int, err error) {
	if _, ok := a.Entry.Command.(*replication.ApplyPlans); !ok || !isNew || before == nil {
		return 0, nil
	}
	for v := range a.Snap.Allocs() {
		if v.Desired != model.DesiredEvict || v.ModifyIndex != a.Index {
			continue
		}
		if old := before.Alloc(v.ID); old == nil || old.Desired == model.DesiredEvict {
			continue
		}
		by := a.Snap.Alloc(v.PreemptedBy)
		switch {
		case by == nil || by.CreateIndex != a.Index:
			return evictions, fmt.Errorf("%s was evicted by %s, which the same entry does not place", v.ID, v.PreemptedBy)
		case by.Job.Priority <= v.Job.Priority:
			return evictions, fmt.Errorf("%s with priority %d was evicted by %s with priority %d", v.ID, v.Job.Priority, by.ID, by.Job.Priority)
		}
		evictions++
	}
	return evictions, checkState(a.Snap)
}

// checkState applies the rules to a state: derived data is consistent, no node exceeds its
// capacity, and no index of a group is placed twice.
func checkState(sn *state.Snapshot) error {
	if err := sn.Check(); err != nil {
		return err
	}
	type slot struct {
		job   model.JobKey
		group string
		index int
	}
	placed := map[slot]string{}
	used := map[string]int64{}
	memory := sn.Dims().Index("memory")
	for a := range sn.Allocs() {
		if a.Desired != model.DesiredRun || a.Client.Terminal() {
			continue
		}
		at := slot{a.Job.Key(), a.Group.Name, a.Index}
		if other := placed[at]; other != "" {
			return fmt.Errorf("%v is placed twice: %s and %s", at, other, a.ID)
		}
		placed[at] = a.ID
		used[a.NodeID] += a.Group.Ask.Vec[memory]
	}
	for id, n := range used {
		node := sn.Node(id)
		if node == nil {
			return fmt.Errorf("allocations are placed on unknown node %s", id)
		}
		if n > node.Avail[memory] {
			return fmt.Errorf("node %s has %d MiB of memory, but %d MiB are allocated", id, node.Avail[memory], n)
		}
	}
	return nil
}

// waitIdle waits until every evaluation on the server is blocked or terminal, and the broker is
// empty. Agents that run may cause new ones afterwards.
func waitIdle(t *testing.T, c *client.Client) {
	t.Helper()
	start := time.Now()
	defer func() { t.Logf("the server was idle after %v", time.Since(start)) }()
	eventually(t, "the server is idle", func() bool {
		s, err := c.Operator().BrokerStatus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		evals, _, err := c.Evaluations().List(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range evals {
			switch e.Status {
			case "blocked", "complete", "failed", "cancelled":
			default:
				return false
			}
		}
		return s.Ready+s.Unacked+s.Pending+s.Delayed+s.Backoff+s.Cancelable == 0
	})
}
