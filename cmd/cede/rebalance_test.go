package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// spreadInstances leaves scattered free capacity. Moves stay off.
func spreadInstances(t *testing.T, c *client.Client) {
	t.Helper()
	api := c.Scheduler()
	conf, _, err := api.Get(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	conf.SchedulerAlgorithm = "spread"
	if _, err := api.Set(t.Context(), conf, nil); err != nil {
		t.Fatal(err)
	}
}

// A plan makes room for the jobs that wait, under its own limit, although moves are off. Its
// token does exactly that, and does nothing a second time. Without waiting jobs nothing is
// moved.
func TestRebalance_PlanIsRunAsShown(t *testing.T) {
	t.Parallel()
	d := newServer(t, "", "server: {enabled: true, workers: 2}\n")
	d.start()
	startFleet(t, client.Config{Address: d.url, Token: d.token}, 4)
	spreadInstances(t, d.client())
	registerAll(t, d.client(), sized("small", 200, 4))
	waitIdle(t, d.client())
	awaitRunning(t, d.client(), "small", 4) // plans move what started last
	api := d.client().Scheduler()
	limit := func(n int) *client.Moves { return &client.Moves{PerJob: n, Window: time.Hour} }
	if plan, err := api.PlanRebalance(t.Context(), limit(4)); err != nil || len(plan.Steps) != 0 || plan.PlanToken != "" {
		t.Fatalf("nothing waits: %+v, %v", plan, err)
	}
	for _, id := range []string{"large-a", "large-b"} { // jobs wait in the order of their evaluations
		registerAll(t, d.client(), sized(id, 900, 1))
		waitIdle(t, d.client())
		checkRunsOnce(t, d.client(), id, 0)
	}
	if plan, err := api.PlanRebalance(t.Context(), nil); err != nil || len(plan.Steps) != 1 || plan.Moves.PerJob != 1 || plan.Steps[0].JobID != "large-a" {
		t.Fatalf("one move in an hour is the default: %+v, %v", plan, err)
	}
	plan, err := api.PlanRebalance(t.Context(), limit(4))
	if err != nil || len(plan.Steps) != 2 || plan.PlanToken == "" {
		t.Fatalf("%+v, %v", plan, err)
	}
	for i, s := range plan.Steps {
		// The node that loses least may be that to which the first step moves an instance.
		if len(s.Place) != 1 || len(s.Move) < 1 || len(s.Move) > 1+i || s.Move[0].JobID != "small" || s.Move[0].PreviousAllocation == "" {
			t.Fatalf("%+v", s)
		}
	}
	if again, err := api.PlanRebalance(t.Context(), limit(4)); err != nil || again.Steps[0].Move[0].PreviousAllocation != plan.Steps[0].Move[0].PreviousAllocation {
		t.Errorf("another plan on the same state: %+v, %v", again, err)
	}
	result, err := api.Rebalance(t.Context(), plan.PlanToken)
	if err != nil || len(result.Steps) != 2 || result.Steps[0].Placed != 1 || result.Steps[0].Moved != 1 || len(result.Steps[1].Rejected) != 0 || result.Index == 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	waitIdle(t, d.client())
	for job, count := range map[string]int{"small": 4, "large-a": 1, "large-b": 1} {
		checkRunsOnce(t, d.client(), job, count)
	}
	if _, err := api.Rebalance(t.Context(), plan.PlanToken); !client.IsConflict(err) {
		t.Errorf("the plan was run twice: %v", err)
	}
	if _, err := api.Rebalance(t.Context(), plan.PlanToken[:len(plan.PlanToken)-2]+"xx"); err == nil || client.IsConflict(err) {
		t.Errorf("a changed token: %v", err)
	}
	evals, _, err := d.client().Jobs().Evaluations(t.Context(), "large-a", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range evals {
		if e.Status == "blocked" {
			t.Errorf("evaluation %s waits although its job is placed", e.ID)
		}
	}
}

// A server is killed while it runs a plan. Afterwards every instance exists once, and the log
// contains both halves of each move in one entry. The rest of the work is planned again.
func TestKill_RebalanceIsNeverHalf(t *testing.T) {
	t.Parallel()
	const nodes, large = 6, 3
	rounds := soak.Count(3, 100)
	rng := rand.New(rand.NewPCG(testSeed(t), 1))
	d := newServer(t, "", `server: {enabled: true, workers: 2, raft: {heartbeat: 100ms, election: 100ms, lease: 100ms, snapshot_interval: 100ms, snapshot_threshold: 60, trailing_logs: 1000000}}
`)
	d.start()
	startFleet(t, client.Config{Address: d.url, Token: d.token}, nodes)
	spreadInstances(t, d.client())
	h := &stateChecker{t: t, d: d}
	limit := &client.Moves{PerJob: nodes, Window: time.Minute}
	for round := range rounds {
		small := fmt.Sprintf("small-%d", round)
		registerAll(t, d.client(), sized(small, 200, nodes)) // one on each node
		waitIdle(t, d.client())
		for i := range large {
			registerAll(t, d.client(), sized(fmt.Sprintf("large-%d-%d", round, i), 900, 1))
		}
		waitIdle(t, d.client())
		plan, err := d.client().Scheduler().PlanRebalance(t.Context(), limit)
		if err != nil || len(plan.Steps) == 0 {
			t.Fatalf("round %d: %+v, %v", round, plan, err)
		}
		killed := make(chan struct{})
		delay := time.Duration(rng.IntN(30)) * time.Millisecond
		go func() {
			defer close(killed)
			time.Sleep(delay)
			d.kill()
		}()
		_, _ = d.client().Scheduler().Rebalance(t.Context(), plan.PlanToken) // the outcome is unknown
		<-killed
		h.replay(round == rounds-1)
		if t.Failed() {
			t.Fatalf("failed in round %d with data directory %s\n%s", round, d.dataDir, d.stderr.filtered())
		}
		d.start()
		waitIdle(t, d.client())
		for {
			plan, err = d.client().Scheduler().PlanRebalance(t.Context(), limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(plan.Steps) == 0 {
				break
			}
			if _, err := d.client().Scheduler().Rebalance(t.Context(), plan.PlanToken); err != nil {
				t.Fatal(err)
			}
			waitIdle(t, d.client())
		}
		h.recordHash()
		checkRunsOnce(t, d.client(), small, nodes)
		checkRunsOnce(t, d.client(), fmt.Sprintf("large-%d-0", round), 1)
		deregisterAll(t, d.client())
		waitIdle(t, d.client())
	}
	d.stop()
	h.replay(true)
	t.Logf("%d moves in %d rounds", h.moves, rounds)
	if h.moves == 0 {
		t.Error("nothing was moved")
	}
}
