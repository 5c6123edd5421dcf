// Package bench puts loads on a whole server and measures what it makes of them: a
// storm of evaluations, the daily churn of a large cluster, two million allocations.
//
// It owns the simulated nodes, the jobs that it submits, and, unless it is shown
// servers that run, servers of its own in a temporary folder: a real log, fsync and
// HTTP over loopback, one in this process or several in processes of their own. It
// never looks into a server: what it measures is what any client may ask. It prints
// nothing.
//
// cmd/internal/cli calls it. A run is one call of Storm, Churn or Fill with a Target;
// a Target is used by one run at a time, and Close leaves nothing of it behind.
package bench
