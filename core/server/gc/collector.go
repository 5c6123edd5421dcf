// Package gc removes finished evaluations, allocations, jobs, nodes, bindings and
// unused policy versions from the state once they are old enough.
//
// The leader runs it. It removes nothing that a decision may still depend on: the
// results of a finite job stay as long as the job, and an allocation that its job has not
// been evaluated for stays.
package gc

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/logwriter"
)

// Retention is how long finished objects stay in the state.
type Retention struct {
	Evals, Allocs time.Duration // default: 1h
	Jobs          time.Duration // that are stopped, or finite and complete; default: 4h
	Nodes         time.Duration // that are down; default: 24h
	Policies      int           // newest versions of each policy, in addition to those in use; default: 10; negative: all
	Batch         int           // objects that one entry removes at most; default: 2048
}

// WithDefaults returns r with defaults in place of zero values.
func (r Retention) WithDefaults() Retention {
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{{&r.Evals, time.Hour}, {&r.Allocs, time.Hour}, {&r.Jobs, 4 * time.Hour}, {&r.Nodes, 24 * time.Hour}} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	r.Policies = cmp.Or(r.Policies, 10)
	r.Batch = cmp.Or(r.Batch, 2048)
	return r
}

// Collected counts removed objects.
type Collected struct{ Evals, Allocs, Jobs, Nodes, Bindings, Policies int }

// A Collector collects garbage. All fields are required. It is safe for concurrent use.
type Collector struct {
	Writer    *logwriter.Writer
	Retention Retention
	Times     *Timetable
	Clock     clock.Clock
	Interval  time.Duration // between two collections; negative: never
	Logger    *slog.Logger
}

// Run collects garbage periodically until ctx ends.
func (c *Collector) Run(ctx context.Context) {
	if c.Interval < 0 {
		return
	}
	for clock.Sleep(ctx, c.Clock, c.Interval) {
		if _, err := c.CollectGarbage(ctx, false); err != nil && ctx.Err() == nil {
			c.Logger.WarnContext(ctx, "garbage collection failed", "err", err)
		}
	}
}

// CollectGarbage removes everything that has been finished for longer than its
// retention, or with force everything that is finished. It writes entries of bounded
// size and returns the first error.
func (c *Collector) CollectGarbage(ctx context.Context, force bool) (Collected, error) {
	if err := c.Writer.CheckLeader(); err != nil {
		return Collected{}, err
	}
	g := findGarbage(c.Writer.Snapshot(), c.cutoffs(force), c.Retention.Policies)
	for _, command := range g.commands(c.Retention.Batch) {
		if _, err := c.Writer.Commit(ctx, command); err != nil {
			return Collected{}, err
		}
	}
	for _, key := range g.bindings {
		// The state refuses to delete a binding that was registered again meanwhile.
		if _, err := c.Writer.Propose(ctx, &replication.DeleteBinding{Key: key}); err != nil {
			return Collected{}, err
		}
	}
	for _, v := range g.policies {
		// The state refuses to unload a version that was activated meanwhile.
		if _, err := c.Writer.Propose(ctx, &replication.ChangePolicy{Name: v.Name, Op: replication.OpUnload, Version: v.ID}); err != nil {
			return Collected{}, err
		}
	}
	return g.count(), nil
}
