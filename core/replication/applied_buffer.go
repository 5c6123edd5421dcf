package replication

import (
	"slices"
	"sync"
)

// An AppliedBuffer connects the log with the server that is made from it. The log applies
// entries as soon as it is opened, before there is a server: they are buffered until the
// server is attached. The zero value is an empty buffer. It is safe for concurrent use.
type AppliedBuffer struct {
	mu      sync.Mutex
	pending []Applied
	observe func([]Applied) // nil before Attach
}

// Observe passes applied entries on, or buffers them.
func (b *AppliedBuffer) Observe(list []Applied) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.observe == nil {
		// A snapshot that replaced the state contains everything before it.
		if i := slices.IndexFunc(list, func(a Applied) bool { return a.Entry == nil }); i >= 0 {
			b.pending, list = nil, list[i:]
		}
		b.pending = append(b.pending, list...)
		return
	}
	b.observe(list)
}

// Attach calls observe with the buffered entries, and from now on with all others.
func (b *AppliedBuffer) Attach(observe func([]Applied)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pending) > 0 {
		observe(b.pending)
	}
	b.pending, b.observe = nil, observe
}
