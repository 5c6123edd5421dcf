// Package link writes the module of rules. The greater part of a module is the same for all
// rules: runtime/runtime.c, which decodes frames with the library for C, and which
// runtime/build.sh compiles to runtime/runtime.wasm. Link replaces three of its functions by
// the code of the rules, and adds the constants and the description of the policy. In this
// code, an expression without a value branches to the end of its entry: see ADR 0074.
//
// Package rules calls it. All functions are safe for concurrent use.
package link
