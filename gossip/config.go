package gossip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"
)

// Config configures a pool member.
type Config struct {
	// ID identifies the member permanently: a random ID that it stores on its disk.
	ID string
	// Cluster is the name of the pool. Connections between pools with different names are
	// rejected.
	Cluster string
	// Bind is the host:port to listen on, TCP and UDP; port 0 selects any free port.
	Bind string
	// Advertise is the host:port under which other members reach it. If host or port is
	// empty, the bound one is used.
	Advertise string
	Tags      Tags
	// Keys encrypt the pool's messages with AES-GCM; a key has 16, 24 or 32 bytes. The
	// first encrypts, all of them decrypt. If it is empty, any client that reaches the port
	// may join.
	Keys [][]byte
	// Seeds are addresses of members to join, and to join again whenever they are missing.
	Seeds []string

	// OnDuplicateID is called with the member that holds this member's ID, each time a join
	// fails for that reason before any member has admitted this one. The holder may be this
	// server itself before it moved. default: none
	OnDuplicateID func(context.Context, Member)

	Timing Timing
	Logger *slog.Logger // default: nothing is logged

	// Transport replaces the network in tests.
	Transport memberlist.Transport
}

// Timing configures how often members are checked. The zero value suits a few servers.
type Timing struct {
	Probe        time.Duration // interval between probes of a member; default: 1s
	ProbeTimeout time.Duration // timeout of a probe; default: 500ms
	Gossip       time.Duration // interval between gossip rounds; default: 200ms
	PushPull     time.Duration // interval between full state exchanges; default: 10s
	Rejoin       time.Duration // interval between attempts to join missing seeds; default: 30s
	Forget       time.Duration // time after which a failed or departed member is no longer listed; default: 24h
}

// withDefaults returns t with defaults for zero values.
func (t Timing) withDefaults() Timing {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&t.Probe, time.Second},
		{&t.ProbeTimeout, 500 * time.Millisecond},
		{&t.Gossip, 200 * time.Millisecond},
		{&t.PushPull, 10 * time.Second},
		{&t.Rejoin, 30 * time.Second},
		{&t.Forget, 24 * time.Hour},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return t
}

// Validate returns an error that lists every invalid value.
func (c *Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.ID == "" {
		fault("member ID is required")
	}
	if c.Cluster == "" {
		fault("pool name is required")
	}
	if len(c.Cluster) > 200 {
		fault("pool name %.20q… has %d bytes: must be at most 200", c.Cluster, len(c.Cluster))
	}
	if c.Transport == nil {
		if _, _, err := net.SplitHostPort(c.Bind); err != nil {
			fault("invalid bind address %q: %v", c.Bind, err)
		}
	}
	if c.Advertise != "" {
		if _, _, err := net.SplitHostPort(c.Advertise); err != nil {
			fault("invalid advertise address %q: %v", c.Advertise, err)
		}
	}
	for i, k := range c.Keys {
		if err := memberlist.ValidateKey(k); err != nil {
			fault("key %d has %d bytes: must have 16, 24 or 32", i+1, len(k))
		}
	}
	for _, s := range c.Seeds {
		if strings.TrimSpace(s) == "" {
			fault("seed must not be empty")
		}
	}
	if _, err := c.Tags.encode(); err != nil {
		errs = append(errs, err)
	}
	for _, t := range []struct {
		name  string
		value time.Duration
	}{
		{"probe interval", c.Timing.Probe},
		{"probe timeout", c.Timing.ProbeTimeout},
		{"gossip interval", c.Timing.Gossip},
		{"push-pull interval", c.Timing.PushPull},
		{"rejoin interval", c.Timing.Rejoin},
		{"forget time", c.Timing.Forget},
	} {
		if t.value < 0 {
			fault("%s is %v: must not be negative", t.name, t.value)
		}
	}
	return errors.Join(errs...)
}
