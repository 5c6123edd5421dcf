package wasm

// Live is how many instances of a module are not closed, and whether its code
// was given back.
func Live(m *Module) (instances int, freed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live, m.retired && m.live == 0
}
