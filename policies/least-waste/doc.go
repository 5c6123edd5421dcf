// Package leastwaste owns the policy named least-waste: of those who may be
// evicted it takes whoever loses the least work.
//
// What a victim costs is the work since its last checkpoint, times the share of
// the cluster that it holds, times what operators say it is worth: see
// rules.Waste. On each option it looks for the cheapest set that makes room: a
// greedy choice by cost for what is gained, then the exchange of what is dear
// for what is cheap. It is quick and close to the best; the policy named
// optimal finds the best. Among options the cheapest set wins.
//
// That is within bands of priority; of two bands the lower one goes first. For
// who is evicted comes back, and evicts those below it that were spared: with
// bands no wider than the gap that it needs, nobody can who was preferred to
// another of the same band.
//
// It keeps scratch memory and no other state; a Policy is used by one goroutine
// at a time.
package leastwaste
