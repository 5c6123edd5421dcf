// Command cede schedules workloads on clusters, and simulates and compares preemption
// policies. Its commands are in cmd/internal/cli.
package main

import "github.com/cede-scheduler/cede/cmd/internal/cli"

func main() { cli.Run() }
