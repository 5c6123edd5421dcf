package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A server is killed repeatedly while it moves instances to make room for larger ones. After
// each kill every instance exists once, and the log contains both halves of each move in one
// entry.
func TestKill_MovesAreNeverHalf(t *testing.T) {
	t.Parallel()
	const nodes = 6
	rounds := soak.Count(3, 100)
	rng := rand.New(rand.NewPCG(testSeed(t), 0))
	d := newServer(t, "", `server: {enabled: true, workers: 2, raft: {heartbeat: 100ms, election: 100ms, lease: 100ms, snapshot_interval: 100ms, snapshot_threshold: 60, trailing_logs: 1000000}}
`)
	d.start()
	startFleet(t, client.Config{Address: d.url, Token: d.token}, nodes)
	enableMoves(t, d.client())
	h := &stateChecker{t: t, d: d}
	for round := range rounds {
		small := fmt.Sprintf("small-%d", round)
		registerAll(t, d.client(), sized(small, 200, nodes)) // one on each node
		waitIdle(t, d.client())
		killed := make(chan struct{})
		delay := time.Duration(rng.IntN(40)) * time.Millisecond
		go func() {
			defer close(killed)
			time.Sleep(delay)
			d.kill()
		}()
		for i := range 3 {
			job := sized(fmt.Sprintf("large-%d-%d", round, i), 900, 1)
			if _, err := d.client().Jobs().Register(t.Context(), job, nil); err != nil {
				break // killed; the outcome is unknown
			}
		}
		<-killed
		h.replay(round == rounds-1)
		if t.Failed() {
			t.Fatalf("failed in round %d with data directory %s\n%s", round, d.dataDir, d.stderr.filtered())
		}
		d.start()
		registerAll(t, d.client(), sized(fmt.Sprintf("large-%d-0", round), 900, 1)) // also if its first request was lost
		waitIdle(t, d.client())
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

// A plan lists the instance of another job that would be moved, and its token moves exactly
// that one. If the instance has ended meanwhile, the token is refused and nothing is moved.
func TestMoves_PlanIsRunAsShown(t *testing.T) {
	t.Parallel()
	d := newServer(t, "", "server: {enabled: true, workers: 2}\n")
	d.start()
	startFleet(t, client.Config{Address: d.url, Token: d.token}, 3)
	enableMoves(t, d.client())
	registerAll(t, d.client(), sized("small", 200, 3))
	waitIdle(t, d.client())
	c := d.client()
	large := sized("large", 900, 1)
	plan, err := c.Jobs().Plan(t.Context(), large, nil)
	if err != nil || len(plan.Move) != 1 || len(plan.Place) != 1 || len(plan.Stop) != 0 || plan.PlanToken == "" {
		t.Fatalf("%+v, %v", plan, err)
	}
	if _, err := c.Jobs().Run(t.Context(), large, plan.PlanToken, nil); err != nil {
		t.Fatal(err)
	}
	waitIdle(t, d.client())
	checkRunsOnce(t, d.client(), "small", 3)
	checkRunsOnce(t, d.client(), "large", 1)
	moved, _, err := c.Allocations().Get(t.Context(), plan.Move[0].PreviousAllocation, nil)
	if err != nil || moved.NextAllocation != plan.Move[0].ID || moved.DesiredStatus != "stop" || !strings.HasPrefix(moved.DesiredDescription, "moved to make room for ") {
		t.Fatalf("%+v, %v", moved, err)
	}

	second := sized("second", 900, 1)
	plan, err = c.Jobs().Plan(t.Context(), second, nil)
	if err != nil || len(plan.Move) == 0 {
		t.Fatalf("%+v, %v", plan, err)
	}
	if _, err := c.Jobs().Stop(t.Context(), "small", nil); err != nil {
		t.Fatal(err)
	}
	waitIdle(t, d.client())
	if _, err := c.Jobs().Run(t.Context(), second, plan.PlanToken, nil); err == nil || !strings.Contains(err.Error(), plan.Move[0].PreviousAllocation) {
		t.Errorf("the plan was run although its instance has ended: %v", err)
	}
	if _, _, err := c.Jobs().Get(t.Context(), "second", nil); !client.IsNotFound(err) {
		t.Errorf("the job of the refused plan was registered: %v", err)
	}
}

// enableMoves enables moves and spreads instances, so that free capacity is scattered.
func enableMoves(t *testing.T, c *client.Client) {
	t.Helper()
	api := c.Scheduler()
	conf, _, err := api.Get(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	conf.SchedulerAlgorithm, conf.Moves = "spread", &client.Moves{PerJob: 100, Window: time.Hour}
	if _, err := api.Set(t.Context(), conf, nil); err != nil {
		t.Fatal(err)
	}
}

// sized returns a job with instances that request the given memory each.
func sized(id string, memory, count int) *client.Job {
	j := shellJob(id, 50, count, memory, 0, "")
	for _, task := range j.TaskGroups[0].Tasks {
		task.Driver, task.Config = "sim", map[string]any{}
	}
	return j
}

func registerAll(t *testing.T, c *client.Client, jobs ...*client.Job) {
	t.Helper()
	for _, j := range jobs {
		if _, err := c.Jobs().Register(t.Context(), j, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func deregisterAll(t *testing.T, c *client.Client) {
	t.Helper()
	jobs, _, err := c.Jobs().List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		if _, err := c.Jobs().Stop(t.Context(), j.ID, &client.StopOptions{Purge: true}); err != nil && !strings.Contains(err.Error(), "not found") {
			t.Fatal(err)
		}
	}
}

// checkRunsOnce verifies that each instance of a job has one allocation that should run.
func checkRunsOnce(t *testing.T, c *client.Client, job string, count int) {
	t.Helper()
	list, _, err := c.Jobs().Allocations(t.Context(), job, nil)
	if err != nil {
		t.Fatal(err)
	}
	live := map[string]int{}
	for _, a := range list {
		if a.DesiredStatus == "run" && a.ClientStatus != "lost" && a.ClientStatus != "failed" {
			live[strings.SplitN(a.Name, "#", 2)[0]]++
		}
	}
	if len(live) != count {
		t.Errorf("%d of %d instances of %s are placed", len(live), count, job)
	}
	for name, n := range live {
		if n != 1 {
			t.Errorf("%s is placed %d times", name, n)
		}
	}
}

// checkMoves verifies that an entry contains both halves of each move, and that disruption
// budgets allow all of them together. It returns their number. before is the state before the entry; nil: unknown.
func checkMoves(before *state.Snapshot, a *replication.Applied) (moves int, err error) {
	if _, ok := a.Entry.Command.(*replication.ApplyPlans); !ok || before == nil {
		return 0, nil
	}
	charged := map[int32]int{} // disruptions by budget
	for to := range a.Snap.Allocs() {
		if to.MovedFrom == "" || to.CreateIndex != a.Index {
			continue
		}
		moves++
		was, is := before.Alloc(to.MovedFrom), a.Snap.Alloc(to.MovedFrom)
		if was == nil || !was.Live() || is.Desired != model.DesiredStop || is.MovedTo != to.ID || is.NodeID == to.NodeID {
			return moves, fmt.Errorf("%s continues %s, which was not moved to it", to.ID, to.MovedFrom)
		}
		if before.OverrunsBudget(was, a.Entry.Time, charged) {
			return moves, fmt.Errorf("the move of %s exceeds a disruption budget", was.ID)
		}
	}
	for from := range a.Snap.Allocs() {
		if from.MovedTo != "" && before.Alloc(from.ID).MovedTo == "" && a.Snap.Alloc(from.MovedTo) == nil {
			return moves, fmt.Errorf("%s was moved to %s, which does not exist", from.ID, from.MovedTo)
		}
	}
	return moves, nil
}
