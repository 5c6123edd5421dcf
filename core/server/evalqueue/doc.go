// Package evalqueue is the queue of evaluations that the workers of a server work on.
//
// A Queue has two sources: the broker of this server while it leads, and otherwise the
// broker of the leader, over RPC. Both do the same: dequeue an evaluation, renew its
// lease, submit a plan, write its results, and ack or nack it.
//
//	worker ── Queue ─┬─ Local ── broker, plan queue, log
//	                 └─ remote ── rpc.Client ··· rpc.Handler ── Local of the leader
//
// A delivery is valid at the leader that made it: no other leader has its token. After a
// change of leadership it is void, and the next leader delivers the evaluation again.
//
// On the leader, Pump feeds the broker with what was applied to the state, and Reaper
// writes evaluations that the broker has cancelled or given up.
//
// Queue and Local are safe for concurrent use. Pump.Observe must be called in the order of
// the log; it never blocks.
package evalqueue
