// Package rules compiles a policy that is written as a few expressions in CEL: it reads
// them from policy.yaml or from a command line, checks names and types, and returns a
// WebAssembly module with the ABI of every policy. Servers load such modules like any
// other and need none of this package.
//
// cel-go parses and checks expressions; it does not evaluate them. Package schema lists
// the names, ir is the checked form, link writes the module. docs/reference/rules.md
// documents the language.
//
// All functions are safe for concurrent use.
package rules
