package exec

// SupervisorArg is the argument that starts this program as a supervisor.
const SupervisorArg = "agent-exec"

// Options configure a Driver.
type Options struct {
	// Supervisor is the command that calls Supervise. Default: this program with
	// SupervisorArg.
	Supervisor []string
	// User is the default user of tasks. If it is empty, UIDs apply.
	User string
	// UIDs are the user IDs of tasks without a user if User is empty: one per namespace.
	// If the range is empty, these tasks run as the user of the agent.
	UIDs UIDRange
	// UIDFile stores the namespace of every used ID. It is required with UIDs.
	UIDFile string
	// AllocDir contains the folders of the agent's tasks. If one of them belongs to an ID
	// of UIDs, UIDFile must exist.
	AllocDir string
	// Denied lists the users that no task may run as. Users are compared by their IDs.
	Denied []string
	// MemoryLimit limits the memory of a task to this multiple of its request, but at
	// least to memorySlack more than the request. If it is 0, memory is not limited.
	MemoryLimit float64
	// LogSize is the size of an output file in bytes, and LogKeep the number of files
	// retained per output. Default: 10 MiB, 5.
	LogSize int64
	LogKeep int
	// Bound ends every task with the agent, even if the agent is killed.
	Bound bool
}

// A UIDRange is a range of user IDs that no account of the host uses. The group of a task
// has the same ID.
type UIDRange struct{ First, Count uint32 }

// memorySlack is the minimum difference between the limit of a task's memory and its
// request, in bytes.
const memorySlack = 64 << 20

// memoryLimit returns the limit of a task's memory in bytes; 0: none.
func (o *Options) memoryLimit(requestMB int64) int64 {
	if o.MemoryLimit <= 0 || requestMB <= 0 {
		return 0
	}
	request := requestMB << 20
	return max(int64(float64(request)*o.MemoryLimit), request+memorySlack)
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
