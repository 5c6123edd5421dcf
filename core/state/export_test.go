package state

// RowOf exposes rowOf to the reference implementation.
var RowOf = rowOf

// SetCurrent replaces the published snapshot, so that a benchmark can start over.
func (s *Store) SetCurrent(sn *Snapshot) { s.current.Store(sn) }

// Waiting returns the number of registered watches, keys and index waits.
func (s *Store) Waiting() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return int(s.hub.waiters.Load()+s.hub.keyed.Load()) + len(s.hub.watches) + len(s.hub.indexes)
}
