package model

// A Task is one process of a group's instances. The scheduler reads the group's
// Resources only; the node runs the tasks.
type Task struct {
	Name        string
	Driver      string // exec or sim
	User        string // "": the agent's own
	Config      []byte // JSON object that the driver reads
	Env         map[string]string
	Resources   Resources // its share of the group's
	KillSignal  string    // "": SIGTERM
	KillTimeout int64     // nanoseconds between signal and kill; Group.KillTimeout is the greatest of its tasks
	Leader      bool      // the others end when it does
}
