package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config is what an agent is made of. Pools, Driver, Cluster and DataDir are
// needed.
type Config struct {
	Pools      []Pool // several share the cluster: it keeps leases for them
	Driver     Driver
	Cluster    string // id
	Attributes map[string]string
	DataDir    string       // keeps the cluster's secret, and its leases
	Logger     *slog.Logger // nil: nothing is logged

	// Poll is how often the driver is asked how things stand. Default: 1 s.
	Poll time.Duration
	// Wait is how long one question for assignments may take. Default: 1 min.
	Wait time.Duration
	// Retry is the pause after a failed request. Default: 1 s.
	Retry time.Duration
	// Keep is how long room is kept for a pool that is silent and has nothing
	// running there. Default: 30 s.
	Keep time.Duration
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		of    *time.Duration
		value time.Duration
	}{{&c.Poll, time.Second}, {&c.Wait, time.Minute}, {&c.Retry, time.Second}, {&c.Keep, 30 * time.Second}} {
		if *d.of <= 0 {
			*d.of = d.value
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c *Config) validate() error {
	var errs []error
	for what, missing := range map[string]bool{
		"pool of servers to talk to": len(c.Pools) == 0, "driver": c.Driver == nil, "id of the cluster": c.Cluster == "", "data directory": c.DataDir == "",
	} {
		if missing {
			errs = append(errs, fmt.Errorf("member: there is no %s", what))
		}
	}
	for i, p := range c.Pools {
		if p.Servers == nil {
			errs = append(errs, fmt.Errorf("member: pool %q has no servers", p.Name))
		}
		if len(c.Pools) > 1 && (p.Name == "" || strings.Contains(p.Name, "/")) {
			errs = append(errs, fmt.Errorf("member: a pool is called %q: pools that share a cluster have names without slashes", p.Name))
		}
		if slices.ContainsFunc(c.Pools[:i], func(o Pool) bool { return o.Name == p.Name }) {
			errs = append(errs, fmt.Errorf("member: two pools are called %q", p.Name))
		}
	}
	return errors.Join(errs...)
}

// Agent speaks for one member cluster. Make it with New.
type Agent struct {
	c       Config
	log     *slog.Logger
	secret  string
	pools   []*pool
	leases  *leaseStore   // nil: one pool has the cluster for itself
	changed chan struct{} // capacity 1: what is wanted is news
}

// New makes an agent. It reads the cluster's secret, or makes one, and the leases
// that an earlier agent granted.
func New(c Config) (*Agent, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	secret, err := secretIn(c.DataDir)
	if err != nil {
		return nil, err
	}
	a := &Agent{c: c, log: c.Logger.With("cluster_id", c.Cluster), secret: secret, changed: make(chan struct{}, 1)}
	for _, p := range c.Pools {
		log := a.log
		if p.Name != "" {
			log = log.With("pool", p.Name)
		}
		a.pools = append(a.pools, &pool{Pool: p, a: a, log: log, notify: make(chan struct{}, 1)})
	}
	if len(c.Pools) > 1 {
		a.leases, err = openLeaseStore(c.DataDir, c.Keep)
	}
	return a, err
}

// Run works until ctx ends. What it started goes on.
func (a *Agent) Run(ctx context.Context) {
	var loops sync.WaitGroup
	for _, p := range a.pools {
		loops.Go(func() { p.run(ctx) })
	}
	a.reconcileLoop(ctx)
	loops.Wait()
}

// resources is what the cluster has, of which the leases are given out.
func (a *Agent) resources(ctx context.Context) (*ClusterResources, error) {
	room, err := a.c.Driver.Resources(ctx)
	if err != nil { // the servers hear nothing of a cluster that cannot be reached
		return nil, fmt.Errorf("what the cluster has is not known: %w", err)
	}
	if a.leases != nil {
		a.leases.resize(room)
	}
	return room, nil
}

// reconcileLoop brings what runs in line with what is wanted, whenever that changes and
// every now and then.
func (a *Agent) reconcileLoop(ctx context.Context) {
	poll := time.NewTicker(a.c.Poll)
	defer poll.Stop()
	for {
		select {
		case <-a.changed:
		case <-poll.C:
		case <-ctx.Done():
			return
		}
		if err := a.reconcile(ctx); err != nil && ctx.Err() == nil {
			a.log.WarnContext(ctx, "not everything was done that is assigned; trying again", "err", err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
