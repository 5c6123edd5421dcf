// Package lossy owns a disk for tests that loses every unsynced byte when its power is
// turned off: a FUSE file system in front of a directory. Names and sizes are durable at
// once, as on file systems that journal metadata only.
//
// It is only used by tests, and requires Linux with permission to mount FUSE. One goroutine
// at a time switches the power; any number may use the files.
package lossy
