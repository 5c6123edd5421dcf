package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/cmd/internal/cli/agent"
	"github.com/cede-scheduler/cede/cmd/internal/cli/alloc"
	"github.com/cede-scheduler/cede/cmd/internal/cli/binding"
	"github.com/cede-scheduler/cede/cmd/internal/cli/budget"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/compare"
	"github.com/cede-scheduler/cede/cmd/internal/cli/decision"
	"github.com/cede-scheduler/cede/cmd/internal/cli/eval"
	"github.com/cede-scheduler/cede/cmd/internal/cli/event"
	"github.com/cede-scheduler/cede/cmd/internal/cli/job"
	"github.com/cede-scheduler/cede/cmd/internal/cli/kubectl"
	"github.com/cede-scheduler/cede/cmd/internal/cli/kubernetes"
	"github.com/cede-scheduler/cede/cmd/internal/cli/namespace"
	"github.com/cede-scheduler/cede/cmd/internal/cli/node"
	"github.com/cede-scheduler/cede/cmd/internal/cli/operator"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policy"
	"github.com/cede-scheduler/cede/cmd/internal/cli/priorityclass"
	"github.com/cede-scheduler/cede/cmd/internal/cli/rebalance"
	"github.com/cede-scheduler/cede/cmd/internal/cli/schema"
	"github.com/cede-scheduler/cede/cmd/internal/cli/server"
	"github.com/cede-scheduler/cede/cmd/internal/cli/sim"
	"github.com/cede-scheduler/cede/cmd/internal/cli/token"
	"github.com/cede-scheduler/cede/core/agent/driver/exec"
	"github.com/cede-scheduler/cede/core/comparisons"
)

// Run runs this process as the program that its arguments request, and exits.
func Run() {
	// An agent starts this program once per task. If this is such a process, it supervises
	// the task and parses no command line.
	if len(os.Args) == 2 && os.Args[1] == exec.SupervisorArg {
		os.Exit(exec.Supervise())
	}
	// A server starts this program to play a comparison.
	if len(os.Args) == 2 && os.Args[1] == comparisons.Arg {
		os.Exit(compare.PlayMain())
	}
	app.TuneForCommand()
	env := cmdutil.System()
	if kubectl.IsPlugin(os.Args[0]) {
		env.Exit(int(cmdutil.Main(env, kubectl.NewPlugin)))
	}
	env.Exit(int(Main(env)))
}

// Main runs the command line of env and returns the exit code.
func Main(env *cmdutil.Env) cmdutil.Exit { return cmdutil.Main(env, newRootCmd) }

// newRootCmd returns the whole command tree.
func newRootCmd(env *cmdutil.Env) *cobra.Command {
	root := cmdutil.NewRoot(env, &cobra.Command{
		Use:   "cede",
		Short: "Run a cluster scheduler with programmable preemption",
		Long: `cede schedules jobs on the nodes of a cluster. If the cluster is full, allocations
of lower priority cede their capacity to jobs of higher priority, and a policy
decides which allocations are evicted. Policies are built in, or WebAssembly
modules and processes that are loaded while the servers run.

It does not build or ship images: a node runs what its drivers can start.

Exit codes are the same for all commands; cede help exit-codes lists them.`,
		Example: `  cede agent --dev
  cede sim run scenario.yaml
  cede job run web.hcl`,
	})
	root.AddCommand(
		agent.NewCommand(env),
		job.NewCommand(env),
		alloc.NewCommand(env),
		eval.NewCommand(env),
		decision.NewCommand(env),
		node.NewCommand(env),
		event.NewCommand(env),
		priorityclass.NewCommand(env),
		namespace.NewCommand(env),
		budget.NewCommand(env),
		binding.NewClusterCommand(env),
		binding.NewCommand(env),
		rebalance.NewCommand(env),
		server.NewCommand(env),
		token.NewCommand(env),
		operator.NewCommand(env),
		agent.NewConfigCommand(env),
		kubernetes.NewCommand(env),
		kubectl.NewCommand(env),
		sim.NewCommand(env),
		compare.NewCommand(env),
		policy.NewCommand(env),
		schema.NewCommand(env),
		newVersionCmd(env),
		newCompletionCmd(env),
	)
	root.SetHelpCommand(newHelpCmd(env))
	addListAliases(root)
	cmdutil.AddExitCodes(root)
	return root
}

// addListAliases adds the alias ls to every list command.
func addListAliases(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.Name() == "list" && len(sub.Aliases) == 0 {
			sub.Aliases = []string{"ls"}
		}
		addListAliases(sub)
	}
}
