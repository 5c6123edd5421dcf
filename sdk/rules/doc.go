// Package rules owns the rules named default, as plain SDK code, and the parts
// that other policies build on: the distance of a victim to what is needed, the
// search for the nearest, and the mean of ranking components, which are parts of
// default; what an option lacks while rows come and go, and what evictions waste.
//
// The rules: a node that needs no eviction wins. Otherwise lowest priority
// goes first; within a priority the allocation nearest to what is still needed,
// measured again after each pick; equals in the order of the rows, which is by
// id. The host then spares the redundant in reverse order of picking, so that
// the victims are minimal. Among options: the lowest highest victim priority,
// then the fewest victims, the lowest sum of priorities, and the best fit with
// the victims gone.
//
// It never looks at a clock, a map, or anything kept from an earlier call. A
// Default is used by one goroutine at a time; each goroutine has its own from
// New. After the first calls have grown its scratch memory it allocates nothing.
package rules
