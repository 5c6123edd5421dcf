// Package abi defines the wire format between a host and a policy that runs as a
// WebAssembly module or as a process: one frame of fixed layout, with the same bytes
// in both. ../ABI.md is the specification. This package implements it in Go, for
// hosts (Encoder) and for guests (Decoder).
//
// It avoids copies: an Encoder writes columns directly into a guest's memory, and a
// Decoder's views point into the frame. It imports the standard library only, and
// nothing that would make a guest large.
//
// An Encoder or Decoder retains buffers between frames and must be used by one
// goroutine at a time.
package abi
