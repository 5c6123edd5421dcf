// Command cede schedules workloads on clusters, and simulates and compares preemption
// policies. Its commands are in cmd/internal/cli.
package main

import (
	"os"

	"github.com/cede-scheduler/cede/cmd/internal/cli"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/agent/driver/exec"
)

func main() {
	// An agent starts this program once per task. If this is such a process, it supervises
	// the task and parses no command line.
	if len(os.Args) == 2 && os.Args[1] == exec.SupervisorArg {
		os.Exit(exec.Supervise())
	}
	env := cmdutil.System()
	env.Exit(int(cli.Main(env)))
}
