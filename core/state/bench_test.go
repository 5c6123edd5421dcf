package state_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/cede-scheduler/cede/core/model"
	. "github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// benchNode is a node of construction (b) of the measurements that the budgets
// refer to.
func benchNode(i int) *model.Node {
	return &model.Node{
		ID: uuid("node", i), Datacenter: "dc1",
		Capacity: model.Resources{"cpu": 4000, "memory": 8192, "disk": 100 << 10},
		Reserved: model.Resources{"cpu": 100, "memory": 256, "disk": 4 << 10},
	}
}

func benchJob(i int) *model.Job {
	return &model.Job{
		Namespace: model.DefaultNamespace, ID: fmt.Sprintf("p%d-g%d", 20+5*(i%7), i/7), Priority: int32(20 + 5*(i%7)),
		Groups: []*model.Group{{Name: "g", Count: 1000, Resources: model.Resources{"cpu": 390, "memory": 790, "disk": 300}}},
	}
}

func uuid(kind string, i int) string {
	return apply.FollowUpID(uint64(i), model.JobKey{Namespace: "bench", ID: kind})
}

// benchStore has nodes of benchNode, 70 jobs, and perNode allocations on each
// node.
func benchStore(tb testing.TB, nodes, perNode int) (*Store, []*model.Job) {
	tb.Helper()
	s := New()
	t := s.Begin(1)
	for i := range nodes {
		if err := t.NodeWriter().Upsert(benchNode(i)); err != nil {
			tb.Fatal(err)
		}
	}
	jobs := make([]*model.Job, 70)
	for i := range jobs {
		jobs[i] = benchJob(i)
		if err := t.JobWriter().Upsert(jobs[i]); err != nil {
			tb.Fatal(err)
		}
	}
	t.Commit()
	t = s.Begin(2)
	t.AllocWriter().Upsert(benchAllocs(jobs, nodes, "present", 0, nodes*perNode)...)
	t.Commit()
	return s, jobs
}

func benchAllocs(jobs []*model.Job, nodes int, kind string, from, n int) []*model.Allocation {
	as := make([]*model.Allocation, n)
	for i := range as {
		k := from + i
		// A stride spreads every batch over the chunks.
		node := k * 7919 % nodes
		j := jobs[(node+k/nodes*13)%len(jobs)]
		as[i] = &model.Allocation{ID: uuid(kind, k), Job: j, Group: j.Groups[0], NodeID: uuid("node", node)}
	}
	return as
}

// BenchmarkF is construction (f): batches of new allocations spread over 1,000
// nodes, one transaction each. After 10,000 more the store is reset, so that its
// size stays meaningful.
func BenchmarkF(b *testing.B) {
	const nodes, more = 1000, 10_000
	for _, present := range []int{0, 10_000} {
		for _, batch := range []int{1, 100, 1000} {
			b.Run(fmt.Sprintf("batch=%d/present=%d", batch, present), func(b *testing.B) {
				s, jobs := benchStore(b, nodes, present/nodes)
				base := s.Snapshot()
				fresh := benchAllocs(jobs, nodes, "fresh", 0, more)
				b.ReportAllocs()
				b.ResetTimer()
				at := 0
				for range b.N {
					if at == more {
						at = 0
						s.SetCurrent(base)
					}
					t := s.Begin(s.Snapshot().Index() + 1)
					t.AllocWriter().Upsert(fresh[at : at+batch]...)
					t.Commit()
					at += batch
				}
				b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "allocs/s")
			})
		}
	}
}

// BenchmarkUpdate replaces existing allocations, as client status updates do.
func BenchmarkUpdate(b *testing.B) {
	for _, batch := range []int{1, 100, 5000} {
		b.Run(fmt.Sprintf("batch=%d/present=200000", batch), func(b *testing.B) {
			s, _ := benchStore(b, 10_000, 20)
			b.ReportAllocs()
			b.ResetTimer()
			next := 0
			for range b.N {
				t := s.Begin(s.Snapshot().Index() + 1)
				for range batch {
					next = (next + 7919) % 200_000
					a := *t.Alloc(uuid("present", next))
					a.Client = 1 - a.Client
					t.AllocWriter().Upsert(&a)
				}
				t.Commit()
			}
			b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "allocs/s")
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	s, _ := benchStore(b, 100, 1)
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Snapshot()
	}
}

func BenchmarkFork(b *testing.B) {
	s, _ := benchStore(b, 1000, 10)
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Snapshot().Fork(9)
	}
}

// BenchmarkScan tests every node of a cluster with free capacity, so that every
// column is read.
func BenchmarkScan(b *testing.B) {
	for _, nodes := range []int{10_000} {
		for _, dims := range []int{1, 2, 3, 4} {
			b.Run(fmt.Sprintf("nodes=%d/dims=%d", nodes, dims), func(b *testing.B) {
				s, _ := benchStore(b, nodes, 5)
				sn := s.Snapshot()
				ask := &model.Ask{Vec: model.Vector{100, 100, 100, 0}}
				for d := range dims {
					ask.Dims = append(ask.Dims, uint8(d))
				}
				var found uint64
				b.ReportAllocs()
				for b.Loop() {
					for i := range sn.ChunkCount() {
						found |= sn.Chunk(i).Fitting(ask)
					}
				}
				_ = found
			})
		}
	}
}

func BenchmarkGet(b *testing.B) {
	s, _ := benchStore(b, 10_000, 20)
	sn := s.Snapshot()
	ids := make([]string, 1<<16)
	for i := range ids {
		ids[i] = uuid("present", i*7919%200_000)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		_ = sn.Alloc(ids[i&(1<<16-1)])
		i++
	}
}

func BenchmarkNodeRows(b *testing.B) {
	s, _ := benchStore(b, 10_000, 20)
	sn := s.Snapshot()
	b.Run("rows", func(b *testing.B) {
		b.ReportAllocs()
		i, sum := 0, 0
		for b.Loop() {
			pos := i * 7919 % 10_000
			for _, r := range sn.Chunk(pos / ChunkSize).Rows(pos % ChunkSize) {
				sum += int(r.Priority)
			}
			i++
		}
		_ = sum
	})
	b.Run("allocs", func(b *testing.B) {
		b.ReportAllocs()
		var dst []*model.Allocation
		i := 0
		for b.Loop() {
			dst = sn.AppendNodeAllocs(dst[:0], sn.NodeAt(int32(i*7919%10_000)).ID)
			i++
		}
	})
}

// BenchmarkOrder registers one more node and reads the order of all.
func BenchmarkOrder(b *testing.B) {
	s, _ := benchStore(b, 10_000, 0)
	s.Snapshot().NodeOrder()
	b.ReportAllocs()
	i := 10_000
	for b.Loop() {
		t := s.Begin(s.Snapshot().Index() + 1)
		_ = t.NodeWriter().Upsert(benchNode(i))
		t.Commit().NodeOrder()
		t = s.Begin(s.Snapshot().Index() + 1)
		t.NodeWriter().Delete(uuid("node", i))
		t.Commit().NodeOrder()
		i++
	}
}

// BenchmarkBigJob adds allocations to a job of 50,000, one transaction each.
func BenchmarkBigJob(b *testing.B) {
	s, jobs := benchStore(b, 1000, 0)
	one := jobs[:1]
	t := s.Begin(3)
	t.AllocWriter().Upsert(benchAllocs(one, 1000, "present", 0, 50_000)...)
	base := t.Commit()
	fresh := benchAllocs(one, 1000, "fresh", 0, 10_000)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if i%len(fresh) == 0 {
			s.SetCurrent(base)
		}
		t := s.Begin(s.Snapshot().Index() + 1)
		t.AllocWriter().Upsert(fresh[i%len(fresh)])
		t.Commit()
	}
}

// BenchmarkLoad is 2,000,000 allocations on 6,100 nodes, in transactions of
// 1,000.
func BenchmarkLoad(b *testing.B) {
	const nodes, allocs, batch = 6100, 2_000_000, 1000
	for range b.N {
		b.StopTimer()
		s, jobs := benchStore(b, nodes, 0)
		before := heap()
		b.StartTimer()
		for from := 0; from < allocs; from += batch {
			t := s.Begin(s.Snapshot().Index() + 1)
			t.AllocWriter().Upsert(benchAllocs(jobs, nodes, "load", from, batch)...)
			t.Commit()
		}
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/allocs, "heapB/alloc")
		if s.Snapshot().AllocCount() != allocs {
			b.Fatal("not all there")
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N*allocs)/b.Elapsed().Seconds(), "allocs/s")
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
