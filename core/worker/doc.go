// Package worker takes evaluations from the broker, has the scheduler plan them
// on a state that is new enough, submits the plans, and writes down what came
// of it. Feed is the way back: what was applied to the state goes to the broker
// and to the evaluations that wait for room.
//
// It decides nothing about placement. Servers run several workers each, in a
// Pool; the simulator steps one through virtual time: both do it with this code.
//
// A Worker and its scheduler serve one goroutine. Feed serves the goroutine
// that applies. A Pool is safe for concurrent use.
package worker
