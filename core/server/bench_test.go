package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/coretest/cluster"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication/raftnode"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/storage"
)

// onDisk returns a cluster of one server in real time, with its log on disk.
func onDisk(b *testing.B, change func(*Config)) *loadCluster {
	b.Helper()
	disk, err := storage.Open(storage.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = disk.Close() })
	return inRealTime(b, change, raftnode.Config{Log: disk.Log(), Stable: disk.Log(), Snapshots: disk.Snapshots(), Modules: disk.Blobs()})
}

// inMemory is onDisk without a disk, for benchmarks whose preparation takes 5,000 writes.
func inMemory(b *testing.B, change func(*Config)) *loadCluster {
	b.Helper()
	log := raft.NewInmemStore()
	return inRealTime(b, change, raftnode.Config{Log: log, Stable: log, Snapshots: raft.NewInmemSnapshotStore()})
}

func inRealTime(b *testing.B, change func(*Config), rc raftnode.Config) *loadCluster {
	b.Helper()
	w := &harness{t: b, ctx: b.Context(), change: func(c *Config) {
		c.Logger = nil
		change(c)
	}}
	w.cluster = cluster.Start(b, cluster.Options[*Server]{New: w.newServer, Open: func(m *cluster.Member[*Server], c *raftnode.Config) {
		w.openLog(m, c)
		c.Log, c.Stable, c.Snapshots, c.Modules = rc.Log, rc.Stable, rc.Snapshots, rc.Modules
	}})
	b.Cleanup(w.cluster.Stop)
	m := w.members[0]
	for m.server.term.Load() == nil {
		time.Sleep(time.Millisecond)
	}
	return &loadCluster{harness: w, s: m.server, entries: &m.faults.entries, wait: func() {}}
}

// BenchmarkStorm1 measures 5,000 nodes and 10 system jobs: registered with coalescing off,
// then drained.
func BenchmarkStorm1(b *testing.B) {
	const nodes = 5000
	for b.Loop() {
		b.StopTimer()
		st := inMemory(b, func(*Config) {})
		st.systemJobs()
		st.waitBrokerIdle(10 * time.Millisecond)
		off := false
		st.configure(func(c *model.SchedulerConfig) { c.BrokerPaused, c.Coalescing = true, &off })
		for !st.s.broker.Paused() {
			time.Sleep(time.Millisecond)
		}
		st.registerAll(b, nodes)
		for stats := st.s.broker.Stats(); stats.Types[model.JobSystem].Ready+stats.Types[model.JobSystem].Pending < 10*nodes; stats = st.s.broker.Stats() {
			time.Sleep(10 * time.Millisecond)
		}
		st.resetCount()
		before := st.processed()
		b.StartTimer()
		st.configure(func(c *model.SchedulerConfig) { c.Coalescing = &off })
		for st.processed() == before {
			time.Sleep(time.Millisecond)
		}
		st.waitBrokerIdle(5 * time.Millisecond)
		b.ReportMetric(float64(st.entries.Load()), "entries")
		b.ReportMetric(float64(st.processed()-before), "processed")
	}
}

// BenchmarkStorm2 measures 5,000 nodes that stop heartbeating, from the last expiry until
// the cluster is idle.
func BenchmarkStorm2(b *testing.B) {
	const nodes = 5000
	for b.Loop() {
		b.StopTimer()
		st := inMemory(b, func(c *Config) { c.HeartbeatRate = 1000 })
		st.systemJobs()
		st.registerAll(b, nodes)
		st.submitOnce(b, coretest.Job("service").Count(nodes).Ask(100, 100, 0).Obj())
		st.waitBrokerIdle(20 * time.Millisecond)
		st.beatAll(b, nodes)
		st.resetCount()
		for st.s.nodes.Len() > 0 {
			time.Sleep(time.Millisecond)
		}
		b.StartTimer()
		for !st.allDown() {
			time.Sleep(5 * time.Millisecond)
		}
		st.waitBrokerIdle(5 * time.Millisecond)
		b.ReportMetric(float64(st.entries.Load()), "entries")
	}
}

// BenchmarkPlace measures the placement of allocations through the whole server, with its
// log on disk.
func BenchmarkPlace(b *testing.B) {
	const nodes, jobs, each = 1000, 100, 1000
	placed := 0
	for b.Loop() {
		b.StopTimer()
		st := onDisk(b, func(*Config) {})
		st.all(nodes, func(i int) {
			node := coretest.Node(nodeName(i), 400_000, 800_000, 10_000_000)
			if _, err := st.s.RegisterNode(st.ctx, node, stormSecret); err != nil {
				b.Error(err)
			}
		})
		b.StartTimer()
		for i := range jobs {
			st.submitOnce(b, coretest.Job(fmt.Sprintf("job-%d", i)).Type(model.JobBatch).Count(each).Ask(10, 10, 0).Obj())
		}
		for st.s.Snapshot().AllocCount() < jobs*each {
			time.Sleep(time.Millisecond)
		}
		placed += jobs * each
		b.ReportMetric(float64(placed)/b.Elapsed().Seconds(), "allocs/s")
		b.ReportMetric(float64(st.entries.Load()), "entries")
	}
}

// BenchmarkSubmittedToPlaced measures one job at a time, from its registration until its
// allocation is placed and durable.
func BenchmarkSubmittedToPlaced(b *testing.B) {
	const nodes = 1000
	st := onDisk(b, func(*Config) {})
	st.all(nodes, func(i int) {
		node := coretest.Node(nodeName(i), 400_000, 800_000, 10_000_000)
		if _, err := st.s.RegisterNode(st.ctx, node, stormSecret); err != nil {
			b.Error(err)
		}
	})
	st.waitBrokerIdle(10 * time.Millisecond)
	had := 0
	for b.Loop() {
		watch := st.s.Watch(state.TableAllocs.All())
		st.submitOnce(b, coretest.Job(fmt.Sprintf("job-%d", had)).Type(model.JobBatch).Ask(10, 10, 0).Obj())
		for st.s.Snapshot().AllocCount() == had {
			select {
			case <-watch.C:
			case <-time.After(time.Millisecond):
			}
		}
		watch.Stop()
		had++
	}
}

func (st *loadCluster) submitOnce(b *testing.B, j *model.Job) {
	b.Helper()
	if _, err := st.s.RegisterJob(st.ctx, j, endpoint.RegisterOptions{}); err != nil {
		b.Fatal(err)
	}
}
