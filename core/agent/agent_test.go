package agent_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/agent"
)

// settle lets an agent in a synctest bubble run for d.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAgent_RunsAndReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		start(t, c, nil)
		c.place(simulated("good", `{"run_for":"10s"}`), simulated("bad", `{"run_for":"20s","exit_code":3}`), simulated("endless", ``))
		settle(time.Second)
		for _, id := range []string{"good", "bad", "endless"} {
			if c.status(id) != agent.StatusRunning {
				t.Errorf("%s is %s after a second", id, c.status(id))
			}
		}
		settle(30 * time.Second)
		if c.status("good") != agent.StatusComplete || c.status("bad") != agent.StatusFailed || c.status("endless") != agent.StatusRunning {
			t.Errorf("after half a minute: %v", c.order())
		}
		if text := c.last("bad").Text; text != "task main exited with code 3" {
			t.Errorf("it failed with %q", text)
		}
		c.stop("endless")
		settle(time.Second)
		if u := c.last("endless"); u.Status != agent.StatusComplete || u.Text != "preempted" {
			t.Errorf("it stopped as %+v", u)
		}
	})
}

func TestAgent_BatchesReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		start(t, c, nil)
		var all []*agent.Allocation
		for i := range 500 {
			a := simulated(fmt.Sprint("a", i), ``)
			a.Resources = nil
			all = append(all, a)
		}
		settle(time.Second)
		c.place(all...)
		settle(time.Second)
		if len(c.history) != 500 || c.batches > 5 {
			t.Errorf("%d reports in %d batches, want 500 in a few", len(c.history), c.batches)
		}
	})
}

func TestAgent_RetriesReportsUntilAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		start(t, c, nil)
		c.do(func() { c.refuse = errors.New("no leader") })
		c.place(simulated("a", `{"run_for":"5s"}`))
		settle(time.Minute)
		if c.status("a") != agent.StatusPending {
			t.Fatalf("status on servers that reject updates: %s", c.status("a"))
		}
		c.do(func() { c.refuse = nil })
		settle(time.Minute)
		if u := c.last("a"); u.Status != agent.StatusComplete || u.Started.IsZero() {
			t.Errorf("update after recovery: %+v", u)
		}
	})
}

func TestAgent_RegistersAgainWhenForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		start(t, c, nil)
		settle(time.Minute)
		c.mu.Lock()
		if c.registered != 1 || c.beats < 11 || c.beats > 16 {
			t.Errorf("in a minute at a TTL of 10 s: registered %d times, %d heartbeats", c.registered, c.beats)
		}
		c.known = false
		c.mu.Unlock()
		settle(10 * time.Second)
		if c.registered != 2 {
			t.Errorf("a node that was forgotten registered %d times", c.registered)
		}
	})
}

// A preempts B, which never ran and had preempted C: A waits for C.
func TestAgent_StartsAfterAllVictimsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		start(t, c, nil)
		stubborn := simulated("c", `{"ignore_term":true}`)
		stubborn.Tasks[0].KillTimeout = 30 * time.Second
		c.place(stubborn)
		settle(time.Second)
		c.do(func() {
			c.unwant("c")
			c.allocs["b"] = simulated("b", ``, "c")
		})
		settle(5 * time.Second)
		c.do(func() {
			c.unwant("b")
			c.allocs["a"] = simulated("a", ``, "b", "elsewhere")
		})
		settle(20 * time.Second)
		if c.status("b") != agent.StatusComplete || c.status("a") != agent.StatusPending || c.status("c") != agent.StatusRunning {
			t.Fatalf("before the victim's kill timeout: %v", c.order())
		}
		settle(10 * time.Second)
		if c.status("a") != agent.StatusRunning || c.status("c") != agent.StatusComplete {
			t.Fatalf("after the victim's kill timeout: %v", c.order())
		}
		if d := c.last("a").Started.Sub(c.last("c").Started); d < 30*time.Second || d > 32*time.Second {
			t.Errorf("it started %v after its victim, which had 31 s", d)
		}
	})
}

func TestAgent_WaitsForResourcesOfStoppingAllocs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		start(t, c, nil)
		old, fits, big := simulated("old", `{"stop_after":"5s"}`), simulated("fits", ``), simulated("big", ``)
		old.Tasks[0].KillTimeout = time.Minute
		old.Resources, fits.Resources, big.Resources = map[string]int64{"memory": 600}, map[string]int64{"memory": 300}, map[string]int64{"memory": 500}
		samePort := simulated("port", ``)
		old.Ports, samePort.Ports = []agent.Port{{Value: 80}}, []agent.Port{{Value: 80}}
		c.place(old)
		settle(time.Second)
		c.do(func() {
			c.unwant("old")
			c.allocs["fits"], c.allocs["big"], c.allocs["port"] = fits, big, samePort
		})
		settle(2 * time.Second)
		if c.status("fits") != agent.StatusRunning || c.status("big") != agent.StatusPending || c.status("port") != agent.StatusPending {
			t.Errorf("while the old one stops: %v", c.order())
		}
		settle(5 * time.Second)
		if c.status("big") != agent.StatusRunning || c.status("port") != agent.StatusRunning {
			t.Errorf("once it is gone: %v", c.order())
		}
	})
}

func TestAgent_StopsAllocsUnknownToServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n := start(t, c, nil)
		c.place(simulated("a", ``), simulated("b", ``))
		settle(time.Second)
		c.do(func() { delete(c.allocs, "a") })
		settle(time.Second)
		if stats := n.Stats(); stats[agent.StatusRunning] != 1 || stats[agent.StatusComplete] != 1 {
			t.Errorf("it runs %v", stats)
		}
	})
}

// Restored servers may require an allocation that they stopped after the snapshot. Its report
// states why it was stopped, so that its work does not count as done, whether or not the agent
// restarted since.
func TestAgent_ReportsWhyAllocsOfRestoredServersWereStopped(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster()
			dir := t.TempDir()
			config := func(conf *agent.Config) { conf.DataDir = dir }
			n := start(t, c, config)
			c.place(simulated("stopped", `{}`), simulated("ended", `{"run_for":"1s"}`), simulated("kept", `{}`))
			settle(500 * time.Millisecond)
			c.stop("stopped")
			settle(2 * time.Second)
			if restarts {
				n.stop()
				start(t, c, config)
				settle(time.Second)
			}
			c.restore()
			settle(time.Second)
			for id, want := range map[string]agent.Update{
				"stopped": {Status: agent.StatusComplete, Text: "preempted"}, "ended": {Status: agent.StatusComplete}, "kept": {Status: agent.StatusRunning},
			} {
				if got := c.last(id); got.Status != want.Status || got.Text != want.Text {
					t.Errorf("restarts %t: %s is reported as %+v, want %+v", restarts, id, got, want)
				}
			}
		})
	}
}

// An allocation may still be stopping when a restored state requires it again. Its report states
// why it was stopped.
func TestAgent_ReportsWhyAllocsStopDuringRestore(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster()
			dir := t.TempDir()
			config := func(conf *agent.Config) { conf.DataDir = dir }
			n := start(t, c, config)
			again, stopped := simulated("again", `{"stop_after":"20s"}`), simulated("stopped", `{"stop_after":"20s"}`)
			again.Tasks[0].KillTimeout, stopped.Tasks[0].KillTimeout = time.Minute, time.Minute
			c.place(again, stopped)
			settle(500 * time.Millisecond)
			c.stop("again", "stopped")
			settle(2 * time.Second)
			c.restore()
			settle(time.Second)
			c.stop("stopped")
			settle(time.Second)
			if restarts {
				n.stop()
				start(t, c, config)
			}
			settle(time.Minute)
			for _, id := range []string{"again", "stopped"} {
				if got := c.last(id); got.Status != agent.StatusComplete || got.Text == "" {
					t.Errorf("restarts %t: %s is reported as %+v", restarts, id, got)
				}
			}
		})
	}
}

// A server that is behind lists fewer allocations, which must not stop the others.
func TestAgent_IgnoresStaleState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n := start(t, c, nil)
		c.place(simulated("a", ``))
		settle(time.Second)
		c.mu.Lock()
		kept, index := c.allocs, c.index
		c.allocs, c.index = map[string]*agent.Allocation{}, 1
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
		synctest.Wait()
		c.mu.Lock()
		c.allocs, c.index = kept, index+1
		c.mu.Unlock()
		settle(time.Minute)
		if stats := n.Stats(); stats[agent.StatusRunning] != 1 {
			t.Errorf("it runs %v", stats)
		}
	})
}

func TestAgent_SimulatedTasksSurviveRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		dir := t.TempDir()
		config := func(conf *agent.Config) { conf.DataDir = dir }
		first := start(t, c, config)
		c.place(simulated("a", `{"run_for":"1m"}`))
		settle(10 * time.Second)
		first.stop()
		settle(20 * time.Second)
		second := start(t, c, config)
		if second.NodeID() != first.NodeID() {
			t.Error("it is another node")
		}
		settle(20 * time.Second)
		if c.status("a") != agent.StatusRunning {
			t.Errorf("after 50 s it is %s", c.status("a"))
		}
		settle(20 * time.Second)
		if u := c.last("a"); u.Status != agent.StatusComplete {
			t.Errorf("after 70 s: %+v", u)
		}
		if n := slices.Index(c.order(), "a running"); n < 0 {
			t.Errorf("reports: %v", c.order())
		}
	})
}

func TestAgent_LeaderTaskEndsOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		start(t, c, nil)
		a := simulated("a", `{"run_for":"10s"}`)
		a.Tasks[0].Leader = true
		a.Tasks = append(a.Tasks, agent.Task{Name: "side", Driver: "sim"})
		c.place(a)
		settle(5 * time.Second)
		if c.status("a") != agent.StatusRunning {
			t.Fatalf("it is %s", c.status("a"))
		}
		settle(10 * time.Second)
		if c.status("a") != agent.StatusComplete {
			t.Errorf("status after the leader ended: %s", c.status("a"))
		}
	})
}

func TestAgent_ReportsStartFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		start(t, c, nil)
		none := simulated("none", ``)
		none.Tasks[0].Driver = "docker"
		c.place(none, simulated("typo", `{"runfor":"1s"}`))
		settle(time.Second)
		for id, want := range map[string]string{"none": `no driver "docker"`, "typo": `unknown field "runfor"`} {
			if u := c.last(id); u.Status != agent.StatusFailed || !strings.Contains(u.Text, want) {
				t.Errorf("%s: %+v, want %q", id, u, want)
			}
		}
	})
}

func TestAgent_CollectsEndedAllocs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		var dir string
		start(t, c, func(conf *agent.Config) { dir, conf.KeepDead, conf.KeepDeadCount = conf.DataDir, time.Hour, 2 })
		for i := range 4 {
			c.place(simulated(fmt.Sprint("a", i), fmt.Sprintf(`{"run_for":"%ds"}`, i+1)))
		}
		left := func() (names []string) {
			entries, err := os.ReadDir(filepath.Join(dir, "allocs"))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				names = append(names, e.Name())
			}
			return names
		}
		settle(2 * time.Minute)
		if got := left(); !slices.Equal(got, []string{"a2", "a3"}) {
			t.Errorf("kept %v, want the newest two", got)
		}
		settle(time.Hour)
		if got := left(); len(got) > 0 {
			t.Errorf("kept %v for more than an hour", got)
		}
	})
}

func TestAgent_StopsTasksOnExitIfConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n := start(t, c, func(conf *agent.Config) { conf.StopAll = true })
		c.place(simulated("a", ``))
		settle(time.Second)
		n.stop()
		if c.status("a") != agent.StatusComplete {
			t.Errorf("status after the agent stopped: %s", c.status("a"))
		}
	})
}

func TestNew_RejectsSecondAgent(t *testing.T) {
	c := newCluster()
	var conf agent.Config
	start(t, c, func(k *agent.Config) { conf = *k })
	eventually(t, "it has registered", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.known })
	second, err := agent.New(conf)
	if err == nil {
		err = second.Run(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "the data directory is used by another agent") {
		t.Errorf("a second agent on the same directory: %v", err)
	}
	if _, err := agent.New(agent.Config{}); err == nil || strings.Count(err.Error(), "agent: ") != 3 {
		t.Errorf("an empty configuration: %v", err)
	}
}
