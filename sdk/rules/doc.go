// Package rules implements the built-in policy "default" as plain SDK code, and the
// parts that other policies build on: the distance of a victim to the need, the
// search for the nearest victim, the mean of rank components, the shortfall of an
// option while rows are picked and unpicked, and the work that evictions waste.
//
// The rules of default: a node that needs no eviction wins. Otherwise the lowest
// priority is evicted first. Within a priority, the allocation nearest to the
// remaining need is evicted first, measured again after each pick; equal rows are
// picked in row order, which is by ID. The host then reprieves redundant victims in
// reverse order, so that the set of victims is minimal. Options are ranked by the
// lowest highest victim priority, then by the fewest victims, the lowest sum of
// priorities, and the best fit without the victims.
//
// The package reads no clock and no map order, and retains nothing from an earlier
// call. A Default must be used by one goroutine at a time; New returns one for each.
// Once the first calls have grown its scratch memory, it does not allocate.
package rules
