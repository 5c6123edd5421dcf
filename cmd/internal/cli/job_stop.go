package cli

import (
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
	out, conn := outputFlags(cmd, env), serverFlags(cmd, env)
	purge := cmd.Flags().Bool("purge", false, "forget the job as well")
	detach := cmd.Flags().Bool("detach", false, "do not wait until that is decided")
	timeout := cmd.Flags().Duration("timeout", 5*time.Minute, "wait for at most this `TIME`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.resolve(); err != nil {
			return err
		}
		ctx := cmd.Context()
		job, err := conn.findJob(ctx, args[0])
		if err != nil {
			return err
		}
		api, err := conn.dial()
		if err != nil {
			return err
		}
		answer, err := api.Jobs().Stop(ctx, job.ID, &client.StopOptions{WriteOptions: client.WriteOptions{Namespace: job.Namespace}, Purge: *purge})
		if err != nil {
			return interruptedBy(ctx, err)
		}
		v := &runView{JobID: job.ID, Namespace: job.Namespace, JobRegisterResponse: answer}
		if !*detach && answer.EvalID != "" {
			if v.Evaluation, err = conn.await(ctx, api, answer.EvalID, *timeout); err != nil {
				return err
			}
		}
		return out.show(document{data: v, names: []string{job.ID}, page: func(p page) {
			p.printf("Job %s is stopped", job.ID)
			if answer.EvalID != "" {
				p.printf(", evaluation %s", p.id(answer.EvalID))
			}
			p.printf("\n")
		}})
	}
	return cmd
}
