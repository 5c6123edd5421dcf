// Package registry owns the policies that one server or one command has loaded:
// it opens bundles, checks who signed them, has a host load them, tests each
// version before it may decide anything, and puts versions in force and takes
// them out of it without disturbing evaluations that run.
//
// It knows hosts and built-in policies through interfaces that cmd fills in, and
// no policy by name but default. Reading configuration and the log of a cluster
// are others' business.
//
// A Registry is safe for concurrent use.
package registry
