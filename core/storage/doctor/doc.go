// Package doctor owns the offline checks of a data directory: Run reports every
// damaged entry, snapshot, module and record of a stopped server, and Inspect gives
// read access to its log and snapshots.
//
// It never changes the directory: databases are copied before they are opened,
// to a temporary directory. The cede operator commands use it. Calls for
// different directories may run concurrently.
package doctor
