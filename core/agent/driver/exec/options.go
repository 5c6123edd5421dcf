package exec

// SupervisorArg is the argument that starts this program as a supervisor.
const SupervisorArg = "agent-exec"

// Options configure a Driver.
type Options struct {
	// Supervisor is the command that calls Supervise. Default: this program with
	// SupervisorArg.
	Supervisor []string
	// User is the default user of tasks. If it is empty, it is the user of the agent.
	User string
	// Denied lists the users that no task may run as.
	Denied []string
	// LogSize is the size of an output file in bytes, and LogKeep the number of files
	// retained per output. Default: 10 MiB, 5.
	LogSize int64
	LogKeep int
	// Bound ends every task with the agent, even if the agent is killed.
	Bound bool
}

func (o Options) withDefaults() Options {
	if o.LogSize <= 0 {
		o.LogSize = 10 << 20
	}
	if o.LogKeep <= 0 {
		o.LogKeep = 5
	}
	return o
}
