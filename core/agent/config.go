package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cede-scheduler/cede/core/agent/driver"
)

// Config is what an agent is made of. Servers, DataDir and Drivers are needed.
type Config struct {
	Servers Servers
	// DataDir keeps the node's id and secret, and a folder for each allocation.
	// One agent at a time uses it.
	DataDir string
	// Node is what the configuration says of the machine. The id is that of
	// DataDir; what is absent is found out (see Fingerprint).
	Node    Node
	Drivers map[string]driver.Driver
	Logger  *slog.Logger // nil: nothing is logged

	// ReportWindow is how long statuses are gathered into one report. Default: 200 ms.
	ReportWindow time.Duration
	// Wait is how long one question for allocations may take. Default: 1 min.
	Wait time.Duration
	// Retry is the pause after a failed request; it doubles up to 30 times as
	// much. Default: 500 ms.
	Retry time.Duration
	// KeepDead is how long what an ended allocation said is kept. Default: 24 h.
	KeepDead time.Duration
	// KeepDeadCount is how many ended allocations are kept at most. Default: 500.
	KeepDeadCount int
	// StopAll makes the end of the agent the end of its work: what is right for a
	// trial, and wrong for a node, whose work outlives a restart.
	StopAll bool
	// Pressure says when the node evicts by itself; nil: never.
	Pressure *Pressure
	// Authorize decides whether the bearer of a token may read what an allocation
	// said; nil: everybody may.
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
		errs = append(errs, errors.New("agent: no servers to talk to"))
	}
	if c.DataDir == "" {
		errs = append(errs, errors.New("agent: no data directory"))
	}
	if len(c.Drivers) == 0 {
		errs = append(errs, errors.New("agent: no drivers: enable exec or sim"))
	}
	return errors.Join(errs...)
}
