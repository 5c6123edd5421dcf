// Package fit computes whether and how well a group fits on a node, as the node
// is or while allocations are taken off it and put back.
//
// It never decides which allocations leave: core/preempt and its sub-packages do,
// and core/scheduler ranks nodes by Score.
//
// Functions are pure. A value serves one goroutine.
package fit
