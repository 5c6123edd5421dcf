// Package term owns the presentation of terminal output: tables, emphasis, and
// progress. It does not decide which content is printed, and writes only to the given
// writers.
//
// cmd/internal/cli calls it. A Progress is safe for concurrent use; all other types
// are not.
package term
