package policy

import (
	"fmt"
	"sync"
	"time"
)

// OnFault is what happens in an evaluation in which a policy is at fault.
type OnFault uint8

// What an operator may choose.
const (
	// Deny evicts nobody: the evaluation waits as if nothing could be evicted.
	Deny OnFault = iota
	// FallBack lets the policy named default decide.
	FallBack
	// AsConfigured does what the scheduler configuration says.
	AsConfigured
)

func (f OnFault) String() string { return [...]string{"deny", "default", "as configured"}[f] }

// ParseOnFault reads deny or default; nothing means deny.
func ParseOnFault(text string) (OnFault, error) {
	switch text {
	case "", Deny.String():
		return Deny, nil
	case FallBack.String():
		return FallBack, nil
	}
	return Deny, fmt.Errorf("%q is no answer to a fault: want deny or default", text)
}

// When a breaker opens, and how long it stays so at first and at most.
const (
	breakerFaults = 5
	breakerFirst  = int64(30 * time.Second)
	breakerLast   = int64(10 * time.Minute)
)

// Breaker stops asking a policy that keeps failing: after several faulty
// evaluations in a row it opens for a while; then one evaluation tries again.
// The zero value is ready. It knows no clock: the time is its callers', so that
// a simulation replays.
type Breaker struct {
	mu     sync.Mutex
	inARow int
	until  int64 // Unix nanoseconds; it is open before
	pause  int64
	last   error
	held   error // why it stays open until Reset; nil: it does not
}

// OpenError is the fault that opened the breaker, nil while the policy may be asked.
func (b *Breaker) OpenError(now int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held != nil {
		return b.held
	}
	if b.inARow < breakerFaults || now >= b.until {
		return nil
	}
	return b.last
}

// RecordFault tells of an evaluation in which the policy was at fault. It returns
// whether that opened the breaker.
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

// RecordSuccess tells of an evaluation in which the policy was asked and not at fault.
func (b *Breaker) RecordSuccess() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inARow, b.pause, b.last = 0, 0, nil
}

// Trip opens the breaker until Reset, whatever the time: a cluster has agreed
// that the policy is not to be asked.
func (b *Breaker) Trip(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = why
}

// Reset closes the breaker and forgets every fault.
func (b *Breaker) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inARow, b.until, b.pause, b.last, b.held = 0, 0, 0, nil, nil
}
