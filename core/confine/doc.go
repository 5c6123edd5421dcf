// Package confine bounds the resources of a process that works on input of others: the
// compiler of modules, and the player of comparisons.
//
// The process calls Apply before it reads its input. Its parent starts it, limits its time,
// and calls Killed and OutOfMemory to distinguish the limits from other failures.
package confine

import (
	"slices"
	"strings"
	"time"
)

// Limits bound the calling process.
type Limits struct {
	Memory int64         // data of the process in bytes
	CPU    time.Duration // rounded up to seconds
	File   int64         // size of a file that the process writes, in bytes
	Nice   int           // priority of its threads, from 0 to 19, the lowest
}

// RuntimeCrash begins a line that the Go runtime prints for an invalid access on its own
// stack. Go code cannot cause one, but the collector does when the kernel refuses it memory:
// not each of its allocations is checked.
const RuntimeCrash = "SIGSEGV: segmentation violation"

// outOfMemory is printed by runtimes when the kernel refuses memory: Go, cgo, C++ and Rust.
var outOfMemory = []string{
	"out of memory", "cannot allocate memory", "\n" + RuntimeCrash, "pthread_create failed", "bad_alloc", "memory allocation of",
}

// OutOfMemory reports whether a process failed because it was refused memory, by its output
// on standard error.
func OutOfMemory(output string) bool {
	output = "\n" + output
	return slices.ContainsFunc(outOfMemory, func(s string) bool { return strings.Contains(output, s) })
}
