// Package taskconfig defines the configuration of tasks, by driver. Servers check it when
// a job is registered, before the job can evict anything, and agents decode it when they
// start a task.
//
// It runs nothing. All functions are safe for concurrent use.
package taskconfig
