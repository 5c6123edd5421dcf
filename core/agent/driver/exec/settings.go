package exec

import (
	"regexp"
	"strings"
)

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_.]*)\}`)

// expand replaces ${NAME} with its value in env. Unknown names remain unchanged,
// because they may be meant for a shell.
func expand(text string, env []string) string {
	return variable.ReplaceAllStringFunc(text, func(match string) string {
		name := strings.TrimPrefix(match[2:len(match)-1], "env.")
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value
			}
		}
		return match
	})
}

// An order is the task that a supervisor runs, sent as one line of JSON.
type order struct {
	Path    string   `json:"path"` // of the program
	Args    []string `json:"args"` // including the program name
	Env     []string `json:"env"`
	Dir     string   `json:"dir"` // folder of the task
	WorkDir string   `json:"workDir"`
	User    *account `json:"user,omitempty"`
	LogSize int64    `json:"logSize"` // bytes of one file
	LogKeep int      `json:"logKeep"` // files of each output
	Memory  int64    `json:"memory"`  // limit in bytes; 0: none
	// Bound ends the task with the agent, after boundGrace.
	Bound bool `json:"bound,omitempty"`
}

// An account holds the user and groups that a task runs as.
type account struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
}

// An answer reports that the task runs, or why it does not.
type answer struct {
	PID int    `json:"pid,omitempty"`
	Err string `json:"err,omitempty"`
}
