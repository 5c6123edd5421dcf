// Package toolchain owns how a policy's module is built of its sources: which
// compiler with which flags, where it is found, and what to install where it is
// not. The same sources and tools give the same bytes.
//
// cmd/internal/cli calls it. It reads the manifest and never writes it.
package toolchain
