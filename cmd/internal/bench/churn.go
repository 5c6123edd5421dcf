package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// ChurnConfig is the day of a large cluster.
type ChurnConfig struct {
	FillConfig
	For  time.Duration // of the churn
	Rate float64       // jobs a second that are submitted, and stopped after a while
}

// ChurnResult is the result of Churn.
type ChurnResult struct {
	Fill *FillResult `json:"fill"`
	// Heartbeats and their failures, a second, under churn.
	Heartbeats        float64 `json:"heartbeatsPerSecond"`
	HeartbeatFailures int64   `json:"requestFailures"`
	// Idle is the time from the submission of a job to the placement of its instance,
	// as a client measures it on an idle cluster.
	Idle  Latency `json:"submittedToPlacedIdle"`
	Churn struct {
		Seconds  float64 `json:"seconds"`
		Jobs     int     `json:"jobs"`
		Allocs   int     `json:"allocs"`
		Entries  uint64  `json:"entries"`
		Placed   Latency `json:"submittedToPlaced"` // all instances of a job
		Register Latency `json:"register"`
		Status   Latency `json:"status"`
		List     Latency `json:"list"` // of pages of 100 jobs
		// Heartbeat is the latency of lease renewals, as nodes measure it.
		Heartbeat Latency `json:"heartbeat"`
		// Conflicts counts rejected plans; nil if metrics are not available.
		Conflicts *Conflicts `json:"conflicts,omitempty"`
	} `json:"churn"`
	// Joined is the latency of node registrations, all at once.
	Joined Latency `json:"registerNode"`
	// MemoryBytes is the peak resident memory of a server process; MemoryEndBytes is
	// that of the largest one at the end. OwnProcess reports whether the servers ran
	// in separate processes; if not, the figures include the simulated nodes.
	MemoryBytes    int64 `json:"memoryBytes,omitempty"`
	MemoryEndBytes int64 `json:"memoryEndBytes,omitempty"`
	OwnProcess     bool  `json:"ownProcess"`
	// CPU is the number of processors used under load, by the processes of all
	// servers.
	CPU float64 `json:"cpu,omitempty"`
}

const (
	churnEach   = 10              // instances of a short-lived job
	churnLife   = 5 * time.Second // of a short-lived job
	idleSamples = 100
	readsRate   = 20 // of each kind, per second
	listed      = 100
)

// churning holds the state of one Churn.
type churning struct {
	*filling
	churn                          ChurnConfig
	r                              *ChurnResult
	placed, register, status, list latencies
	submitted                      atomic.Int64
}

// Churn fills a cluster with running jobs, then submits and stops jobs at a constant
// rate.
func Churn(ctx context.Context, t *Target, c ChurnConfig) (*ChurnResult, error) {
	u := &churning{filling: newFilling(t, c.FillConfig), churn: c, r: &ChurnResult{}}
	defer u.close()
	extra := idleSamples + int(2*c.Rate*churnLife.Seconds())*churnEach // without this capacity, jobs would be blocked
	if err := u.connectAll(ctx, 0, extra); err != nil {
		return nil, err
	}
	u.r.Joined = u.nodes.leases.registrations.summary()
	if err := u.submit(ctx); err != nil {
		return nil, err
	}
	if err := u.startAll(ctx); err != nil {
		return nil, err
	}
	if err := u.idle(ctx); err != nil {
		return nil, err
	}
	if err := u.day(ctx); err != nil {
		return nil, err
	}
	u.filling.r.MemoryBytes = u.peak
	u.r.Fill, u.r.MemoryBytes, u.r.OwnProcess = u.filling.r, u.peak, u.process == nil
	return u.r, nil
}

// idle submits small jobs, one after the other.
func (u *churning) idle(ctx context.Context) error {
	var placed latencies
	for i := range idleSamples {
		u.show("one job at a time", i, idleSamples)
		j := job(u.id("idle", i), "service", 50, 1)
		began := time.Now()
		if err := u.place(ctx, j, &latencies{}); err != nil {
			return err
		}
		placed.since(began)
	}
	u.r.Idle = placed.summary()
	_, err := u.quiet(ctx, "nodes report", true)
	return err
}

// place submits a job and waits until all of its instances are placed.
func (t *Target) place(ctx context.Context, j *client.Job, register *latencies) error {
	began := time.Now()
	resp, err := t.c.Jobs().Register(ctx, j, nil)
	if err != nil {
		return err
	}
	register.since(began)
	want := *j.TaskGroups[0].Count
	for index := resp.Index; ; {
		list, meta, err := t.c.Jobs().Allocations(ctx, j.ID, &client.QueryOptions{Index: index, Wait: time.Minute})
		if err != nil {
			return err
		}
		if len(list) >= want {
			return nil
		}
		if meta.LastIndex == index {
			return fmt.Errorf("job %s: %d of %d instances are placed after a minute", j.ID, len(list), want)
		}
		index = meta.LastIndex
	}
}

// day submits and stops jobs while other clients read.
func (u *churning) day(ctx context.Context) error {
	from, err := u.index(ctx)
	if err != nil {
		return err
	}
	before, err := u.scrape(ctx)
	if err != nil {
		return err
	}
	u.nodes.leases.heartbeats.forget()
	stats, began := u.nodes.fleet.Stats(), time.Now()
	if err := u.load(ctx); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	beats := u.nodes.leases.heartbeats.summary()
	atMost := u.peak
	u.peak = 0 // so that the scrape starts from the current memory
	after, err := u.scrape(ctx)
	u.r.MemoryEndBytes, u.peak = u.peak, max(u.peak, atMost)
	if err != nil {
		return err
	}
	to, err := u.index(ctx)
	if err != nil {
		return err
	}
	now := u.nodes.fleet.Stats()
	u.r.Heartbeats = float64(now.Heartbeats-stats.Heartbeats) / took
	u.r.HeartbeatFailures = now.Failures - stats.Failures
	if after != nil {
		u.r.CPU = (after[metricCPU] - before[metricCPU]) / took
	}
	c := &u.r.Churn
	c.Conflicts = conflicts(before, after)
	c.Seconds, c.Jobs, c.Entries = took, int(u.submitted.Load()), to-from
	c.Allocs = c.Jobs * churnEach
	c.Heartbeat = beats
	c.Placed, c.Register, c.Status, c.List = u.placed.summary(), u.register.summary(), u.status.summary(), u.list.summary()
	return nil
}

// load applies the load for the configured duration.
func (u *churning) load(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := time.Now().Add(u.churn.For)
	var group sync.WaitGroup
	run := func(rate float64, f func(int) error) {
		group.Go(func() {
			if err := u.paced(ctx, rate, end, f); err != nil {
				cancel(err)
			}
		})
	}
	run(u.churn.Rate, u.comeAndGo(ctx, end))
	run(readsRate, func(i int) error {
		began := time.Now()
		_, _, err := u.Target.c.Jobs().Get(ctx, u.jobs[i%len(u.jobs)], nil)
		u.status.since(began)
		return err
	})
	run(readsRate, func(int) error {
		began := time.Now()
		_, _, err := u.Target.c.Jobs().List(ctx, &client.QueryOptions{PerPage: listed})
		u.list.since(began)
		return err
	})
	began := time.Now()
	err := u.until(ctx, "seconds of churn", int(u.churn.For.Seconds()), 100*time.Millisecond, func() (int, error) {
		return int(time.Since(began).Seconds()), nil
	})
	if err != nil {
		cancel(err)
	}
	group.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// paced calls f at the given rate, each call in its own goroutine, and waits for all
// calls.
func (*churning) paced(ctx context.Context, rate float64, end time.Time, f func(int) error) error {
	var group sync.WaitGroup
	defer group.Wait()
	errs := make(chan error, 1)
	began := time.Now()
	for i := 0; ; i++ {
		at := began.Add(time.Duration(float64(i) * float64(time.Second) / rate))
		if at.After(end) {
			break
		}
		if err := sleep(ctx, time.Until(at)); err != nil {
			return err
		}
		group.Go(func() {
			if err := f(i); err != nil {
				select {
				case errs <- err:
				default:
				}
			}
		})
		select {
		case err := <-errs:
			return err
		default:
		}
	}
	group.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// comeAndGo returns a function that runs the i-th job for its lifetime and stops it,
// at the latest at end.
func (u *churning) comeAndGo(ctx context.Context, end time.Time) func(int) error {
	return func(i int) error {
		j := job(u.id("churn", i), "service", 1+i%100, churnEach)
		began := time.Now()
		if err := u.place(ctx, j, &u.register); err != nil {
			return err
		}
		u.placed.since(began)
		u.submitted.Add(1)
		if err := sleep(ctx, min(churnLife, time.Until(end))); err != nil {
			return err
		}
		_, err := u.Target.c.Jobs().Stop(ctx, j.ID, &client.StopOptions{Purge: true})
		if client.IsNotFound(err) || errors.Is(err, context.Canceled) && ctx.Err() == nil {
			return nil
		}
		return err
	}
}
