// Command cede-bench puts cede servers under load and measures them. Its commands
// are in cmd/internal/benchcli.
package main

import (
	"github.com/cede-scheduler/cede/cmd/internal/benchcli"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
)

func main() {
	env := cmdutil.System()
	env.Exit(int(benchcli.Main(env)))
}
