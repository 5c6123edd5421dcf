// Package confine bounds the resources of a process that works on input of others: the
// compiler of modules, and the player of comparisons.
//
// The process calls Apply before it reads its input. Its parent starts it, limits its time,
// and calls Killed to distinguish the limits from other failures.
package confine

import "time"

// Limits bound the calling process.
type Limits struct {
	Memory int64         // data of the process in bytes
	CPU    time.Duration // rounded up to seconds
	File   int64         // size of a file that the process writes, in bytes
	Nice   int           // priority of its threads, from 0 to 19, the lowest
}
