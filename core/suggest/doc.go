// Package suggest finds the known name that is the most likely correction of an unknown one.
// Parsers of job files, scenarios, rules and configurations
// pass theirs and put the result into their error messages.
//
// Its functions are pure and may be called concurrently.
package suggest
