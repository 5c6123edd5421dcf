// Package unblock decides which blocked evaluations may be able to use capacity
// that became free, so that capacity for one small instance does not wake ten
// thousand evaluations that need more.
//
// Filter checks evaluations against one node or member cluster. The
// caller stores their demands between filters. EquivalenceClass groups evaluations
// that no filter can distinguish.
//
// A filter errs on the side of waking: an evaluation that it rejects could not
// have been placed there, by free capacity or by eviction. Values belong to one goroutine.
package unblock
