// Package exec implements the driver that runs tasks as processes. Each task has a
// supervisor: a separate instance of this program that starts the task in its own
// session, stores its output and exit code, and kills all remaining processes of the
// task when its first process ends. A task therefore survives its agent, leaves no
// orphans, and a restarted agent finds its result.
//
// The agent and a supervisor communicate through the folder of the task:
//
//	alive       a pipe that the supervisor holds open; it closes when the supervisor ends
//	control     a pipe for commands to the supervisor: signal or kill
//	task.json   the process of the task, once it runs
//	exit.json   how the task ended, once all of its processes have
//	stdout.N    the output from byte N on (see core/agent/logfile); also stderr.N
//	work/       the working directory
//
// A task has all the access of its user and gains no privileges. Tasks without a user
// have one per namespace if the agent runs as root. Where cgroups are available, memory
// and the number of processes are limited. core/agent calls
// the Driver, which is safe for concurrent use. main calls Supervise if the program
// was started as a supervisor.
package exec
