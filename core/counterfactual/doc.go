// Package counterfactual finds the smallest changes under which a decision would have spared
// a victim, by making the decision again: with the state that it was made on, the same time,
// the policies that decided, and the scheduler itself.
//
// A change is a point of a lattice: a higher priority of the victim, a later time, or a
// smaller request of the job that was placed. Nothing else changes: a later decision finds
// the same allocations, only older. Points are tried from the smallest on, so
// that a reported change is one that was executed, and all smaller ones were executed
// without effect. Nothing is interpolated, because policies need not be monotone.
//
// The package writes nothing. core/server and core/sim call it.
//
// An Explorer serves one goroutine.
package counterfactual
