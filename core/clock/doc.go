// Package clock provides two clocks: Real, the time of the machine, and Virtual,
// which advances only on request. Code that must be replayed takes a Clock instead
// of calling package time.
//
// A clock decides nothing; it only calls back. The broker and the simulator use it.
// It imports no other package of the project.
//
// Both clocks are safe for concurrent use. Virtual runs callbacks on the goroutine
// that advances it and holds no lock meanwhile, so a callback may start, stop and
// reset timers.
package clock
