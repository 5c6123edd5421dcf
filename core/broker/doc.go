// Package broker owns the order in which evaluations are worked on: who is
// ready, who is being worked on and until when, who waits for a time, for
// another evaluation of its job or for room in the cluster, and which became
// needless.
//
// It never writes state, looks at a job or places anything. It holds in memory
// what the state says is pending or blocked, so it can be thrown away and
// filled again; what it finds needless or failed it hands out (TakeCancelable,
// TakeFailed, TakeDuplicates), and somebody else writes that down.
//
// The leader feeds it as entries are applied; workers on every server take
// deliveries and settle them; the simulator does both in virtual time. Broker
// holds the evaluations that could run, Blocked those that could not.
//
// Both are safe for concurrent use and start no goroutine. One timer of the
// Clock serves all leases and delays; its callback runs on the Clock's
// goroutine, and under a clock.Virtual everything happens on the caller's, in
// an order that depends on the calls alone. Locks are taken Blocked first,
// then Broker. A Screen runs under Blocked's lock and must not call back.
//
// DESIGN.md tells the life of an evaluation and why it is as it is.
package broker
