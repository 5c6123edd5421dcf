// Package process owns policies that run as separate processes: it starts the executable
// that an operator permits, exchanges the frames of sdk/ABI.md with it by go-plugin and
// gRPC, enforces limits, and ensures that no process or file remains.
//
// It makes no decisions and trusts no answers: core/preempt validates them as those of any
// policy.
//
// A Host and its Modules are safe for concurrent use. An instance serves one goroutine at a
// time, but another goroutine may close it.
//
// # Isolation
//
// The executable is copied into a directory of the host while it is hashed, and the copy is
// run, so the verified file is the one that starts. The process receives only the
// environment of the handshake and the operator's additions, no input, its own process
// group, and a private directory for its socket; the connection is encrypted, and both ends
// authenticate with keys created for this process.
//
// A call has a deadline (Limits.Time). A process that misses it, or breaks the protocol, is
// killed. On Linux RLIMIT_DATA bounds its memory at Limits.Memory plus the overhead of a Go
// runtime: it requires no privilege and, unlike RLIMIT_AS, does not count reserved address
// space, of which a Go runtime reserves much. GOMEMLIMIT makes its garbage collector work
// harder before that. On other systems memory is not bounded.
//
// On Linux with Landlock, a process may execute its file, read the libraries of the system,
// and write to its own directory. seccomp denies sockets of the network, and calls that
// Landlock does not cover and that affect files, other processes, or the host; a process
// of root has no capabilities. Both restrict the thread that starts the process, and are
// inherited. Elsewhere a process has all the access of the user of the host: Module.Isolation
// is empty, and loading it logs a warning.
//
// # No orphans
//
// On Linux the kernel kills a process when the thread that started it ends, so each process
// has a thread that starts it and lives as long as it. On every system the standard input of
// a process is a pipe held by the host, and a guest of sdk/serve exits when it closes. The
// whole process group is killed, including children. A process that moves its children into
// another session escapes; run untrusted policies as WebAssembly modules.
//
// # After a killed host
//
// A killed host leaves a directory with copies and sockets. A host locks its directory
// while it lives, and a starting host removes directories that are not locked.
package process
