// Package admission limits the jobs, bindings and clusters that a server accepts, so that
// a small request cannot cost it an unbounded amount of memory: a job of 250 bytes may
// request ten million instances, and each of them costs the scheduler about 160 bytes.
//
// It stores nothing in the replicated state. The leader checks each write before it is
// proposed; an entry in the log is never refused by a limit, so that servers with
// different limits apply the same log alike. core/server/endpoint calls it.
//
// All methods are safe for concurrent use.
package admission

import "cmp"

// Limits are the admission limits. A zero value means the default.
type Limits struct {
	GroupCount           int // instances of one group
	JobAllocations       int // instances of all groups of one job
	JobGroups            int // groups of one job
	GroupTasks           int // tasks of one group
	NamespaceJobs        int // jobs of one namespace, including stopped ones that are not garbage-collected
	NamespaceAllocations int // instances of all jobs of one namespace
	BindingReplicas      int // replicas of one binding
	BindingClusters      int // clusters that one binding lists
	NamespaceBindings    int // bindings of one namespace
	NamespaceReplicas    int // replicas of all bindings of one namespace
	Clusters             int // member clusters
}

// Defaults returns the default limits.
func Defaults() Limits {
	return Limits{
		GroupCount: 100_000, JobAllocations: 100_000, JobGroups: 500, GroupTasks: 50,
		NamespaceJobs: 100_000, NamespaceAllocations: 1_000_000,
		BindingReplicas: 1 << 20, BindingClusters: 1000, NamespaceBindings: 100_000, NamespaceReplicas: 1 << 24,
		Clusters: 10_000,
	}
}

// WithDefaults returns l with defaults in place of zero values.
func (l Limits) WithDefaults() Limits {
	d := Defaults()
	return Limits{
		GroupCount: cmp.Or(l.GroupCount, d.GroupCount), JobAllocations: cmp.Or(l.JobAllocations, d.JobAllocations),
		JobGroups: cmp.Or(l.JobGroups, d.JobGroups), GroupTasks: cmp.Or(l.GroupTasks, d.GroupTasks),
		NamespaceJobs: cmp.Or(l.NamespaceJobs, d.NamespaceJobs), NamespaceAllocations: cmp.Or(l.NamespaceAllocations, d.NamespaceAllocations),
		BindingReplicas: cmp.Or(l.BindingReplicas, d.BindingReplicas), BindingClusters: cmp.Or(l.BindingClusters, d.BindingClusters),
		NamespaceBindings: cmp.Or(l.NamespaceBindings, d.NamespaceBindings), NamespaceReplicas: cmp.Or(l.NamespaceReplicas, d.NamespaceReplicas),
		Clusters: cmp.Or(l.Clusters, d.Clusters),
	}
}
