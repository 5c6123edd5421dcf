// Package pool connects a controller of a Kubernetes cluster to a pool of servers: a Source
// follows a policy there, and a Reporter sends the state and the decisions of the controller.
// It loads and decides nothing itself.
//
// All types are safe for concurrent use.
package pool
