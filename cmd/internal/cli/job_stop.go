package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/sdk/client"
)

func newJobStopCmd(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stop ID",
		Short: "Stop a job",
		Long: `Stop a job: its allocations end gracefully. The job is kept for a while, so that
cede job status and history still know it; --purge forgets it.`,
		Example: "  cede job stop web\n  cede job stop web --purge",
		Args:    arguments(1, 1, "one job"),
	}
	purge := cmd.Flags().Bool("purge", false, "forget the job as well")
	detach := cmd.Flags().Bool("detach", false, "do not wait until that is decided")
	timeout := cmd.Flags().Duration("timeout", 5*time.Minute, "wait for at most this `TIME`")
	return asking(env, cmd, func(ctx context.Context, c *connection, args []string) (document, error) {
		job, err := c.findJob(ctx, args[0])
		if err != nil {
			return document{}, err
		}
		answer, err := c.client.Jobs().Stop(ctx, job.ID, &client.StopOptions{WriteOptions: client.WriteOptions{Namespace: job.Namespace}, Purge: *purge})
		if err != nil {
			return document{}, err
		}
		v := &runView{JobID: job.ID, Namespace: job.Namespace, JobRegisterResponse: answer}
		if !*detach && answer.EvalID != "" {
			if v.Evaluation, err = c.await(ctx, v, *timeout); err != nil {
				return document{}, err
			}
		}
		return document{data: v, names: []string{job.ID}, page: func(p page) {
			p.printf("Job %s is stopped", job.ID)
			if answer.EvalID != "" {
				p.printf(", evaluation %s", p.id(answer.EvalID))
			}
			p.printf("\n")
		}}, nil
	})
}
