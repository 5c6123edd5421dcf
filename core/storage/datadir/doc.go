// Package datadir owns the shared basis of a data directory: the path of each file,
// the lock that admits one process, the server's identity files, and the
// errors that name a damaged part together with its remedy.
//
// It never opens a database. core/storage and its sub-packages use it, and so do
// commands that only need a path. Its functions may be called concurrently.
package datadir
