// Package tiebreak orders candidates that no rule of the scheduler orders.
//
// It never weighs candidates. The scheduler, the simulator and preemption call it.
//
// An Order is a value and safe for concurrent use.
package tiebreak
