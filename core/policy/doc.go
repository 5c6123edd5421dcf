// Package policy defines how the engine calls policies: the interface of an
// instance, whatever the policy is made of (native Go, a Wasm module, a process),
// policy versions and their identity, the set of versions that a scheduler uses,
// and the faults of policies.
//
// It does not decide about evictions: core/preempt calls the policies and checks
// their answers. core/preempt and core/scheduler use it; hosts in plugins implement
// Instance.
//
// Version and Set are safe for concurrent use. An Instance serves one goroutine at
// a time; Version.Acquire returns it.
package policy
