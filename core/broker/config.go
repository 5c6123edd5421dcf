package broker

import (
	"cmp"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
)

// Config configures a Broker. The zero value selects the defaults.
type Config struct {
	// NackTimeout is the time within which a delivery must be renewed, acked or
	// nacked.
	NackTimeout time.Duration // default: 60s

	// DeliveryLimit is the number of deliveries after which an evaluation fails.
	DeliveryLimit int // default: 3

	// FirstNackDelay is the delay after the first delivery was nacked.
	FirstNackDelay time.Duration // default: 1s; negative: none

	// NackDelay is the delay after the n-th delivery, times n-1, for n > 1.
	// Bindings use FirstNackDelay instead, doubled with each delivery up to ten
	// times itself.
	NackDelay time.Duration // default: 20s; negative: none

	// ReaperBatch is the default limit of the Pop methods: what fits in one log
	// entry of 256 KiB with a margin.
	ReaperBatch int // default: 728

	// UnblockRetention is how long Blocked remembers which nodes and clusters
	// changed. If an evaluation blocks after a longer computation, it is processed
	// once more, in case it missed a change.
	UnblockRetention time.Duration // default: 15m

	// EquivalenceClass maps blocked evaluations that no UnblockFilter can
	// distinguish to one number: equal requests, constraints and priority. Unblock
	// then costs what the classes cost, not the evaluations. It returns 0 for an
	// evaluation that is in no class, which is checked individually.
	EquivalenceClass func(*model.Evaluation) uint64 // default: no classes

	// Clock is the time source of leases and delays.
	Clock clock.Clock // default: clock.Real

	// Rand creates tokens. The broker calls it under its lock and must be its only
	// user.
	Rand *rand.Rand // default: ChaCha8 with a random seed
}

// Defaults returns the configuration that the zero value stands for.
func Defaults() Config {
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // never fails: crypto/rand crashes the process instead
	return Config{
		NackTimeout:      60 * time.Second,
		DeliveryLimit:    3,
		FirstNackDelay:   time.Second,
		NackDelay:        20 * time.Second,
		ReaperBatch:      728,
		UnblockRetention: 15 * time.Minute,
		Clock:            clock.Real{},
		Rand:             rand.New(rand.NewChaCha8(seed)),
	}
}

// Validate returns an error for every invalid value, joined.
func (c Config) Validate() error {
	var errs []error
	if c.NackTimeout < 0 {
		errs = append(errs, fmt.Errorf("invalid nack timeout %v: must not be negative", c.NackTimeout))
	}
	if c.DeliveryLimit < 0 {
		errs = append(errs, fmt.Errorf("invalid delivery limit %d: must not be negative", c.DeliveryLimit))
	}
	if c.ReaperBatch < 0 {
		errs = append(errs, fmt.Errorf("invalid reaper batch %d: must not be negative", c.ReaperBatch))
	}
	if c.UnblockRetention < 0 {
		errs = append(errs, fmt.Errorf("invalid unblock retention %v: must not be negative", c.UnblockRetention))
	}
	return errors.Join(errs...)
}

// withDefaults returns c with the defaults in place of zero values.
func (c Config) withDefaults() Config {
	d := Defaults()
	c.NackTimeout = cmp.Or(c.NackTimeout, d.NackTimeout)
	c.DeliveryLimit = cmp.Or(c.DeliveryLimit, d.DeliveryLimit)
	c.FirstNackDelay = cmp.Or(c.FirstNackDelay, d.FirstNackDelay)
	c.NackDelay = cmp.Or(c.NackDelay, d.NackDelay)
	c.ReaperBatch = cmp.Or(c.ReaperBatch, d.ReaperBatch)
	c.UnblockRetention = cmp.Or(c.UnblockRetention, d.UnblockRetention)
	c.Clock = cmp.Or(c.Clock, d.Clock)
	c.Rand = cmp.Or(c.Rand, d.Rand)
	return c
}

// nackDelay returns the delay before the delivery that follows the n-th. For
// bindings it is doubled with each delivery, up to ten times the first.
func (c *Config) nackDelay(t model.JobType, n int) time.Duration {
	switch first := max(c.FirstNackDelay, 0); {
	case n <= 1:
		return first
	case t == model.JobBinding:
		return min(first<<min(n-1, 4), 10*first)
	}
	return max(time.Duration(n-1)*c.NackDelay, 0)
}
