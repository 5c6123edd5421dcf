// Package bench applies loads to whole servers and measures the results: a storm of
// evaluations, the daily churn of a large cluster, two million allocations.
//
// It owns the simulated nodes, the jobs that it submits, and, unless running servers
// are given, servers of its own in a temporary directory: a real log, fsync and HTTP
// over loopback, one server in this process or several in separate processes. It
// measures only through the public API and metrics. It prints nothing.
//
// cmd/internal/cli calls it. A run is one call of Storm, Churn or Fill with a Target;
// a Target is used by one run at a time, and Close removes everything that it
// created.
package bench
