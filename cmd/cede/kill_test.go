package main

import (
	"context"
	"encoding/hex"
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
)

// envSeed is the variable that has the rounds of an earlier run begin again: who
// does what, and behind how many answers the server dies. Which of those who work at
// the same time comes first is not for a test to say.
const envSeed = "CEDE_SEED"

func seedOf(t *testing.T) uint64 {
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

// The server is killed again and again while people work with it. Whatever it has
// acknowledged is there afterwards, its state is that which its log gives, and the
// log breaks no rule at any entry.
func TestKill_LosesNothingThatWasAcknowledged(t *testing.T) {
	rounds := 3
	if os.Getenv("CEDE_SOAK") != "" {
		rounds = 200
	}
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	// Snapshots are taken all the time, and the log is kept: it can be replayed from
	// both.
	d := serverAt(t, "", `acl: {enabled: true}
server: {enabled: true, workers: 2, raft: {heartbeat: 100ms, election: 100ms, lease: 100ms, snapshot_interval: 100ms, snapshot_threshold: 60, trailing_logs: 1000000}}
`)
	d.start()
	d.firstToken()
	l := newLoad(t, 6, seed)
	l.nodes = fleetOn(t, d, 12)
	l.prepare(d.client())
	h := &hashes{t: t, d: d}
	for round := range rounds {
		answers := l.acked.Load() + 20 + int64(rng.IntN(300))
		l.until(d, answers, time.Duration(rng.IntN(20))*time.Millisecond)
		if sn := h.replay(round%20 == 0 || round == rounds-1); sn != nil {
			l.check(sn)
		}
		if t.Failed() {
			t.Fatalf("in round %d; the directory was %s\n%s", round, d.dataDir, d.errs.story())
		}
		d.start()
		h.ask()
	}
	awaitQuiet(t, d)
	h.ask()
	d.stop()
	if sn := h.replay(true); sn != nil {
		l.check(sn)
		checkQuiet(t, sn)
	}
	report, err := doctor.Run(t.Context(), d.serverDir())
	if err != nil || report.Damaged() {
		t.Errorf("%v: %+v", err, report)
	}
	if told := d.all.String(); strings.Contains(told, d.token) {
		t.Error("the token is in the log")
	}
	t.Logf("%d writes were acknowledged; the log ends with entry %d and holds %d evictions; %d replays of %d entries, %d hashes of the server compared",
		l.acked.Load(), h.last, h.evictions, h.replays, h.entries, h.compared)
	if h.compared == 0 || h.evictions == 0 {
		t.Error("nothing was compared, or nobody was evicted")
	}
}

// until has people work until so many answers were given and a moment more, and
// kills the server then.
func (l *load) until(d *durable, answers int64, moment time.Duration) {
	l.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(l.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(ctx, d.client)
	}()
	eventually(l.t, fmt.Sprint(answers, " answers"), func() bool {
		if d.over() {
			stop()
			<-done
			l.t.Fatalf("it ended by itself: %v\n%s", d.result, d.errs.story())
		}
		return l.acked.Load() >= answers
	})
	time.Sleep(moment) // that is what a moment more is
	d.kill()
	stop()
	<-done
}

// fleetOn has nodes live on a server until the test ends, and gives their ids.
func fleetOn(t *testing.T, d *durable, nodes int) (ids []string) {
	t.Helper()
	c, err := client.New(client.Config{Address: d.url, Token: d.token})
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
	born, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if err := f.WaitRegistered(born); err != nil {
		t.Fatal(err)
	}
	list, _, err := c.Nodes().List(ctx, nil)
	if err != nil || len(list) != nodes {
		t.Fatalf("%d nodes, %v", len(list), err)
	}
	for _, n := range list {
		ids = append(ids, n.ID)
	}
	return ids
}

// hashes compares the states of one server over its life: those that it had while
// it ran, and those that its directory gives.
type hashes struct {
	t     *testing.T
	d     *durable
	asked []*client.RaftStatus // since the last replay

	last, checked                         uint64 // entries: the last one, and up to where each was looked at
	replays, entries, compared, evictions int
}

// ask has the running server tell the hash of its state.
func (h *hashes) ask() {
	h.t.Helper()
	s, err := h.d.client().Operator().RaftStatusWithHash(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	h.asked = append(h.asked, s)
}

// replay works out the state of a server that is down. Each entry is held to the
// rules; what the server told is held to what it comes to. whole is from the first
// entry and not from a snapshot.
func (h *hashes) replay(whole bool) (sn *state.Snapshot) {
	h.t.Helper()
	err := doctor.Inspect(h.d.serverDir(), func(s *doctor.Offline) (err error) {
		first, last, _ := s.Range()
		if first != 1 || last < h.last {
			return fmt.Errorf("the log has entries %d to %d, and had %d", first, last, h.last)
		}
		h.last = last
		newest, err := h.from(s, last)
		if err != nil {
			return err
		}
		sn = newest
		// A snapshot that is older than what was told, or none.
		until := last
		if len(h.asked) > 0 {
			until = h.asked[0].StateIndex
		}
		if whole {
			until = 0
		}
		older, err := h.from(s, until)
		if err != nil {
			return err
		}
		if snapshot.Hash(newest) != snapshot.Hash(older) {
			h.t.Errorf("the state at %d depends on the snapshot that it is worked out from", newest.Index())
		}
		return nil
	})
	if err != nil {
		h.t.Error(err)
		return nil
	}
	h.checked = h.last
	h.asked = nil
	return sn
}

// from replays the log behind the newest snapshot that is no later than an entry.
func (h *hashes) from(s *doctor.Offline, until uint64) (*state.Snapshot, error) {
	first, last, _ := s.Range()
	r := &raftnode.Replay{From: first, To: last, Entry: s.Entry}
	for _, snap := range s.Snapshots() {
		if snap.Index <= until {
			begin, err := snap.Open()
			if err != nil {
				return nil, err
			}
			defer func(c io.Closer) { _ = c.Close() }(begin) // it was only read
			r.Snapshot, r.From = begin, snap.Index+1
			break
		}
	}
	h.replays, h.entries = h.replays+1, h.entries+int(last-r.From)+1
	var before *state.Snapshot
	r.Observe = func(a *replication.Applied) error {
		for _, told := range h.asked {
			if told.StateIndex != a.Index {
				continue
			}
			if hash := snapshot.Hash(a.Snap); told.StateHash != hex.EncodeToString(hash[:]) {
				return fmt.Errorf("the server's state was another: %s", told.StateHash)
			}
			h.compared++
		}
		evictions, err := checkEntry(before, a, a.Index > h.checked)
		before, h.evictions = a.Snap, h.evictions+evictions
		return err
	}
	sn, err := r.Run(h.t.Context())
	if err == nil {
		err = checkState(sn)
	}
	return sn, err
}

// checkEntry holds what an entry did to the rules. before is the state that it found;
// nil: it is not known.
func checkEntry(before *state.Snapshot, a *replication.Applied, anew bool) (evictions int, err error) {
	if _, ok := a.Entry.Command.(*replication.ApplyPlans); !ok || !anew || before == nil {
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
			return evictions, fmt.Errorf("%s was evicted by %s, which is not placed with it", v.ID, v.PreemptedBy)
		case by.Job.Priority <= v.Job.Priority:
			return evictions, fmt.Errorf("%s of priority %d was evicted by %s of priority %d", v.ID, v.Job.Priority, by.ID, by.Job.Priority)
		}
		evictions++
	}
	return evictions, checkState(a.Snap)
}

// checkState holds a state to the rules: what is derived agrees, no node is asked
// for more than it has, and nothing is placed twice.
func checkState(sn *state.Snapshot) error {
	if err := sn.Check(); err != nil {
		return err
	}
	type place struct {
		job   model.JobKey
		group string
		index int
	}
	wanted := map[place]string{}
	used := map[string]int64{}
	memory := sn.Dims().Index("memory")
	for a := range sn.Allocs() {
		if a.Desired != model.DesiredRun || a.Client.Terminal() {
			continue
		}
		at := place{a.Job.Key(), a.Group.Name, a.Index}
		if other := wanted[at]; other != "" {
			return fmt.Errorf("%v is placed twice: %s and %s", at, other, a.ID)
		}
		wanted[at] = a.ID
		used[a.NodeID] += a.Group.Ask.Vec[memory]
	}
	for id, n := range used {
		node := sn.Node(id)
		if node == nil {
			return fmt.Errorf("something is to run on node %s, which nobody knows", id)
		}
		if n > node.Avail[memory] {
			return fmt.Errorf("node %s has %d MiB, and %d are given away", id, node.Avail[memory], n)
		}
	}
	return nil
}

// awaitQuiet waits until the server has nothing left to decide.
func awaitQuiet(t *testing.T, d *durable) {
	t.Helper()
	c := d.client()
	began := time.Now()
	defer func() { t.Logf("the server was quiet after %v", time.Since(began)) }()
	eventually(t, "the server is quiet", func() bool {
		s, err := c.Operator().BrokerStatus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		evals, _, err := c.Evaluations().List(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range evals {
			if e.Status == "pending" {
				return false
			}
		}
		return s.Ready+s.Unacked+s.Pending+s.Delayed+s.Backoff+s.Cancelable == 0
	})
}

func checkQuiet(t *testing.T, sn *state.Snapshot) {
	t.Helper()
	for e := range sn.Evals() {
		switch e.Status {
		case model.EvalBlocked, model.EvalComplete, model.EvalFailed, model.EvalCancelled:
		default:
			t.Errorf("evaluation %s is %s", e.ID, e.Status)
		}
	}
}
