package wasm

import "github.com/cede-scheduler/cede/core/policy"

// Live returns the number of open instances of a module, and whether its code was released.
func Live(m *Module) (instances int, freed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live, m.retired && m.live == 0
}

// StackSize returns the size of the largest stack that the engine holds for an instance.
func StackSize(in policy.Instance) (size int) {
	for _, f := range in.(*instance).ops {
		if f != nil {
			size = max(size, stackSize(f))
		}
	}
	return size
}
