// Command cede schedules work on clusters, and plays and compares preemption
// policies. Its commands are in cmd/internal/cli.
package main

import "github.com/cede-scheduler/cede/cmd/internal/cli"

func main() {
	env := cli.System()
	env.Exit(int(cli.Main(env)))
}
