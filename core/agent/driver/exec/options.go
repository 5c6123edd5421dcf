package exec

// SupervisorArg is the argument by which this program is started as a supervisor.
const SupervisorArg = "agent-exec"

// Options say how tasks are run.
type Options struct {
	// Supervisor is the command that calls Supervise. Default: this program with
	// SupervisorArg.
	Supervisor []string
	// User is who tasks run as that do not say; empty: whoever the agent is.
	User string
	// Denied are users that no task may run as.
	Denied []string
	// LogSize is how many bytes of an output one file holds, and LogKeep how many
	// files are kept. Default: 10 MiB, 5.
	LogSize int64
	LogKeep int
	// Bound ends every task with the agent, even where that was killed.
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
