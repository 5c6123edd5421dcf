package policy

import (
	"fmt"
	"sync"
	"time"
)

// OnFault is the reaction to a policy fault during an evaluation.
type OnFault uint8

// The values that operators choose from.
const (
	// Deny evicts nothing: the evaluation blocks as if preemption were not
	// possible.
	Deny OnFault = iota
	// FallBack uses the policy named default.
	FallBack
	// AsConfigured uses the scheduler configuration.
	AsConfigured
)

func (f OnFault) String() string { return [...]string{"deny", "default", "as configured"}[f] }

// ParseOnFault parses "deny" or "default"; "" means deny. It returns an error for
// other texts.
func ParseOnFault(text string) (OnFault, error) {
	switch text {
	case "", Deny.String():
		return Deny, nil
	case FallBack.String():
		return FallBack, nil
	}
	return Deny, fmt.Errorf("invalid reaction to faults %q: must be deny or default", text)
}

// When a breaker opens, and how long it stays so at first and at most.
const (
	breakerFaults = 5
	breakerFirst  = int64(30 * time.Second)
	breakerLast   = int64(10 * time.Minute)
)

// A Breaker stops calling a policy that keeps failing: after several faulty
// evaluations in a row it opens for a while, then one evaluation tries again. The
// zero value is ready to use. It reads no clock: callers pass the time, so that a
// simulation can be replayed.
type Breaker struct {
	mu     sync.Mutex
	inARow int
	until  int64 // Unix nanoseconds until which it is open
	pause  int64
	last   error
}

// OpenError returns the fault that opened the breaker, or nil if the policy may be
// called.
func (b *Breaker) OpenError(now int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inARow < breakerFaults || now >= b.until {
		return nil
	}
	return b.last
}

// RecordFault records an evaluation with a policy fault. It reports whether that
// opened the breaker.
func (b *Breaker) RecordFault(now int64, err error) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inARow++
	b.last = err
	if b.inARow < breakerFaults {
		return false
	}
	b.pause = min(max(2*b.pause, breakerFirst), breakerLast)
	b.until = now + b.pause
	return true
}

// RecordSuccess records an evaluation in which the policy was called without a
// fault.
func (b *Breaker) RecordSuccess() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inARow, b.pause, b.last = 0, 0, nil
}

// Reset closes the breaker and drops all recorded faults.
func (b *Breaker) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inARow, b.until, b.pause, b.last = 0, 0, 0, nil
}
