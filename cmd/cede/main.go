// Command cede schedules work on clusters, and plays and compares preemption
// policies. Its commands are in cmd/internal/cli.
package main

import (
	"os"

	"github.com/cede-scheduler/cede/cmd/internal/cli"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/core/agent/driver/exec"
)

func main() {
	// The agent starts this program again, once for each task, as its supervisor.
	if len(os.Args) == 2 && os.Args[1] == exec.SupervisorArg {
		os.Exit(exec.Supervise())
	}
	env := cmdutil.System()
	env.Exit(int(cli.Main(env)))
}
