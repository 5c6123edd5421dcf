package policy

import "sync/atomic"

// ActiveSet is the set in force. Swap replaces it while evaluations run: those
// that have begun end on the set that they pinned.
type ActiveSet struct{ current atomic.Pointer[Set] }

// NewActiveSet puts a set in force and takes it over.
func NewActiveSet(s *Set) *ActiveSet {
	a := &ActiveSet{}
	a.current.Store(s)
	return a
}

// Pin is the set in force, held until its Unpin.
func (a *ActiveSet) Pin() *Set {
	for {
		// Between the load and the pin the set may be replaced and given up.
		if s := a.current.Load(); s.tryPin() {
			return s
		}
	}
}

// Swap puts next in force, takes it over and gives the old set up.
func (a *ActiveSet) Swap(next *Set) { a.current.Swap(next).Unpin() }

// Close gives the set in force up; nothing may be pinned any more.
func (a *ActiveSet) Close() { a.current.Load().Unpin() }
