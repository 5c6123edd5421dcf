// Package schema lists the names that rules may use: their types, which rules may use
// them, and which columns of the SDK they require. The compiler, the runtime in C, the
// interpreter of the tests and the reference page follow this table.
//
// It has no state. Package rules and its subpackages import it.
package schema
