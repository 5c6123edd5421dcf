// Package clock owns the two kinds of time: Real, which passes by itself, and
// Virtual, which passes when it is told to. Whatever must replay takes a Clock
// instead of calling the time package.
//
// It never decides what happens at a moment; it only calls back. The broker
// and the simulator call it; it imports nothing of ours.
//
// Both clocks are safe for concurrent use. Virtual runs callbacks on the
// goroutine that advances it and holds no lock meanwhile, so a callback may
// start, stop and reset timers.
package clock
