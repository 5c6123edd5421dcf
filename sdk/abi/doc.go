// Package abi owns the wire between a host and a policy that runs as a
// WebAssembly module or as a process: one frame of fixed layout, the same bytes
// in both. ../ABI.md is its specification; this package is the specification in
// Go, for hosts (Encoder) and for guests (Decoder).
//
// It copies nothing that it need not: an Encoder writes columns straight into a
// guest's memory, a Decoder's views point into the frame. It is standard library
// only and imports nothing that would make a guest large.
//
// Encoder and Decoder keep buffers between frames and serve one goroutine at a
// time.
package abi
