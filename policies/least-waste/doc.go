// Package leastwaste implements the policy "least-waste": among the eligible
// allocations it evicts those that lose the least work.
//
// The cost of a victim is its work since the last checkpoint, times the share of the
// cluster that it holds, times the factor that operators attached; see rules.Waste.
// On each option the policy searches for the cheapest set that frees enough: a greedy
// choice by cost per gain, followed by exchanges of expensive victims for cheap ones.
// It is fast and close to the optimum; the policy "optimal" finds the optimum. Among
// options the cheapest set wins.
//
// This holds within bands of priority; of two bands the lower one is evicted first.
// The reason: a victim returns, and evicts allocations below it that were spared. If
// bands are not wider than the gap that it needs, it cannot evict an allocation that
// was preferred to it in the same band.
//
// A Policy holds scratch memory and no other state; it must be used by one goroutine
// at a time.
package leastwaste
