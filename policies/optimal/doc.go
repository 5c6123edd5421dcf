// Package optimal owns the policy named optimal: on each option it finds the
// set of victims that costs the least, by search, where others choose greedily.
//
// What a set costs is a matter of configuration, and always lexicographic:
// by priority (the lowest highest priority, then the fewest victims, then the
// lowest sum of priorities), by victims (the fewest, then the lowest sum), or by
// waste (the least, see rules.Waste, then the fewest, then the lowest sum).
// Among options the cheapest set wins, by the same.
//
// The guarantee: no set of candidates that makes room costs less, unless the
// search of that option came to its limit of steps. Even then the set costs no
// more than that of default, from which the search starts; and of sets that
// cost the same as default's it is default's.
//
// A set is a solution of a knapsack cover in several dimensions: branch and
// bound over the candidates, those first that bring most for their cost. A
// branch is left when its lower bound, taken over each dimension by itself, is
// no better than the best set known, and a candidate is not tried where one that
// brings as much for no more was passed over, equals among them.
//
// It keeps scratch memory and no other state; a Policy is used by one goroutine
// at a time.
package optimal
