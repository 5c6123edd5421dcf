// Package syntax is what all expressions in CEL have in common, those of rules and those
// of conditions on results: limits, and problems with positions in this project's words.
// It does not list names.
//
// All functions are safe for concurrent use.
package syntax
