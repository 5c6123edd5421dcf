// Package aging owns the policy named aging: the priority gap that a preemptor
// needs shrinks while it waits, so that work of nearly the same priority cannot
// keep it out for ever.
//
// It answers PriorityDelta alone, and leaves to default whom to evict and where.
// It never lets anybody evict what is not strictly lower: equals and betters are
// safe however long somebody waits. So evictions only ever go downwards, and no
// two jobs can evict one another in turn. It asks to be called again at the
// very nanosecond at which the next candidate comes into reach, and at no
// other time.
//
// README.md is for operators. A Policy keeps nothing between calls but its
// configuration; it is used by one goroutine at a time.
package aging
