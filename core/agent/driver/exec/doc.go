// Package exec is the driver of real processes. Each task has a supervisor: this
// program again, as a small process of its own that starts the task in a session
// of its own, keeps its output and its exit code, and ends everything that the
// task started when the task ends. So work outlives its agent, nothing of it is
// ever orphaned, and an agent that comes back finds what became of it.
//
// The agent and a supervisor know of each other by the task's folder:
//
//	alive       a pipe that the supervisor holds open; its end is the supervisor's
//	control     a pipe on which the supervisor is told to signal or to kill
//	task.json   the task's process, once it runs
//	exit.json   how it ended, once nothing of it is left
//	stdout.N    its output from byte N on (see core/agent/logfile), as stderr.N
//	work/       where it runs
//
// It isolates nothing: a task sees the machine as its user does. core/agent calls
// the Driver, which is safe for concurrent use; main calls Supervise when it was
// started as a supervisor.
package exec
