package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// FillConfig configures a Fill.
type FillConfig struct {
	Nodes, Allocs int
	Each          int // instances of a job
	Seed          uint64
	// Start reports whether nodes start their instances once all are placed.
	Start bool
}

// FillResult is the result of Fill.
type FillResult struct {
	Nodes  int `json:"nodes"`
	Jobs   int `json:"jobs"`
	Allocs int `json:"allocs"`
	// Seconds is the time from the first submission to the durable placement of the
	// last instance.
	Seconds         float64 `json:"seconds"`
	AllocsPerSecond float64 `json:"allocsPerSecond"`
	Entries         uint64  `json:"entries"`
	// Conflicts counts rejected plans; nil if metrics are not available.
	Conflicts *Conflicts `json:"conflicts,omitempty"`
	// LogBytes is the size of the log on the disk of one server; 0 if metrics are not
	// available.
	LogBytes         int64   `json:"logBytes,omitempty"`
	LogBytesPerAlloc float64 `json:"logBytesPerAlloc,omitempty"`
	// MemoryBytes is the peak resident memory of a server process. If the server runs
	// in this process, it includes the memory of the nodes.
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	// StartSeconds is the time until nodes have started and reported everything.
	StartSeconds float64 `json:"startSeconds,omitempty"`
}

// submitters is the number of concurrent submissions.
const submitters = 8

// filling holds the state of one Fill.
type filling struct {
	*Target
	c     FillConfig
	nodes *machines
	first int // number of the first job
	jobs  []string
	r     *FillResult
}

// Fill fills a cluster and measures the duration.
func Fill(ctx context.Context, t *Target, c FillConfig) (*FillResult, error) {
	f := newFilling(t, c)
	defer f.close()
	if err := f.connectAll(ctx, never, 0); err != nil {
		return nil, err
	}
	if err := f.submit(ctx); err != nil {
		return nil, err
	}
	if c.Start {
		if err := f.startAll(ctx); err != nil {
			return nil, err
		}
	}
	f.r.MemoryBytes = f.peak
	return f.r, nil
}

func newFilling(t *Target, c FillConfig) *filling {
	return &filling{Target: t, c: c, r: &FillResult{Nodes: c.Nodes, Jobs: (c.Allocs + c.Each - 1) / c.Each, Allocs: c.Allocs}}
}

// more returns a Fill of the same cluster with additional instances.
func (f *filling) more(allocs int) *filling {
	next := newFilling(f.Target, f.c)
	next.c.Allocs, next.nodes, next.first = allocs, f.nodes, f.first+len(f.jobs)
	next.r = newFilling(f.Target, next.c).r
	return next
}

func (f *filling) close() {
	if f.nodes != nil {
		f.nodes.close()
	}
}

// connectAll connects nodes with a third more capacity than the workload requires:
// the instances that fill the cluster and more additional ones.
func (f *filling) connectAll(ctx context.Context, poll time.Duration, more int) (err error) {
	capacity := int64((f.c.Allocs+more)/f.c.Nodes+1)*ask*4/3 + 10*ask
	f.nodes, err = f.connect(ctx, f.c.Nodes, f.c.Seed, poll, map[string]int64{"cpu": capacity, "memory": capacity})
	if err != nil {
		return err
	}
	return f.nodes.registered(ctx)
}

// submit submits all jobs and waits until they are placed.
func (f *filling) submit(ctx context.Context) error {
	from, err := f.index(ctx)
	if err != nil {
		return err
	}
	before, err := f.scrape(ctx)
	if err != nil {
		return err
	}
	list := f.make()
	began := time.Now()
	if err := f.submitAll(ctx, list); err != nil {
		return err
	}
	end, err := f.settled(ctx)
	if err != nil {
		return err
	}
	f.r.Seconds = end.at.Sub(began).Seconds()
	f.r.AllocsPerSecond = float64(f.c.Allocs) / f.r.Seconds
	f.r.Entries = end.index - from
	after, err := f.scrape(ctx)
	if err != nil {
		return err
	}
	if after != nil {
		f.r.Conflicts = conflicts(before, after)
		f.r.LogBytes = int64(after[metricLog]-before[metricLog]) / int64(len(f.metrics))
		f.r.LogBytesPerAlloc = float64(f.r.LogBytes) / float64(f.c.Allocs)
	}
	return f.placed(ctx)
}

// settled waits until no evaluation is pending or delayed: if its plans are rejected
// repeatedly, an evaluation is delayed. On a running server, evaluations of other
// jobs may be blocked.
func (f *filling) settled(ctx context.Context) (moment, error) {
	for {
		end, err := f.quiet(ctx, "evaluations are worked on", false)
		if err != nil || f.o.Server != nil {
			return end, err
		}
		s, err := f.Target.c.Operator().BrokerStatus(ctx)
		if err != nil || s.Delayed == 0 {
			return end, err
		}
		f.show("evaluations wait for their time", 0, s.Delayed)
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return end, err
		}
	}
}

// make returns the jobs, with random priorities.
func (f *filling) make() []*client.Job {
	random := rand.New(rand.NewPCG(f.c.Seed, 2)) //nolint:gosec // priorities need no secure randomness
	list := make([]*client.Job, f.r.Jobs)
	left := f.c.Allocs
	for i := range list {
		list[i] = job(f.id("job", f.first+i), "service", 1+random.IntN(100), min(left, f.c.Each))
		left -= f.c.Each
		f.jobs = append(f.jobs, list[i].ID)
	}
	return list
}

// submitAll submits jobs concurrently.
func (f *filling) submitAll(ctx context.Context, list []*client.Job) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	var group sync.WaitGroup
	for range submitters {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(list) {
					return
				}
				if _, err := f.Target.c.Jobs().Register(ctx, list[i], nil); err != nil {
					cancel(err)
					return
				}
				done.Add(1)
			}
		})
	}
	err := f.until(ctx, "jobs are submitted", len(list), 20*time.Millisecond, func() (int, error) { return int(done.Load()), nil })
	if err != nil {
		cancel(err)
	}
	group.Wait()
	if err != nil && context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	return err
}

// placed returns an error if the number of placed instances differs from the
// requested one.
func (f *filling) placed(ctx context.Context) error {
	total := 0
	for i, id := range f.jobs {
		sum, _, err := f.Target.c.Jobs().Summary(ctx, id, nil)
		if err != nil {
			return err
		}
		g := sum.Summary["g"]
		total += g.Starting + g.Running
		f.show("jobs are looked at", i, len(f.jobs))
	}
	if total != f.c.Allocs {
		return fmt.Errorf("%d of %d instances are placed", total, f.c.Allocs)
	}
	return nil
}

// startAll lets nodes start their allocations and waits for their status updates.
func (f *filling) startAll(ctx context.Context) error {
	began := time.Now()
	f.nodes.ask()
	err := f.until(ctx, "nodes start their allocations", f.c.Allocs, 50*time.Millisecond, func() (int, error) {
		return int(f.nodes.fleet.Stats().Started), nil
	})
	if err != nil {
		return err
	}
	end, err := f.quiet(ctx, "nodes report", true)
	if err != nil {
		return err
	}
	f.r.StartSeconds = end.at.Sub(began).Seconds()
	return nil
}
