// Package policy owns how the engine sees policies: the interface it calls
// whatever a policy is made of (native Go, a Wasm module, a process), policy
// versions and their identity, the set of versions a scheduler works with, and
// the faults that policies commit.
//
// It never decides who is evicted: core/preempt asks the policies and checks
// their answers. core/preempt and core/scheduler call it; hosts in plugins
// implement Instance.
//
// Version and Set are safe for concurrent use. An Instance serves one
// goroutine at a time; Version.Acquire hands them out.
package policy
