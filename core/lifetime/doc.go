// Package lifetime owns when allocations end in virtual time, and which placements wait for
// which of them. It changes no state: its callers apply what is due.
//
// core/sim and core/lookahead call it. Values belong to one goroutine.
package lifetime
