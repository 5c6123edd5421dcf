package fsm_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/replication/replicationtest"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// The entries are those of a busy cluster: placements of one job on 5,000 nodes, with
// UUIDs, each in its own commit group.
const benchNodes = 5000

func uuid(kind, n int) string { return fmt.Sprintf("%08x-1f2e-4d3c-8b5a-%012x", kind, n) }

func benchServer(b *testing.B) (*server, *model.Job) {
	b.Helper()
	s := newServer()
	nodes := &replication.RegisterNodes{}
	for n := range benchNodes {
		nodes.Nodes = append(nodes.Nodes, &model.Node{
			ID: uuid(1, n), Datacenter: "dc1", Capacity: model.Resources{"cpu": 1 << 40, "memory": 1 << 40},
		})
	}
	s.Do(b, nodes)
	s.Do(b, &replication.RegisterJob{Job: &model.Job{
		Namespace: "default", ID: "web", Priority: 50,
		Groups: []*model.Group{{Name: "g", Count: 1000, Resources: model.Resources{"cpu": 100, "memory": 128}}},
	}})
	s.Quiet()
	return s, s.Store.Snapshot().Job(replicationtest.WebKey)
}

func benchEntry(j *model.Job, round, placements int) *replication.Entry {
	plan := &model.Plan{EvalID: uuid(3, round), EvalToken: uuid(4, round), Job: j.Key(), Priority: 50, SnapshotIndex: 2, Now: 1e18}
	bp := apply.BatchPlan{Plan: plan}
	for i := range placements {
		plan.Groups = append(plan.Groups, model.CommitGroup{Placements: []*model.Allocation{{
			ID: uuid(2, round*placements+i), Job: j, Group: j.Groups[0], Index: round*placements + i, NodeID: uuid(1, (round*placements+i)%benchNodes),
			EvalID: plan.EvalID, Score: 0.8125 + float64(i),
		}}})
		bp.Groups = append(bp.Groups, i)
	}
	return &replication.Entry{Time: 1e18, Command: &replication.ApplyPlans{Batch: &apply.Batch{Now: 1e18, Plans: []apply.BatchPlan{bp}}}}
}

var benchSizes = []int{100, 4096}

func eachSize(b *testing.B, run func(b *testing.B, placements int)) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprintf("allocs=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			run(b, n)
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "allocs/s")
		})
	}
}

func BenchmarkReplicationEncode(b *testing.B) {
	_, j := benchServer(b)
	eachSize(b, func(b *testing.B, n int) {
		e := benchEntry(j, 0, n)
		size := 0
		for b.Loop() {
			size = len(codec.Encode(e))
		}
		b.ReportMetric(float64(size)/float64(n), "B/alloc")
	})
}

func BenchmarkReplicationDecode(b *testing.B) {
	_, j := benchServer(b)
	eachSize(b, func(b *testing.B, n int) {
		data := codec.Encode(benchEntry(j, 0, n))
		for b.Loop() {
			if _, err := codec.Decode(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Applying includes decoding. The state is reset now and then, so that its size is
// bounded.
func BenchmarkReplicationApply(b *testing.B) {
	eachSize(b, func(b *testing.B, n int) {
		s, j := benchServer(b)
		round := 0
		for b.Loop() {
			b.StopTimer()
			if round*n >= 200_000 {
				s, j = benchServer(b)
				round = 0
			}
			data := codec.Encode(benchEntry(j, round, n))
			round++
			s.Index++
			b.StartTimer()
			if r, ok := s.FSM.Apply(&raft.Log{Index: s.Index, Data: data}).(*replication.Result); !ok || len(r.Dropped) > 0 {
				b.Fatalf("response %+v", r)
			}
		}
	})
}

// A snapshot of 5,000 nodes and 100,000 allocations.
func BenchmarkReplicationSnapshot(b *testing.B) {
	s, j := benchServer(b)
	for round := range 25 {
		s.Apply(b, benchEntry(j, round, 4000))
	}
	var out bytes.Buffer
	sn := s.Store.Snapshot()
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			out.Reset()
			if err := snapshot.Write(&out, sn, nil); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(out.Len()))
	})
	b.Run("restore", func(b *testing.B) {
		for b.Loop() {
			if _, err := snapshot.Inspect(bytes.NewReader(out.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(out.Len()))
	})
}
