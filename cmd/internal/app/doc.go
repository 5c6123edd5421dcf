// Package app knows which build of cede this is. It reads nothing but what the
// linker and the Go toolchain left in the binary. cmd/internal/cli calls it;
// everything in it is read-only once the program runs.
package app
