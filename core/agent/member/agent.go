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

// Config configures an agent. Pools, Driver, Cluster and DataDir are required.
type Config struct {
	Pools      []Pool // if there are several, the agent grants them leases
	Driver     Driver
	Cluster    string // cluster ID
	Attributes map[string]string
	DataDir    string       // holds the cluster secret and the leases
	Logger     *slog.Logger // nil: logging is disabled

	// Poll is the interval at which the driver is polled for status. Default: 1 s.
	Poll time.Duration
	// Wait is the maximum duration of a blocking query for assignments. Default: 1 min.
	Wait time.Duration
	// Retry is the pause after a failed request. Default: 1 s.
	Retry time.Duration
	// Keep is how long claims of a disconnected pool hold capacity if it has no running
	// workload. Default: 30 s.
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
	for _, required := range []struct {
		name    string
		missing bool
	}{
		{"pool of servers", len(c.Pools) == 0}, {"driver", c.Driver == nil}, {"cluster ID", c.Cluster == ""}, {"data directory", c.DataDir == ""},
	} {
		if required.missing {
			errs = append(errs, fmt.Errorf("member: %s is required", required.name))
		}
	}
	for i, p := range c.Pools {
		if p.Servers == nil {
			errs = append(errs, fmt.Errorf("member: pool %q has no servers", p.Name))
		}
		if len(c.Pools) > 1 && (p.Name == "" || strings.Contains(p.Name, "/")) {
			errs = append(errs, fmt.Errorf("member: invalid pool name %q: pools that share a cluster need names without slashes", p.Name))
		}
		if slices.ContainsFunc(c.Pools[:i], func(o Pool) bool { return o.Name == p.Name }) {
			errs = append(errs, fmt.Errorf("member: duplicate pool name %q", p.Name))
		}
	}
	return errors.Join(errs...)
}

// An Agent connects one member cluster to its pools of servers. Create it with New.
type Agent struct {
	c       Config
	log     *slog.Logger
	secret  string
	pools   []*pool
	leases  *leaseStore   // nil if the agent has only one pool
	changed chan struct{} // capacity 1: signals a change of the desired state
}

// New returns an agent. It reads or creates the cluster secret, and loads the leases
// that an earlier agent granted. It returns an error if the configuration is invalid
// or a file cannot be read.
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

// Run runs the agent until ctx is done. Workloads that it started continue to run.
func (a *Agent) Run(ctx context.Context) {
	var loops sync.WaitGroup
	for _, p := range a.pools {
		loops.Go(func() { p.run(ctx) })
	}
	a.reconcileLoop(ctx)
	loops.Wait()
}

// resources returns the resources of the cluster and updates the capacity for leases.
func (a *Agent) resources(ctx context.Context) (*ClusterResources, error) {
	resources, err := a.c.Driver.Resources(ctx)
	if err != nil { // if the cluster is unreachable, nothing is reported to the servers
		return nil, fmt.Errorf("cannot read resources of cluster: %w", err)
	}
	if a.leases != nil {
		a.leases.resize(resources)
	}
	return resources, nil
}

// reconcileLoop reconciles running workloads with the desired state, on every change
// and periodically.
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
			a.log.WarnContext(ctx, "failed to reconcile assignments; retrying", "err", err)
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
