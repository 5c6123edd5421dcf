package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cede-scheduler/cede/core/agent/driver"
)

// Config holds the parameters of an agent. Servers, DataDir and Drivers are required.
type Config struct {
	Servers Servers
	// DataDir holds the node's ID and secret, and a folder per allocation. Only one
	// agent may use it at a time.
	DataDir string
	// Node is the configured description of the machine. The ID is that of DataDir;
	// missing values are detected (see Fingerprint).
	Node    Node
	Drivers map[string]driver.Driver
	Logger  *slog.Logger // nil: no logs

	// ReportWindow is the time in which statuses are gathered into one report. Default: 200 ms.
	ReportWindow time.Duration
	// Wait is the maximum duration of one blocking query for allocations. Default: 1 min.
	Wait time.Duration
	// Retry is the delay after a failed request. It doubles, up to 30 times its
	// value. Default: 500 ms.
	Retry time.Duration
	// KeepDead is how long the output of an ended allocation is retained. Default: 24 h.
	KeepDead time.Duration
	// KeepDeadCount is the maximum number of ended allocations that are retained. Default: 500.
	KeepDeadCount int
	// StopAll stops all tasks when the agent stops. Set it for trials; the tasks of a
	// real node must outlive a restart of the agent.
	StopAll bool
	// Pressure configures evictions by the node itself; nil: there are none.
	Pressure *Pressure
	// Authorize returns an error if the bearer of a token may not read an
	// allocation's output; nil: all requests are allowed.
	Authorize func(ctx context.Context, token, allocID string) error
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	set(&c.ReportWindow, 200*time.Millisecond)
	set(&c.Wait, time.Minute)
	set(&c.Retry, 500*time.Millisecond)
	set(&c.KeepDead, 24*time.Hour)
	if c.KeepDeadCount <= 0 {
		c.KeepDeadCount = 500
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c *Config) validate() error {
	var errs []error
	if c.Servers == nil {
		errs = append(errs, errors.New("agent: servers are required"))
	}
	if c.DataDir == "" {
		errs = append(errs, errors.New("agent: a data directory is required"))
	}
	if len(c.Drivers) == 0 {
		errs = append(errs, errors.New("agent: a driver is required: enable exec or sim"))
	}
	return errors.Join(errs...)
}
