// Package fairshare implements the policy "fair-share": among allocations of strictly
// lower priority it evicts those of the namespaces with the highest dominant share
// relative to their weight.
//
// A namespace's share is computed as it will be once the preemptor runs. It falls
// with each of the namespace's victims, so that the next victim may belong to another
// namespace. The policy computes this itself, option by option, and does not use
// Adaptive: the table of namespaces holds all required values, and one call suffices
// where rounds would need one per victim. Within a namespace the lowest priority is
// evicted first, and within a priority the allocation nearest to the need. Between
// namespaces, priority only determines which allocations are candidates.
//
// README.md is for operators. A Policy retains its configuration and scratch memory,
// and nothing else between calls; it must be used by one goroutine at a time.
package fairshare
