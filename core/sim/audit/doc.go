// Package audit checks the timeline of a run against the documented rules of scenarios:
// capacity, constraints, victims, disruption budgets, gangs, times, and whether work waits
// although it could run.
//
// It shares no code with the packages that decide. It reads the scenario as it is written
// and the timeline, and has arithmetic and rules of its own, taken from docs/reference and
// docs/concepts. If both sides have the same misunderstanding, it finds nothing.
//
// Findings are bugs of the scheduler or of this package, never opinions: rules that the
// documents leave open, such as the best node, are not checked. Work that a policy may
// spare for reasons of its own (strict budgets, all-or-none jobs) counts as not evictable.
//
// Check runs on one goroutine and modifies none of its arguments.
package audit
