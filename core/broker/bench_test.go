package broker_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/core/broker"
	"github.com/cede-scheduler/cede/core/model"
)

// BenchmarkD is construction (d) of the reference measurements: 50,000 service
// evaluations of priority 20+10·(i mod 8) over so many jobs. One op is 50,000
// evaluations; cycle is one evaluation of priority 95 that comes, is delivered
// and acked, with nothing or 50,000 others ready.
func BenchmarkD(b *testing.B) {
	for _, jobs := range []int{10, 50_000} {
		evals := benchEvals(50_000, jobs)
		b.Run(fmt.Sprintf("jobs=%d/enqueue", jobs), func(b *testing.B) { benchD(b, evals, true, false) })
		b.Run(fmt.Sprintf("jobs=%d/drain", jobs), func(b *testing.B) { benchD(b, evals, false, true) })
		b.Run(fmt.Sprintf("jobs=%d/all", jobs), func(b *testing.B) { benchD(b, evals, true, true) })
	}
	b.Run("jobs=50000/all-warm", func(b *testing.B) { benchWarm(b, benchEvals(50_000, 50_000)) })
	for _, ready := range []int{0, 50_000} {
		b.Run(fmt.Sprintf("cycle/ready=%d", ready), func(b *testing.B) { benchCycle(b, ready) })
	}
}

func benchEvals(n, jobs int) []*model.Evaluation {
	evals := make([]*model.Evaluation, n)
	for i := range evals {
		evals[i] = &model.Evaluation{
			ID:          fmt.Sprintf("%08x-5a3c-4b1d-9e2f-%012x", uint32(i)*2654435761, i),
			Namespace:   "default",
			JobID:       fmt.Sprintf("job-%d", i%jobs),
			Type:        model.JobService,
			Priority:    int32(20 + 10*(i%8)),
			CreateIndex: uint64(i + 1),
			ModifyIndex: uint64(i + 1),
		}
	}
	return evals
}

func newBenchBroker(b *testing.B) *broker.Broker {
	br, err := broker.New(broker.Config{Rand: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		b.Fatal(err)
	}
	br.Enable()
	return br
}

func drain(b *testing.B, br *broker.Broker) {
	for {
		d, ok := br.TryDequeue(nil)
		if !ok {
			break
		}
		if err := br.Ack(d.Eval.ID, d.Token, d.WaitIndex); err != nil {
			b.Fatal(err)
		}
	}
	for br.PopCancelable(0) != nil {
	}
}

// benchD runs the phases on a fresh broker each time and times those asked for.
func benchD(b *testing.B, evals []*model.Evaluation, timeEnqueue, timeDrain bool) {
	b.ReportAllocs()
	for b.Loop() {
		if !timeEnqueue {
			b.StopTimer()
		}
		br := newBenchBroker(b)
		for _, ev := range evals {
			br.Enqueue(ev)
		}
		if !timeEnqueue {
			b.StartTimer()
		}
		if timeDrain {
			drain(b, br)
		}
	}
	b.ReportMetric(float64(len(evals))*float64(b.N)/b.Elapsed().Seconds(), "evals/s")
}

// benchWarm runs all phases on one broker, as a leader does after its first
// storm.
func benchWarm(b *testing.B, evals []*model.Evaluation) {
	br := newBenchBroker(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, ev := range evals {
			br.Enqueue(ev)
		}
		drain(b, br)
	}
	b.ReportMetric(float64(len(evals))*float64(b.N)/b.Elapsed().Seconds(), "evals/s")
}

func benchCycle(b *testing.B, ready int) {
	br := newBenchBroker(b)
	for _, ev := range benchEvals(ready, 50_000) {
		br.Enqueue(ev)
	}
	ev := &model.Evaluation{ID: "the-one", Namespace: "default", JobID: "urgent", Priority: 95, CreateIndex: 100_000, ModifyIndex: 100_000}
	b.ReportAllocs()
	for b.Loop() {
		br.Enqueue(ev)
		d, ok := br.TryDequeue(nil)
		if !ok || d.Eval != ev {
			b.Fatal("another evaluation came first")
		}
		if err := br.Ack(ev.ID, d.Token, ev.ModifyIndex); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUnblock is one node getting room while so many evaluations are
// blocked, none of which can use it.
func BenchmarkUnblock(b *testing.B) {
	for _, blocked := range []int{1_000, 10_000} {
		for _, shapes := range []int{0, 200} {
			b.Run(fmt.Sprintf("blocked=%d/shapes=%d", blocked, shapes), func(b *testing.B) { benchUnblock(b, blocked, shapes) })
		}
	}
}

// rejectAll is a filter without a cheap test that rejects every evaluation.
type rejectAll struct{}

func (rejectAll) MayPlace(*model.Evaluation, string, *any) bool { return false }

func (rejectAll) Excludes(*model.Evaluation, string, *any) bool { return false }

func benchUnblock(b *testing.B, blocked, shapes int) {
	cfg := broker.Config{}
	if shapes > 0 {
		cfg.EquivalenceClass = func(ev *model.Evaluation) uint64 { return ev.CreateIndex % uint64(shapes) }
	}
	br, err := broker.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	t := broker.NewBlocked(br)
	br.Enable()
	for _, ev := range benchEvals(blocked, blocked) {
		ev.Classes = map[uint64]bool{1: true, 2: false}
		ev.SnapshotIndex = ev.ModifyIndex
		t.Block(ev, nil)
	}
	index := uint64(1_000_000)
	b.ReportAllocs()
	for b.Loop() {
		index++
		if t.Unblock(1, "node", index, rejectAll{}) != nil {
			b.Fatal("an evaluation was unblocked")
		}
	}
}
