// Package doctor owns the offline checks of a data directory: Run reports every
// damaged entry, snapshot, module and record of a stopped server, and Inspect gives
// read access to its log and snapshots.
//
// It never changes the directory: what must be opened in order to be read is copied
// to a temporary directory first. The cede operator commands use it. Calls for
// different directories may run concurrently.
package doctor
