// Package gang places all missing instances of a job, or none of them.
//
// Place tries, from cheap to expensive: each group by itself, the largest group
// first; for co-located groups one topology domain after another, of which the policy
// chooses one if they require evictions; and last a bounded depth-first search over
// nodes and victims. Everything is tried without evictions first. What evicts is then revised
// node by node. The instances share one commit group, so the applier commits all or none. If the
// search ends at its bound, the explanation states it. If no domain takes the gang, it
// states how much of it the largest one takes.
package gang
