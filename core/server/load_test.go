package server

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// A loadCluster is a cluster of one server with nodes without agents: they register, send
// heartbeats when the test does, and report nothing.
type loadCluster struct {
	*harness
	s       *Server
	entries *atomic.Int64
	wait    func() // waits until no goroutine is active, in virtual time
}

const stormSecret = "a secret of thirty-two characters"

// writeDelay is the minimum duration of a write to the log. Without it, the order of
// goroutines would determine the size of batches, and so the number of entries.
const writeDelay = time.Millisecond

func newLoadCluster(w *harness) *loadCluster {
	m := w.leader()
	m.faults.failWith(func(*replication.Entry) (bool, error) {
		time.Sleep(writeDelay)
		return false, nil
	})
	return &loadCluster{harness: w, s: m.server, entries: &m.faults.entries, wait: synctest.Wait}
}

// systemJobs registers ten system jobs for all nodes.
func (st *loadCluster) systemJobs() {
	for i := range 10 {
		st.registerJob(coretest.Job(fmt.Sprintf("sys%d", i)).Type(model.JobSystem).Priority(int32(50+i)).Ask(10, 10, 0))
	}
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

// registerAll registers nodes, many at a time.
func (st *loadCluster) registerAll(t testing.TB, n int) {
	st.all(n, func(i int) {
		node := coretest.Node(nodeName(i), 4000, 8192, 100_000)
		if _, err := st.s.RegisterNode(st.ctx, node, stormSecret); err != nil {
			t.Error(err)
		}
	})
}

func (st *loadCluster) beatAll(t testing.TB, n int) {
	st.all(n, func(i int) {
		if _, err := st.s.Heartbeat(st.ctx, nodeName(i), stormSecret); err != nil {
			t.Error(err)
		}
	})
}

func (*loadCluster) all(n int, f func(i int)) {
	var group sync.WaitGroup
	const side = 256
	for k := range side {
		group.Go(func() {
			for i := k; i < n; i += side {
				f(i)
			}
		})
	}
	group.Wait()
}

// waitBrokerIdle waits until the broker is empty.
func (st *loadCluster) waitBrokerIdle(every time.Duration) {
	for {
		time.Sleep(every)
		st.wait()
		stats := st.s.broker.Stats()
		c := stats.Total()
		if c.Ready+c.Unacked+c.Pending+c.Backoff+c.Cancelable+c.Failed == 0 && st.s.blocked.Stats().Duplicates == 0 {
			return
		}
	}
}

func (st *loadCluster) configure(change func(*model.SchedulerConfig)) {
	config := coretest.AllPreempt()
	change(config)
	st.mustCall(func(s *Server) error {
		_, err := s.SetConfig(st.ctx, config, nil)
		return err
	})
}

// resetCount resets the number of entries.
func (st *loadCluster) resetCount() { st.entries.Store(0) }

// processed returns how many evaluations were delivered since the server started.
func (st *loadCluster) processed() (n int) {
	stats := st.s.broker.Stats()
	for t := range stats.Waits {
		n += stats.Waits[t].Deliveries
	}
	return n
}

func TestLoad_ShedsQueuedEvaluations(t *testing.T) {
	for _, shedding := range []bool{true, false} {
		t.Run(fmt.Sprintf("shedding %t", shedding), func(t *testing.T) {
			nodes := max(60, soak.Count(300, 300))
			if soak.Full() && shedding { // without shedding, each of 50,000 evaluations considers 5,000 nodes
				nodes = 5000
			}
			runServers(t, 1, nil, func(w *harness) {
				st := newLoadCluster(w)
				st.systemJobs()
				st.waitBrokerIdle(time.Second)
				off := false
				st.configure(func(c *model.SchedulerConfig) { c.BrokerPaused, c.Coalescing, c.Shedding = true, &off, &shedding })
				st.registerAll(t, nodes)
				time.Sleep(time.Second)
				stats := st.s.broker.Stats()
				if c := stats.Total(); c.Ready+c.Pending != 10*nodes {
					t.Fatalf("the broker has %+v, want %d evaluations", c, 10*nodes)
				}
				st.resetCount()
				before := st.processed()
				st.configure(func(c *model.SchedulerConfig) { c.Coalescing, c.Shedding = &off, &shedding })
				time.Sleep(time.Second)
				st.waitBrokerIdle(100 * time.Millisecond)
				entries, processed := st.entries.Load(), st.processed()-before
				t.Logf("%d evaluations: %d processed, %d entries", 10*nodes, processed, entries)
				if shedding && (processed > 20 || entries > 40) {
					t.Errorf("%d processed and %d entries, want at most 20 and 40", processed, entries)
				}
				if !shedding && processed < 10*nodes {
					t.Errorf("%d of %d processed", processed, 10*nodes)
				}
				for i := range 10 {
					w.expectLiveCount(fmt.Sprintf("sys%d", i), nodes)
				}
				w.skipNodeReports()
			})
		})
	}
}

func TestLoad_BatchesRegistrations(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		st := newLoadCluster(w)
		st.systemJobs()
		st.waitBrokerIdle(time.Second)
		st.resetCount()
		st.registerAll(t, 2000)
		if n := st.entries.Load(); n > 200 {
			t.Errorf("2000 registrations made %d entries", n)
		}
		st.waitBrokerIdle(time.Second)
		w.expectLiveCount("sys3", 2000)
		st.resetCount()
		at := w.snap().Index()
		st.beatAll(t, 2000)
		st.registerAll(t, 2000) // of known nodes, without changes
		if n := st.entries.Load(); n != 0 || w.snap().Index() != at {
			t.Errorf("heartbeats of healthy nodes made %d entries", n)
		}
		w.skipNodeReports()
	})
}

func TestLoad_BatchesFailedNodes(t *testing.T) {
	if soak.Race && !soak.Full() {
		t.Skip("it counts entries; TestLoad_BatchesRegistrations has the same concurrency in less time")
	}
	nodes := 2000 // with fewer nodes, a window may hold only a few, and the next windows are short again
	if soak.Full() {
		nodes = 5000
	}
	runServers(t, 1, func(c *Config) { c.HeartbeatRate = 1000 }, func(w *harness) {
		st := newLoadCluster(w)
		st.systemJobs()
		st.registerAll(t, nodes)
		st.registerJob(coretest.Job("service").Count(nodes).Ask(100, 100, 0))
		st.waitBrokerIdle(time.Second)
		st.beatAll(t, nodes)
		st.resetCount()
		time.Sleep(2*10*time.Second + 10*time.Second) // the last TTL and its grace period
		synctest.Wait()
		last := time.Now()
		for !st.allDown() {
			time.Sleep(100 * time.Millisecond)
			if time.Since(last) > time.Minute {
				t.Fatal("nodes are not all down")
			}
		}
		st.waitBrokerIdle(100 * time.Millisecond)
		t.Logf("%d nodes: %d entries, idle %v after the last deadline", nodes, st.entries.Load(), time.Since(last))
		if n := st.entries.Load(); n > 250 {
			t.Errorf("%d nodes that failed made %d entries, want at most 250", nodes, n)
		}
		if quiet := time.Since(last); quiet > 5*time.Second {
			t.Errorf("idle %v after the last deadline, want 5 s at most", quiet)
		}
		st.beatAll(t, nodes)
		st.waitBrokerIdle(time.Second)
		w.expectLiveCount("service", nodes)
		w.skipNodeReports()
	})
}

func (st *loadCluster) allDown() bool {
	for n := range st.s.Snapshot().Nodes() {
		if n.Status != model.NodeDown {
			return false
		}
	}
	return true
}

// skipNodeReports makes the final checks ignore the missing reports of nodes without
// agents.
func (w *harness) skipNodeReports() { w.nodesSilent = true }

func TestHeartbeats_GracePeriodAfterChangeOfLeader(t *testing.T) {
	runServers(t, 3, nil, func(w *harness) {
		st := newLoadCluster(w)
		st.registerAll(t, 20)
		time.Sleep(15 * time.Second)
		if err := w.leader().node.Transfer(w.ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(25 * time.Second) // longer than the first leader would have waited
		snap := w.snap()
		for n := range snap.Nodes() {
			if n.Status != model.NodeReady {
				t.Fatalf("%s is %s", n.ID, n.Status)
			}
		}
		time.Sleep(40 * time.Second)
		st.s = w.leader().server
		if !st.allDown() {
			t.Error("nodes without heartbeats are still up")
		}
	})
}

// A node that repeatedly fails and returns ends in its actual status, and its allocations
// run.
func TestHeartbeats_FlappingNode(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		w.addNodes(3)
		w.registerJob(coretest.Job("web").Count(3).Ask(300, 300, 0))
		w.waitIdle()
		m := w.machines["n000"]
		for range 5 {
			m.stop()
			time.Sleep(40 * time.Second)
			m.start()
			time.Sleep(3 * time.Second)
		}
		w.waitIdle()
		w.expectLiveCount("web", 3)
		if n := w.snap().Node("n000"); n.Status != model.NodeReady {
			t.Errorf("node is %s", n.Status)
		}
	})
}

// A refused registration must not fail the others of its batch.
func TestRegisterNode_RefusalAffectsItsCallerOnly(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		st := newLoadCluster(w)
		st.registerAll(t, 5)
		var group sync.WaitGroup
		var failed, done atomic.Int64
		for i := range 10 {
			group.Go(func() {
				node := coretest.Node(fmt.Sprintf("more-%d", i), 100, 100, 0)
				if i == 4 { // more resources than the cluster can count
					for k := range 100 {
						node.Capacity[fmt.Sprintf("resource-%d", k)] = 1
					}
				}
				if _, err := st.s.RegisterNode(st.ctx, node, strings.Repeat("x", 40)); err != nil {
					failed.Add(1)
				} else {
					done.Add(1)
				}
			})
		}
		group.Wait()
		if failed.Load() != 1 || done.Load() != 9 {
			t.Errorf("%d failed and %d were registered, want 1 and 9", failed.Load(), done.Load())
		}
	})
}

func TestUpdateAllocs_BatchesReportsOfManyNodes(t *testing.T) {
	runServers(t, 1, nil, func(w *harness) {
		st := newLoadCluster(w)
		st.registerAll(t, 50)
		st.registerJob(coretest.Job("web").Count(50).Ask(3000, 3000, 0))
		st.waitBrokerIdle(time.Second)
		updates := map[string]string{}
		for a := range st.s.Snapshot().Allocs() {
			updates[a.NodeID] = a.ID
		}
		st.resetCount()
		st.all(50, func(i int) {
			id := updates[nodeName(i)]
			if _, err := st.s.UpdateAllocs(st.ctx, nodeName(i), stormSecret, updateOf(id)); err != nil {
				t.Error(err)
			}
		})
		if n := st.entries.Load(); n != 1 {
			t.Errorf("50 reports made %d entries, want 1", n)
		}
		w.skipNodeReports()
	})
}

func updateOf(id string) []apply.ClientUpdate {
	return []apply.ClientUpdate{{AllocID: id, Status: model.ClientRunning, Started: true, StartTime: 1}}
}
