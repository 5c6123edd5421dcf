package cow

import "sync/atomic"

// An Owner identifies a branch that may change its own blocks in place. The zero
// Owner owns nothing.
type Owner uint64

// lastOwner is global because ownership relies on uniqueness alone: with a counter
// for each store, blocks of two stores could have the same owner.
var lastOwner atomic.Uint64

// NewOwner returns an owner that no block carries yet.
func NewOwner() Owner { return Owner(lastOwner.Add(1)) }
