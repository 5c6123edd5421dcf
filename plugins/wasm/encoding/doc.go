// Package encoding writes the binary format of WebAssembly: numbers, sections, value
// types, instructions and the bodies of functions. It knows nothing about the purpose of
// a module.
//
// Package meter rewrites modules with it, and package rules/link writes the functions of
// rules. All functions are safe for concurrent use; a Body is used by one goroutine.
package encoding
