// Package registry owns the policies that a server or a command has loaded: it opens
// bundles, verifies their signatures, has a host load them, tests each version before its
// first decision, and activates and deactivates versions without disturbing running
// evaluations.
//
// It uses hosts and built-in policies through interfaces that cmd implements, and refers to
// no policy by name except default. It does not read configuration files or the log of a
// cluster.
//
// A Registry is safe for concurrent use.
package registry
