// Package member owns the agent of a member cluster: it registers its cluster with
// the servers that bindings are registered with, keeps the cluster's lease, says how
// much of it bindings may use, has a driver run what is assigned to the cluster and
// stop what no longer is, and tells the servers what becomes of it.
//
// It decides nothing about who runs where, and keeps nothing but the cluster's
// secret: what shall run the servers say, and what does run the driver. So it goes
// on where an earlier agent stopped, and doing something twice does nothing.
//
// Several pools of servers may share a cluster. They know nothing of one another,
// and the agent is the one place that all of them talk to: so it grants the leases
// of core/lease. It asks for a lease for whatever a pool assigns or claims, lets
// nothing run without one, has what was revoked leave, and tells every pool what is
// kept for the others. Leases are written down before anybody acts by them, and only
// what is running or has a pool that answers keeps its room.
//
// cmd/internal/app calls it. Run is called once, and calls the driver from one
// goroutine; Room apart.
package member
