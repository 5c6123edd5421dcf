// Package events provides the event stream: typed events with IDs and plain values,
// a buffer of the newest events from which a reader resumes by index, and
// subscriptions that never block the publisher: a reader that is too slow is
// informed of the gap.
//
// It never reads the state and retains no pointers into it. core/server derives
// events from applied entries, identically on every server, and publishes them;
// core/api streams them.
//
// Buffer is safe for concurrent use. A Subscription serves one reader.
package events
