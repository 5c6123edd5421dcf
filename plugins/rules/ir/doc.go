// Package ir represents checked rules: typed expressions whose names are resolved to
// fields of package schema. It also knows which expressions can have no value, and how
// they change as time passes.
//
// Package rules builds expressions, package link compiles them, and the interpreter of the
// tests evaluates them. Expressions are immutable after they are built.
package ir
