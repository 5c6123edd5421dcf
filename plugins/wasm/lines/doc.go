// Package lines finds source lines in the DWARF line table of a WebAssembly module: the
// custom section .debug_line in the versions 2 to 5.
//
// The table comes from an untrusted module. Find reads it once from start to end, holds no
// row of it, and allocates nothing that a number in it determines. It ignores whatever it
// cannot read. The standard library's debug/dwarf, in contrast, allocates as many file names
// as a header announces, and that cannot be recovered from.
//
// All functions are safe for concurrent use.
package lines
