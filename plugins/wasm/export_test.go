package wasm

// Live returns the number of open instances of a module, and whether its code was released.
func Live(m *Module) (instances int, freed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live, m.retired && m.live == 0
}
