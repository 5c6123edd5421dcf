// Package placement places the missing instances of an evaluation's groups.
//
// An Evaluation holds the state of one evaluation: the proposed cluster state, the
// plan, and the instances that could not be placed. A Placer places the instances of one group:
// each on the best node with enough free capacity, else by the best option that
// core/preempt finds. Groups that could not be placed are explained node by node
// and cached, so that the next evaluation examines only nodes that have changed.
//
// A Workspace holds memory that is reused between evaluations. It serves one
// evaluation at a time on one goroutine.
package placement
