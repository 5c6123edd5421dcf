// Package conflict measures how often schedulers that share a state conflict, in virtual
// time. It runs the workers, schedulers and the applier of a server. A decision takes as
// long as the configuration states, and the plan is submitted at its end, so that a plan
// conflicts exactly if other schedulers committed to the same nodes meanwhile.
//
// It owns the workload and the event loop. It makes no decisions, starts no servers and
// reads no clock: the same configuration produces the same result. cmd/internal/benchcli
// calls Measure, which may be called concurrently.
package conflict
