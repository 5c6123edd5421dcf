package cow

import "sync/atomic"

// Owner identifies a branch that may change its own blocks in place. The zero
// Owner owns nothing.
type Owner uint64

// lastOwner is global because uniqueness is all that ownership rests on: a
// counter of each store would let blocks of two stores meet.
var lastOwner atomic.Uint64

// NewOwner returns an owner that no block carries yet.
func NewOwner() Owner { return Owner(lastOwner.Add(1)) }
