package broker

import (
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
)

// Config says how patient a broker is. The zero value means the defaults.
type Config struct {
	// NackTimeout is how long a delivery may go without Renew, Ack or Nack.
	NackTimeout time.Duration // default: 60s

	// DeliveryLimit is how often an evaluation is delivered before it has failed.
	DeliveryLimit int // default: 3

	// FirstNackDelay is the wait after the first delivery came to nothing.
	FirstNackDelay time.Duration // default: 1s; negative: none

	// NackDelay is the wait after the n-th delivery, times n-1, for n > 1. Bindings
	// go by FirstNackDelay: it is doubled with each delivery, up to ten times itself.
	NackDelay time.Duration // default: 20s; negative: none

	// ReaperBatch is how many evaluations one Take call hands out when it is not
	// told: what fits in one log entry of 256 KiB with room to spare.
	ReaperBatch int // default: 728

	// UnblockRetention is how long Blocked remembers which places had room when. An
	// evaluation that was computed for longer than this and then blocks runs
	// once more, in case it missed something.
	UnblockRetention time.Duration // default: 15m

	// EquivalenceClass maps blocked evaluations that no Screen and no class can tell apart
	// to one number: same asks, same constraints, same priority. With thousands
	// blocked, Unblock then costs what the shapes cost, not the evaluations.
	// 0 is for those that are like no other, which are asked each.
	EquivalenceClass func(*model.Evaluation) uint64 // default: each is its own

	// Clock is the time that leases and delays run on.
	Clock clock.Clock // default: clock.Real

	// Rand makes tokens. The broker calls it under its lock and shares it with
	// nobody.
	Rand *rand.Rand // default: ChaCha8 with a random seed
}

// Defaults is the configuration that the zero value stands for.
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

// Validate reports every value that makes no sense.
func (c Config) Validate() error {
	var errs []error
	if c.NackTimeout < 0 {
		errs = append(errs, fmt.Errorf("nack timeout %v is negative", c.NackTimeout))
	}
	if c.DeliveryLimit < 0 {
		errs = append(errs, fmt.Errorf("delivery limit %d is negative", c.DeliveryLimit))
	}
	if c.ReaperBatch < 0 {
		errs = append(errs, fmt.Errorf("reaper batch %d is negative", c.ReaperBatch))
	}
	if c.UnblockRetention < 0 {
		errs = append(errs, fmt.Errorf("unblock memory %v is negative", c.UnblockRetention))
	}
	return errors.Join(errs...)
}

// filled is c with the defaults in place of zero values.
func (c Config) filled() Config {
	d := Defaults()
	orElse(&c.NackTimeout, d.NackTimeout)
	orElse(&c.DeliveryLimit, d.DeliveryLimit)
	orElse(&c.FirstNackDelay, d.FirstNackDelay)
	orElse(&c.NackDelay, d.NackDelay)
	orElse(&c.ReaperBatch, d.ReaperBatch)
	orElse(&c.UnblockRetention, d.UnblockRetention)
	orElse(&c.Clock, d.Clock)
	orElse(&c.Rand, d.Rand)
	return c
}

func orElse[T comparable](v *T, other T) {
	var zero T
	if *v == zero {
		*v = other
	}
}

// nackDelay is the wait before the delivery that follows the n-th. For bindings
// the first is doubled with each, up to ten times.
func (c *Config) nackDelay(t model.JobType, n int) time.Duration {
	switch first := max(c.FirstNackDelay, 0); {
	case n <= 1:
		return first
	case t == model.JobBinding:
		return min(first<<min(n-1, 4), 10*first)
	}
	return max(time.Duration(n-1)*c.NackDelay, 0)
}
