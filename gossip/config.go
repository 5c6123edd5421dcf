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

// Config says how a member takes part.
type Config struct {
	// ID names the member for life: a random id that it keeps on its disk.
	ID string
	// Cluster is the pool's name. Members of pools with other names cannot even
	// open a conversation.
	Cluster string
	// Bind is the host:port to listen at, TCP and UDP; port 0 takes any.
	Bind string
	// Advertise is the host:port that others reach it at; an empty one, or one
	// without a host or port, is filled in from what it is bound to.
	Advertise string
	Tags      Tags
	// Keys seal the pool's messages, AES-GCM of 16, 24 or 32 bytes; the first
	// seals, all of them open. None: anybody who reaches the port may join.
	Keys [][]byte
	// Seeds are members to join, and to join again whenever they are missing.
	Seeds []string

	// OnDuplicateID is told, each time that a join fails for it before anybody let this member
	// in, of the member that has its id; nil: nobody is told. The member may be this one,
	// before it moved.
	OnDuplicateID func(context.Context, Member)

	Timing Timing
	Logger *slog.Logger // default: nothing is logged

	// Transport replaces the network, in tests.
	Transport memberlist.Transport
}

// Timing is how eagerly a pool watches its members. The zero value is for a
// handful of servers.
type Timing struct {
	Probe        time.Duration // between two looks at a member; default: 1s
	ProbeTimeout time.Duration // for its answer; default: 500ms
	Gossip       time.Duration // between two rounds of rumours; default: 200ms
	PushPull     time.Duration // between two exchanges of everything; default: 10s
	Rejoin       time.Duration // between two tries at missing seeds; default: 30s
	Forget       time.Duration // after which who left or failed is not listed any more; default: 24h
}

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

// Validate reports everything that is wrong.
func (c *Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.ID == "" {
		fault("the member's id is missing")
	}
	if c.Cluster == "" {
		fault("the pool's name is missing")
	}
	if len(c.Cluster) > 200 {
		fault("the pool's name %.20q… has %d bytes: at most 200", c.Cluster, len(c.Cluster))
	}
	if c.Transport == nil {
		if _, _, err := net.SplitHostPort(c.Bind); err != nil {
			fault("the address to bind, %q, is not host:port: %v", c.Bind, err)
		}
	}
	if c.Advertise != "" {
		if _, _, err := net.SplitHostPort(c.Advertise); err != nil {
			fault("the address to advertise, %q, is not host:port: %v", c.Advertise, err)
		}
	}
	for i, k := range c.Keys {
		if err := memberlist.ValidateKey(k); err != nil {
			fault("key %d has %d bytes: a key has 16, 24 or 32", i+1, len(k))
		}
	}
	for _, s := range c.Seeds {
		if strings.TrimSpace(s) == "" {
			fault("a seed is empty")
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
			fault("the %s %v is negative", t.name, t.value)
		}
	}
	return errors.Join(errs...)
}
