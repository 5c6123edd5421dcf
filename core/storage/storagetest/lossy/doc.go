// Package lossy owns a disk for tests that forgets, when its power goes, every byte
// that was not synced: a file system in user space in front of a folder. Names and
// lengths are remembered at once, as by file systems that keep a journal of those alone.
//
// Tests call it, and nothing else does. It runs on Linux, where FUSE may be mounted.
// One goroutine at a time switches the power; any number use the files.
package lossy
