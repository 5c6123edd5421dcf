// Package broker orders evaluations for processing. It tracks which are ready,
// which are delivered and until when, which wait for a time, for another evaluation
// of their job or for free capacity, and which are superseded.
//
// It never writes state, reads a job or places anything. It holds in memory what
// the state lists as pending or blocked, so it can be discarded and filled again.
// Evaluations that are superseded or failed are returned by PopCancelable,
// PopFailed and PopDuplicates, and the caller records that in the state.
//
// The leader enqueues evaluations as entries are applied, and workers on every
// server dequeue deliveries and ack or nack them. The simulator does both in
// virtual time. Broker holds the evaluations that can be processed, Blocked those
// that lack capacity.
//
// Both are safe for concurrent use and start no goroutine. One timer of the Clock
// serves all leases and delays. Its callback runs on the Clock's goroutine; with a
// clock.Virtual everything runs on the caller's, in an order that depends on the
// calls alone. Locks are acquired in the order Blocked, Broker. An UnblockFilter
// runs under the lock of Blocked and must not call back.
//
// DESIGN.md describes the life of an evaluation and the reasons for the design.
package broker
