package alloc

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// allocLogs holds the flags of `cede alloc logs`.
type allocLogs struct {
	env    *cmdutil.Env
	conn   *cmdutil.Connection
	task   string
	stderr bool
	follow bool
	tail   int64
}

func newAllocLogsCmd(env *cmdutil.Env) *cobra.Command {
	l := &allocLogs{env: env}
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Print the output of an allocation",
		Long: `Print the standard output of an allocation, or its standard error with --stderr. Any
server can be addressed: it forwards the request to the node.

Output that the node has rotated away is not available.`,
		Example: "  cede alloc logs 9d21\n  cede alloc logs 9d21 --task server --stderr -f\n  cede alloc logs 9d21 --tail 2000",
		Args:    cmdutil.PositionalArgs(1, 1, "one allocation"),
	}
	l.conn = cmdutil.ConnectionFlags(cmd, env)
	f := cmd.Flags()
	f.StringVar(&l.task, "task", "", "print the output of `TASK` (default: the only task of the group)")
	f.BoolVar(&l.stderr, "stderr", false, "print standard error instead of standard output")
	f.BoolVarP(&l.follow, "follow", "f", false, "print new output until the task ends")
	f.Int64Var(&l.tail, "tail", 0, "start `N` bytes before the end")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if l.tail < 0 {
			return cmdutil.Usagef("use a number of bytes", "--tail must be at least 0, not %d", l.tail)
		}
		return l.run(cmd.Context(), args[0])
	}
	return cmd
}

func (l *allocLogs) run(ctx context.Context, id string) error {
	a, err := apiview.FindAlloc(ctx, l.conn, id)
	if err != nil {
		return err
	}
	o := client.LogOptions{Task: l.task, Stderr: l.stderr, Follow: l.follow, Offset: -l.tail}
	if err := l.conn.Client.Allocations().Logs(ctx, a.ID, o, l.env.Stdout); err != nil {
		return cmdutil.InterruptError(ctx, err)
	}
	return nil
}
