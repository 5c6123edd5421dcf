// Package background owns the life cycle of a part's background goroutines: start,
// wake up, and stop with a wait. The log and the history use it.
//
// Group is safe for concurrent use after Start.
package background
