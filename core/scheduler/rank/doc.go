// Package rank orders the nodes that can take an instance of a group.
//
// Order is the tie order of all nodes. Ranker computes, with one pass over the
// columns of the state, which nodes have enough free capacity and their scores,
// and then follows the plan node by node. It evicts nothing: nodes that lack
// capacity but might be freed by evictions are listed for core/preempt.
//
// Values are reused between evaluations and belong to one goroutine.
package rank
