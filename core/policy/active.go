package policy

import "sync/atomic"

// An ActiveSet holds the active set. Swap replaces it while evaluations run: an
// evaluation that has started ends with the set that it pinned.
type ActiveSet struct{ current atomic.Pointer[Set] }

// NewActiveSet activates a set and takes ownership of it.
func NewActiveSet(s *Set) *ActiveSet {
	a := &ActiveSet{}
	a.current.Store(s)
	return a
}

// Pin returns the active set, held until its Unpin.
func (a *ActiveSet) Pin() *Set {
	for {
		// Between the load and the pin the set may be replaced and given up.
		if s := a.current.Load(); s.tryPin() {
			return s
		}
	}
}

// Swap activates next, takes ownership of it, and unpins the previous set.
func (a *ActiveSet) Swap(next *Set) { a.current.Swap(next).Unpin() }

// Close unpins the active set. Pin must not be called afterwards.
func (a *ActiveSet) Close() { a.current.Load().Unpin() }
