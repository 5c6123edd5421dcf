// Package aging implements the policy "aging": the priority gap that a preemptor
// needs shrinks while it waits, so that allocations of nearly the same priority
// cannot block it forever.
//
// It implements PriorityDelta only; victims and nodes are chosen as by default. It
// never makes an allocation eligible whose priority is not strictly lower, however
// long the preemptor waits. Evictions therefore only go downwards, and two jobs
// cannot evict each other in turn. It requests a recheck at the nanosecond at which
// the next candidate becomes eligible, and at no other time.
//
// README.md is for operators. A Policy retains only its configuration between calls
// and must be used by one goroutine at a time.
package aging
