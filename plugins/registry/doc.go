// Package registry creates the policy versions that a server or a command runs: it opens
// bundles, verifies their signatures, has a host load them, and tests each version before
// its first decision. Package policy holds the active versions.
//
// It uses hosts and built-in policies through interfaces that cmd implements, and refers to
// no policy by name except default. It does not read configuration files or the log of a
// cluster.
//
// A Loader is safe for concurrent use.
package registry
