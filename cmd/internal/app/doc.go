// Package app assembles one process from a configuration: a server, a node's agent,
// or both, with their listeners. It starts them in order, applies the settings that a
// reload may change, and stops them in reverse order. It also reports the build of
// cede.
//
// It does not schedule and does not parse flags: cmd/internal/config reads the
// configuration, and cmd/internal/cli turns signals into a context and a channel.
//
// Start returns a running Process; Stop ends it and waits. Reload may be called from
// any goroutine at any time.
package app
