// Package member implements the agent of a member cluster. It registers the cluster
// with the servers that hold the bindings, renews the cluster's lease, reports the
// resources that bindings may use, runs and stops assignments through a driver, and
// reports their status to the servers.
//
// The agent makes no placement decisions and stores no workload state: the servers
// hold the desired state, and the driver the actual one. A restarted agent therefore
// resumes where the previous one stopped, and all operations are idempotent.
//
// Several pools of servers may share a cluster. They have no connection with each
// other, and the agent is the only component that communicates with all of them, so
// it grants the leases of core/lease. It requests a lease for every assignment and
// claim of a pool, runs nothing without a lease, stops workloads whose lease was
// revoked, and reports to every pool the capacity that is leased to the others.
// Leases are stored before they take effect. A lease is held only while its workload
// runs or its pool is connected.
//
// cmd/internal/app calls the package. Run must be called once. It calls the driver
// from one goroutine, except Resources, which may be called concurrently.
package member
