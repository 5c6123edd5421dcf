// Package app puts one process together: a server, a node's agent, or both, with
// their listeners, from a configuration; it starts them in order, takes over what a
// reload may change, and stops them in the opposite order. It also knows which
// build of cede this is.
//
// It schedules nothing and parses no flags: cmd/internal/config has read what the
// operator wants, cmd/internal/cli turns signals into a context and a channel.
//
// A Process is started by Start, which starts everything that runs, and ended by
// Stop, which waits for it. Reload may be called by anybody at any time.
package app
