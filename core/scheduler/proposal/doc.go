// Package proposal holds the plan of one evaluation while it is being made: the
// commit groups collected so far (Plan), the cluster state as it will be once
// they are committed (State), and whether the evaluation may evict (Preemption).
//
// It decides nothing and writes nothing to the store. The packages that place
// instances call it. A proposal belongs to one evaluation and one goroutine,
// except for snapshots returned by State.Freeze, which never change.
package proposal
