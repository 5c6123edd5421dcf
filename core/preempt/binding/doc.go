// Package binding finds the member clusters on which a binding fits once replicas of
// other bindings have left, and the replicas that have to leave.
//
// Candidates are assignments of strictly lower priority. Cluster-scoped bindings, and
// assignments that hold nothing, are never candidates. If the policy declares it, elastic
// bindings are shrunk to their minimum before they are evicted: on one cluster
// (elastic.go), or on several clusters together (spread.go, shrink_budget.go).
//
// The package never changes an assignment: it returns victims, and core/scheduler, its
// caller, puts them into plans.
//
// Every search has state of its own. Find and FindSpread are safe for concurrent use.
package binding
