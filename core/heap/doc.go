// Package heap sets how far the heap of a process grows between collections. It holds no state
// of the engine: a process calls Keep once, when it starts.
//
// The setting is one of the whole process. Callers must not run two at a time.
package heap
