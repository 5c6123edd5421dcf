// Package process owns policies that run as processes of their own: it starts
// the executable that an operator allowed, speaks the frames of sdk/ABI.md with
// it by go-plugin and gRPC, holds it to its limits, and sees to it that nothing
// of it is left behind.
//
// It never decides whom to evict, and it believes nothing that a process says
// beyond its answers: every one of them is checked by core/preempt as those of
// any policy are.
//
// A Host and its Modules are safe for concurrent use. An instance serves one
// goroutine at a time, but may be closed by another.
//
// # What holds a process
//
// The executable is copied into a folder of the host's own while it is hashed,
// and the copy is what runs: what was checked and what is started cannot
// differ. The process gets an empty environment but for the handshake and what
// the operator adds, no input, a group of its own, and a folder for its socket
// that nobody else can enter; the connection is encrypted and both ends know
// each other by keys made for this one process.
//
// A call has a deadline (Limits.Time). A process that misses it is killed, as
// is one that breaks the protocol. On Linux the memory of a process is bounded
// by RLIMIT_DATA, at Limits.Memory and room for a Go runtime on top: a process
// needs no privilege for that, and unlike RLIMIT_AS it does not count address
// space that is only reserved, of which a Go runtime reserves a great deal.
// GOMEMLIMIT makes its garbage collector work harder before it comes to that.
// Elsewhere memory is not bounded.
//
// # No orphans
//
// On Linux the kernel kills a process when the thread that started it ends, so
// one thread starts all of them and lives as long as the host. Everywhere, the
// standard input of a process is a pipe whose other end the host holds; a guest
// of sdk/serve ends with it. A process that starts further processes is killed
// with all of its group. One that hides them in a session of their own is
// beyond that; run what you do not trust as a WebAssembly module.
//
// # What a killed host leaves
//
// A folder: its copies and its sockets. A host holds a lock on its folder while
// it lives, and a host that starts removes the folders that nobody holds.
package process
