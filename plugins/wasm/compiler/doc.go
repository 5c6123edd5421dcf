// Package compiler compiles modules of policies in a separate process with a budget, because
// the engine's compiler has none: a module of a few hundred kilobytes can occupy gigabytes of
// memory and a processor for minutes. It also owns the configuration of the engine, which
// must be the same in both processes.
//
// The process writes native code to the engine's cache directory, where the host finds it.
// It receives no environment, and no files except the module and that directory. It is this
// program again: a program that contains the package compiles and exits if Arg is its only
// argument.
//
// The package does not decide which modules are compiled, and runs none of their code.
// plugins/wasm calls it. A Compiler is safe for concurrent use.
package compiler
