// Package toolchain owns the build of a policy's module from its sources: the
// compiler and its flags, where it is found, and what to install if it is missing.
// The same sources and tools produce the same bytes.
//
// cmd/internal/cli calls it. It reads the manifest and never writes it.
package toolchain
