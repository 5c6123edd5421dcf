package conflict_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/bench/conflict"
)

// small is a cell in which the batch jobs of a minute meet.
func small(change func(*conflict.Config)) conflict.Config {
	c := conflict.Config{
		Nodes: 200, Duration: time.Hour, Seed: 1, Full: 0.6, BatchSchedulers: 1, BatchRate: 20, ServiceRate: 30,
		ServiceTime: 100 * time.Millisecond, BatchTime: 100 * time.Millisecond, TaskTime: 5 * time.Millisecond,
	}
	change(&c)
	return c
}

func measure(t *testing.T, change func(*conflict.Config)) *conflict.Result {
	t.Helper()
	r, err := conflict.Measure(t.Context(), small(change))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMeasure_SameConfigurationSameResult(t *testing.T) {
	change := func(c *conflict.Config) { c.BatchSchedulers, c.Buckets = 3, 8 }
	a, b := measure(t, change), measure(t, change)
	if *a != *b {
		t.Errorf("two results:\n%+v\n%+v", a, b)
	}
	if a.Batch.Decided == 0 || a.Service.Jobs == 0 {
		t.Errorf("the workload is empty: %+v", a)
	}
	for name, c := range map[string]conflict.Class{"batch": a.Batch, "service": a.Service} {
		if c.Decided+c.Partial+c.GivenUp+c.Waiting != c.Jobs || c.Waiting < 0 || c.Tasks < c.Decided {
			t.Errorf("%s jobs do not add up: %+v", name, c)
		}
	}
}

func TestMeasure_DecisionsWithoutDurationNeverConflict(t *testing.T) {
	r := measure(t, func(c *conflict.Config) {
		c.BatchSchedulers, c.ServiceTime, c.BatchTime, c.TaskTime = 4, 0, 0, 0
	})
	if r.Batch.Conflicts+r.Service.Conflicts+r.Batch.Rejected+r.Service.Rejected != 0 || r.Batch.Busy != 0 {
		t.Errorf("conflicts between decisions that take no time: %+v", r)
	}
}

func TestMeasure_OneSchedulerHasNoConflicts(t *testing.T) {
	r := measure(t, func(c *conflict.Config) { c.ServiceTime, c.TaskTime = 0, 0 })
	if r.Batch.Conflicts != 0 || r.Batch.Plans == 0 || r.Batch.Busy == 0 {
		t.Errorf("batch jobs of one scheduler conflict: %+v", r.Batch)
	}
}

func TestMeasure_LongDecisionsConflictMore(t *testing.T) {
	conflicts := func(d time.Duration) int {
		return measure(t, func(c *conflict.Config) { c.ServiceTime = d }).Service.Conflicts
	}
	if short, long := conflicts(time.Millisecond), conflicts(time.Minute); short >= long {
		t.Errorf("%d conflicts of decisions of a millisecond, %d of a minute", short, long)
	}
}

func TestMeasure_BucketsReduceConflicts(t *testing.T) {
	conflicts := func(buckets int) int {
		return measure(t, func(c *conflict.Config) { c.Buckets, c.BatchSchedulers = buckets, 4 }).Batch.Conflicts
	}
	if alike, apart := conflicts(0), conflicts(50); apart >= alike {
		t.Errorf("%d conflicts of schedulers that rank alike, %d of jobs in buckets", alike, apart)
	}
}

func TestMeasure_EndsWhenCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := conflict.Measure(ctx, small(func(*conflict.Config) {})); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}
