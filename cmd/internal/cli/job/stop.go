package job

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/apiview"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

func newJobStopCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stop ID",
		Short: "Stop a job",
		Long: `Stop a job: its allocations are stopped gracefully. The job stays in the history for a
while, so that cede job status and cede job history still show it; --purge deletes it
at once.

The command waits for the evaluation, not until the tasks have ended.`,
		Example: "  cede job stop web\n  cede job stop web --purge",
		Args:    cmdutil.PositionalArgs(1, 1, "one job"),
	}
	purge := cmd.Flags().Bool("purge", false, "delete the job at once")
	detach := cmd.Flags().Bool("detach", false, detachUsage)
	timeout := cmd.Flags().Duration("timeout", 5*time.Minute, "wait for at most `DURATION`")
	return cmdutil.ServerCommand(env, cmd, func(ctx context.Context, c *cmdutil.Connection, args []string) (cmdutil.Document, error) {
		job, err := apiview.FindJob(ctx, c, args[0])
		if err != nil {
			return cmdutil.Document{}, err
		}
		answer, err := c.Client.Jobs().Stop(ctx, job.ID, &client.StopOptions{WriteOptions: client.WriteOptions{Namespace: job.Namespace}, Purge: *purge})
		if err != nil {
			return cmdutil.Document{}, err
		}
		v := &runView{JobID: job.ID, Namespace: job.Namespace, JobRegisterResponse: answer}
		switch {
		case answer.EvalID == "": // nothing was left to stop
		case *detach:
			apiview.WarnPaused(ctx, c)
		default:
			w := waiter{conn: c, timeout: *timeout, done: "the job is stopped, and its allocations are when the evaluation is processed"}
			if v.Evaluation, err = w.await(ctx, v); err != nil {
				return cmdutil.Document{}, err
			}
			if v.Evaluation.Status == "cancelled" {
				return cmdutil.Document{}, &cmdutil.Error{
					Exit: cmdutil.ExitError, Code: cmdutil.CodeError, Message: fmt.Sprintf("evaluation %s was cancelled: %s", v.Evaluation.ID, v.Evaluation.StatusDescription),
					Hint: "the job is stopped, but its allocations are not; stop it again to create another evaluation",
				}
			}
		}
		return cmdutil.Document{Data: v, Names: []string{job.ID}, Page: func(p cmdutil.Page) {
			p.Printf("Job %s is stopped", job.ID)
			if answer.EvalID != "" {
				p.Printf(", evaluation %s", p.ID(answer.EvalID))
			}
			p.Printf("\n")
		}}, nil
	})
}
