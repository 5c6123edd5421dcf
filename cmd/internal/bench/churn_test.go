package bench_test

import (
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/bench"
)

func TestChurn_ReportsFigures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := open(t, options(t, dir))
	defer closed(t, target, dir)
	c := bench.ChurnConfig{FillConfig: bench.FillConfig{Nodes: 10, Allocs: 95, Each: 10, Seed: 3}, For: time.Second, Rate: 5}
	r, err := bench.Churn(t.Context(), target, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v, %+v", r, r.Fill)
	f := r.Fill
	if f.Nodes != 10 || f.Jobs != 10 || f.Allocs != 95 || f.Seconds <= 0 || f.Entries < 10 || f.MemoryBytes <= 0 {
		t.Errorf("of filling: %+v", f)
	}
	jobs := r.Churn.Jobs
	if jobs < 5 || jobs > 7 || r.Churn.Allocs != 10*jobs || r.Churn.Placed.Count != jobs || r.Churn.Register.Count != jobs {
		t.Errorf("results of one second at five jobs per second: %+v", r.Churn)
	}
	for name, l := range map[string]bench.Latency{"idle": r.Idle, "placed": r.Churn.Placed, "status": r.Churn.Status, "list": r.Churn.List, "nodes": r.Joined, "heartbeat": r.Churn.Heartbeat} {
		if l.Count == 0 || l.P50 <= 0 || l.P50 > l.P99 || l.P99 > l.Max {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

func TestFill_StartsEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := open(t, options(t, dir))
	defer closed(t, target, dir)
	r, err := bench.Fill(t.Context(), target, bench.FillConfig{Nodes: 7, Allocs: 250, Each: 100, Start: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if r.Jobs != 3 || r.Allocs != 250 || r.AllocsPerSecond <= 0 || r.LogBytesPerAlloc <= 0 || r.StartSeconds <= 0 {
		t.Errorf("%+v", r)
	}
}
