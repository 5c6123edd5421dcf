// Package term owns what output looks like to a person: tables, emphasis, and
// progress. It decides nothing about what is said, and never writes anywhere
// but where it is told.
//
// cmd/internal/cli calls it. A Progress may be told things by any goroutine;
// everything else belongs to one.
package term
