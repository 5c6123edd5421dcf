// Package optimal implements the policy "optimal": on each option it searches for the
// set of victims with the lowest cost, where other policies choose greedily.
//
// The cost is configured and always lexicographic: by priority (the lowest highest
// priority, then the fewest victims, then the lowest sum of priorities), by victims
// (the fewest, then the lowest sum), or by waste (the least, see rules.Waste, then
// the fewest, then the lowest sum). Among options the cheapest set wins, by the same
// cost.
//
// The guarantee: no set of candidates that frees enough costs less, unless the search
// on that option reached its limit of steps. Even then the set costs no more than
// that of default, from which the search starts; and among sets of the same cost as
// default's it is default's.
//
// A set is a solution of a multi-dimensional knapsack cover. The search is branch and
// bound over the candidates, the highest gain per cost first. It prunes a branch if
// its lower bound, taken over each dimension by itself, is no better than the best
// known set. It skips a candidate if another one with at least its gain at no higher
// cost was skipped.
//
// It keeps scratch memory and no other state; a Policy is used by one goroutine
// at a time.
package optimal
