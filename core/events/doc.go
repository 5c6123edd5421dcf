// Package events owns the stream of what happened: typed events with ids and
// plain values, a buffer of the newest from which a reader resumes by index, and
// subscriptions that never hold anybody up: a reader that is too slow is told
// what it lost.
//
// It never reads the state and keeps no pointers into it. core/server derives
// events from applied entries, the same on every server, and publishes them;
// core/api streams them.
//
// Buffer is safe for concurrent use. A Subscription serves one reader.
package events
