package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// GrowthConfig configures the sizes of clusters.
type GrowthConfig struct {
	Nodes  []int // sizes of clusters, each on its own servers
	Allocs []int // running instances at each measurement, ascending
	Each   int   // instances of a job
	Seed   uint64
}

// GrowthPoint is the cost at one size.
type GrowthPoint struct {
	Nodes  int `json:"nodes"`
	Allocs int `json:"allocs"`
	// AllocsPerSecond is the placement rate of the instances that were added since
	// the previous point.
	AllocsPerSecond float64 `json:"allocsPerSecond"`
	// CPUPerAlloc is the processor time of the servers per placed instance, in
	// microseconds.
	CPUPerAlloc float64 `json:"cpuMicrosecondsPerAlloc,omitempty"`
	// Placed is the time from the submission of a job to the placement of its single
	// instance, as a client measures it on an idle cluster.
	Placed Latency `json:"submittedToPlaced"`
	// MemoryBytes is the resident memory of the largest server process at this point.
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	// Size and duration of saving and restoring a full snapshot over HTTP.
	SnapshotBytes   int64   `json:"snapshotBytes"`
	SnapshotSeconds float64 `json:"snapshotSeconds"`
	RestoreSeconds  float64 `json:"restoreSeconds"`
	// Heartbeats per second, and processors that the servers use for heartbeats
	// alone.
	Heartbeats float64 `json:"heartbeatsPerSecond"`
	IdleCPU    float64 `json:"idleCPU,omitempty"`
}

const (
	growthSamples = 50              // jobs that are placed one after the other
	growthIdle    = 5 * time.Second // of heartbeats alone
)

// Growth measures cost against the number of nodes and instances of one cluster, on
// servers that open starts. done is called with each measured point.
func Growth(ctx context.Context, c GrowthConfig, open func(context.Context) (*Target, error), done func(*GrowthPoint)) error {
	for _, nodes := range c.Nodes {
		if err := grow(ctx, c, nodes, open, done); err != nil {
			return fmt.Errorf("%d nodes: %w", nodes, err)
		}
	}
	return nil
}

// growing holds the state of one cluster that grows.
type growing struct {
	*filling
	point   *GrowthPoint
	samples int // jobs of one instance so far
}

func grow(ctx context.Context, c GrowthConfig, nodes int, open func(context.Context) (*Target, error), done func(*GrowthPoint)) (err error) {
	t, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if ended := t.Close(ctx); err == nil {
			err = ended
		}
	}()
	most := c.Allocs[len(c.Allocs)-1]
	g := &growing{filling: newFilling(t, FillConfig{Nodes: nodes, Allocs: most, Each: c.Each, Seed: c.Seed})}
	defer g.close()
	if err := g.connectAll(ctx, never, growthSamples*len(c.Allocs)); err != nil {
		return err
	}
	before := 0
	for _, allocs := range c.Allocs {
		g.point = &GrowthPoint{Nodes: nodes, Allocs: allocs}
		for _, step := range []func(context.Context) error{g.fillUp(allocs - before), g.place, g.rest, g.snapshot} {
			if err := step(ctx); err != nil {
				return fmt.Errorf("%d instances: %w", allocs, err)
			}
		}
		done(g.point)
		before = allocs
	}
	return nil
}

// fillUp returns a function that places this number of additional instances.
func (g *growing) fillUp(allocs int) func(context.Context) error {
	return func(ctx context.Context) error {
		g.filling = g.more(allocs)
		before, err := g.scrape(ctx)
		if err != nil {
			return err
		}
		if err := g.submit(ctx); err != nil {
			return err
		}
		after, err := g.scrape(ctx)
		if err != nil {
			return err
		}
		g.point.AllocsPerSecond = g.r.AllocsPerSecond
		g.point.CPUPerAlloc = 1e6 * (after[metricCPU] - before[metricCPU]) / float64(allocs)
		return nil
	}
}

// place places single instances, one after the other.
func (g *growing) place(ctx context.Context) error {
	var placed latencies
	for i := range growthSamples {
		g.show("one job at a time", i, growthSamples)
		began := time.Now()
		if err := g.Target.place(ctx, job(g.id("one", g.samples), "service", 50, 1), &latencies{}); err != nil {
			return err
		}
		placed.since(began)
		g.samples++
	}
	g.point.Placed = placed.summary()
	return nil
}

// rest lets nodes only send heartbeats.
func (g *growing) rest(ctx context.Context) error {
	if _, err := g.quiet(ctx, "evaluations are worked on", false); err != nil {
		return err
	}
	before, err := g.scrape(ctx)
	if err != nil {
		return err
	}
	sent, began := g.nodes.fleet.Stats().Heartbeats, time.Now()
	g.show("seconds of heartbeats alone", 0, int(growthIdle.Seconds()))
	if err := sleep(ctx, growthIdle); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	g.point.Heartbeats = float64(g.nodes.fleet.Stats().Heartbeats-sent) / took
	g.peak = 0
	after, err := g.scrape(ctx)
	if err != nil {
		return err
	}
	g.point.IdleCPU, g.point.MemoryBytes = (after[metricCPU]-before[metricCPU])/took, g.peak
	return nil
}

// snapshot saves the state and restores it.
func (g *growing) snapshot(ctx context.Context) error {
	file, err := os.CreateTemp(g.o.Dir, "cede-bench-")
	if err != nil {
		return err
	}
	defer func() {
		_ = file.Close() // the file is deleted
		_ = os.Remove(file.Name())
	}()
	g.show("snapshots", 0, 2)
	began := time.Now()
	if err := g.Target.c.Operator().SnapshotSave(ctx, file); err != nil {
		return err
	}
	g.point.SnapshotSeconds = time.Since(began).Seconds()
	if g.point.SnapshotBytes, err = file.Seek(0, io.SeekCurrent); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	g.show("snapshots", 1, 2)
	began = time.Now()
	if err := g.Target.c.Operator().SnapshotRestore(ctx, file); err != nil {
		return err
	}
	g.point.RestoreSeconds = time.Since(began).Seconds()
	return nil
}
