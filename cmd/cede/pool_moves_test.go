package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// The leader of three servers, and sometimes another one too, is killed while a plan of moves
// is run, and while a drain makes room by moves. Afterwards every instance is placed and runs
// once. On each server every entry of the log contains both halves of its moves, places no
// instance twice, and stays within the disruption budget, which allows one move at a time.
func TestFailover_MovesAreNeverHalf(t *testing.T) {
	t.Parallel()
	const nodes, large = 5, 2
	rounds := soak.Count(1, 40)
	rng := rand.New(rand.NewPCG(testSeed(t), 2))
	p := newProcessPool(t)
	for _, s := range p.servers {
		s.raftConfig = "snapshot_interval: 100ms, snapshot_threshold: 60, trailing_logs: 1000000"
		s.start()
	}
	p.waitLeader()
	startFleet(t, p.clientConfig(p.addresses()...), nodes)
	spreadInstances(t, p.c)
	limit := &client.Moves{PerJob: 100, Window: time.Hour}
	for round := range rounds {
		small := sized(fmt.Sprint("small-", round), 200, nodes)
		small.TaskGroups[0].Labels = map[string]string{"app": "small"}
		if _, err := p.c.Budgets().Put(t.Context(), &client.Budget{Name: "one-by-one", Labels: map[string]string{"app": "small"}, MaxUnavailable: "1"}, nil); err != nil {
			t.Fatal(err)
		}
		registerAll(t, p.c, small)
		awaitRunning(t, p.c, small.ID, nodes)
		var waiting []*client.Job
		for i := range large {
			waiting = append(waiting, sized(fmt.Sprintf("large-%d-%d", round, i), 900, 1))
		}
		registerAll(t, p.c, waiting...)
		waitIdle(t, p.c)
		plan, err := p.c.Scheduler().PlanRebalance(t.Context(), limit)
		if err != nil || len(plan.Steps) == 0 {
			t.Fatalf("round %d: %+v, %v", round, plan, err)
		}
		p.killDuring(rng, func(c *client.Client) { _, _ = c.Scheduler().Rebalance(t.Context(), plan.PlanToken) })
		p.rebalanceUntil(limit, waiting[0].ID)
		check := func() {
			t.Helper()
			awaitRunning(t, p.c, small.ID, nodes)
			checkRunsOnce(t, p.c, small.ID, nodes)
			checkRunsOnce(t, p.c, waiting[0].ID, 1)
		}
		check()

		// The drained instance fits only where another one is moved away.
		registerAll(t, p.c, waiting[1])
		enableMoves(t, p.c)
		drained := p.nodeOf(waiting[0].ID)
		p.killDuring(rng, func(c *client.Client) { _, _ = c.Nodes().Drain(t.Context(), drained, true, false) })
		if _, err := p.c.Nodes().Drain(t.Context(), drained, true, false); err != nil { // the first request may be lost
			t.Fatal(err)
		}
		eventually(t, "the drained instance runs elsewhere", func() bool {
			node := p.nodeOf(waiting[0].ID)
			return node != "" && node != drained
		})
		check()
		deregisterAll(t, p.c)
		disableMoves(t, p.c)
		if _, err := p.c.Nodes().Drain(t.Context(), drained, false, true); err != nil {
			t.Fatal(err)
		}
		waitIdle(t, p.c)
	}
	p.waitSameState()
	most := 0 // a server that received a snapshot has the entries after it
	for _, s := range p.servers {
		s.kill()
		h := &stateChecker{t: t, d: &serverProcess{t: t, dataDir: filepath.Join(p.dir, s.name)}}
		h.replay(true)
		t.Logf("%s: %d moves in %d entries", s.name, h.moves, h.last)
		most = max(most, h.moves)
	}
	if most < 2*rounds {
		t.Errorf("%d moves, want at least one by a plan and one by a drain in each round", most)
	}
}

// killDuring runs a request of which the outcome is unknown. Meanwhile the leader is killed, and
// in one of three cases another server too, so that no quorum remains. Then they start again.
func (p *processPool) killDuring(rng *rand.Rand, request func(c *client.Client)) {
	p.t.Helper()
	lead := p.waitLeader()
	killed := []*poolServer{lead}
	if rng.IntN(3) == 0 {
		for _, s := range p.servers {
			if s != lead {
				killed = append(killed, s)
				break
			}
		}
	}
	delay := time.Duration(rng.IntN(40)) * time.Millisecond
	c, done := lead.c, make(chan struct{})
	go func() {
		defer close(done)
		request(c)
	}()
	time.Sleep(delay) // real processes: the request is at another point each time
	for _, s := range killed {
		s.kill()
	}
	<-done
	for _, s := range killed {
		s.start()
	}
	p.waitLeader()
	for _, s := range killed {
		p.waitCaughtUp(s)
	}
	p.dial()
}

// rebalanceUntil runs plans until an instance of a job is placed. The disruption budget allows
// a move only once the instance that was moved before runs again.
func (p *processPool) rebalanceUntil(limit *client.Moves, job string) {
	p.t.Helper()
	eventually(p.t, "the job that waits is placed", func() bool {
		if p.nodeOf(job) != "" {
			return true
		}
		plan, err := p.c.Scheduler().PlanRebalance(p.t.Context(), limit)
		if err == nil && len(plan.Steps) > 0 {
			_, _ = p.c.Scheduler().Rebalance(p.t.Context(), plan.PlanToken) // the next plan contains what is left
		}
		return false
	})
}

// nodeOf returns the node of the only instance of a job; "": it has none.
func (p *processPool) nodeOf(job string) string {
	list, _, err := p.c.Jobs().Allocations(p.t.Context(), job, nil)
	if err != nil {
		return ""
	}
	for _, a := range list {
		if a.DesiredStatus == "run" && a.ClientStatus == "running" {
			return a.NodeID
		}
	}
	return ""
}

// disableMoves turns off moves of evaluations.
func disableMoves(t *testing.T, c *client.Client) {
	t.Helper()
	api := c.Scheduler()
	conf, _, err := api.Get(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	conf.Moves = nil
	if _, err := api.Set(t.Context(), conf, nil); err != nil {
		t.Fatal(err)
	}
}
